"""Who did it: the search on words that are known, and the command on launches that are."""

import dataclasses
import json
import re

import pytest

from stele import __main__ as door
from stele import environments
from stele.commands import bisect as command
from stele.errors import SteleError
from stele.gate import trial
from stele.measuring import measure
from stele.releases import frameworks, ledger
from stele.releases.bisection import BAD, GOOD, SKIP, Search
from stele.releases.index import Release

EIGHT = [f"1.{number}" for number in range(1, 9)]


def searched(guilty, skipped=()):
    """The suspects, and how many were asked, if everything from ``guilty`` on is bad."""
    search, asked = Search(EIGHT), []
    while (name := search.next()) is not None:
        asked.append(name)
        search.tell(name, SKIP if name in skipped else BAD if name >= guilty else GOOD)
    return search.suspects, asked


@pytest.mark.parametrize("guilty", EIGHT[1:])
def test_the_first_bad_release_is_found_in_three_questions(guilty):
    suspects, asked = searched(guilty)
    assert suspects == [guilty]
    assert len(asked) <= 3


def test_what_cannot_be_told_is_passed_by():
    assert searched("1.5", skipped=["1.4"]) == (["1.4", "1.5"], ["1.4", "1.5", "1.3"])
    assert searched("1.8", skipped=["1.4", "1.5"])[0] == ["1.8"]


def test_where_nothing_can_be_told_all_are_suspects():
    assert searched("1.5", skipped=EIGHT[1:-1])[0] == EIGHT[1:]


def test_a_good_release_after_a_bad_one_changes_nothing():
    search = Search(EIGHT, {3: BAD, 5: GOOD})
    assert (search.good, search.bad) == (0, 3)


def test_what_may_be_asked_next_is_known_ahead():
    search = Search(EIGHT)
    first, ahead = search.next(), search.ahead()
    for status in (GOOD, BAD):
        other = Search(EIGHT)
        other.tell(first, status)
        assert other.next() in ahead
    assert Search(["1.1", "1.2"]).ahead() == []


# the command


@pytest.fixture
def history(row, monkeypatch):
    """history(seconds) -> a ledger of eight releases of abacus, whose steps take this long by version."""
    row("abacus", seconds=[])
    text = (environments.folders()[1] / "abacus.toml").read_text()
    requirements = 'python = ">=3.10"\n' + text + '[requirements]\n"abacus" = "the framework"\n'
    (environments.folders()[1] / "abacus.toml").write_text(requirements)
    environments.rows.cache_clear()
    releases = [
        Release("abacus", name, f"2024-01-0{number}T00:00:00+00:00") for number, name in enumerate(EIGHT, 1)
    ]
    ledger.add("abacus", frameworks.row("abacus"), releases)

    def history(seconds, run, missing=()):
        def make(row):
            if row.name.rpartition("-")[2] in missing:
                raise SteleError(f"'{row.name}' was never built here")

        def measured(subject, cell, arms, settings, scale, **_):
            return {
                arm: dataclasses.replace(
                    run,
                    seconds=tuple(seconds[subject.arm(arm).name.rpartition("-")[2]] * s for s in run.seconds),
                )
                for arm in arms
            }

        monkeypatch.setattr(command, "make", make)
        monkeypatch.setattr(command, "build", lambda rows: None)
        monkeypatch.setattr(trial, "measured", measured)
        monkeypatch.setattr(measure, "inputs", lambda task: ({}, None))

    return history


def slower_from(guilty, by=1.06):
    return {name: by if name >= guilty else 1.0 for name in EIGHT}


def test_the_guilty_release_is_named_with_the_evidence_of_each_step(history, run, capsys, tmp_path):
    history(slower_from("1.5"), run)
    report = tmp_path / "found.json"
    assert door.main(["bisect", "abacus", "1.1", "1.8", f"--json={report}"]) == 0
    out = capsys.readouterr().out
    assert "6 releases between abacus-1.1 and abacus-1.8: about 4 gates" in out
    assert re.search(r"bad +abacus-1.8: 6.0 % slower in 10 pairs", out)
    assert re.search(r"good +abacus-1.4: the same", out)
    assert out.endswith("abacus-1.5 did it.\n")
    found = json.loads(report.read_text())
    assert found["suspects"] == ["abacus-1.5"]
    assert [step["status"] for step in found["steps"]] == ["bad", "good", "bad", "bad"]


def test_a_smaller_step_before_it_is_not_it(history, run, capsys):
    history({**slower_from("1.6", 1.10), "1.3": 1.02, "1.4": 1.02, "1.5": 1.02}, run)
    assert door.main(["bisect", "abacus", "1.1", "1.8"]) == 0
    assert capsys.readouterr().out.endswith("abacus-1.6 did it.\n")


def test_what_does_not_install_is_skipped_and_suspected(history, run, capsys):
    history(slower_from("1.5"), run, missing=("1.4",))
    assert door.main(["bisect", "abacus", "1.1", "1.8"]) == 3
    out = capsys.readouterr().out
    assert re.search(r"skip +abacus-1.4: 'abacus-1.4' was never built here", out)
    assert "One of these did it, and which cannot be told: abacus-1.4, abacus-1.5" in out


def test_where_nothing_is_worse_nothing_is_searched(history, run, capsys):
    history(dict.fromkeys(EIGHT, 1.0), run)
    assert door.main(["bisect", "abacus", "1.1", "1.8"]) == 3
    assert "abacus-1.8 was not found to be worse" in capsys.readouterr().out


def test_an_unknown_release_shows_the_nearest(history, run, capsys):
    history(slower_from("1.5"), run)
    assert door.main(["bisect", "abacus", "1.1", "1.88"]) == 2
    assert "Unknown release 'abacus-1.88'. Did you mean abacus-1.8" in capsys.readouterr().err


def test_the_bad_one_has_to_be_the_later_one(history, run, capsys):
    history(slower_from("1.5"), run)
    assert door.main(["bisect", "abacus", "1.8", "1.1"]) == 2
    assert "OLDER..NEWER" in capsys.readouterr().err
