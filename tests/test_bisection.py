"""Bisection: the search with given statuses, and the command with given step times."""

import argparse
import dataclasses
import json
import re
from pathlib import Path

import pytest

from stele import __main__ as entry_point
from stele import environments
from stele.commands import bisect as command
from stele.errors import SteleError
from stele.measuring import measure
from stele.measuring.content import Reads
from stele.models.spec import Model
from stele.releases import frameworks, ledger
from stele.releases.bisection import BAD, GOOD, SKIP, Search
from stele.releases.index import Release

EIGHT = [f"1.{number}" for number in range(1, 9)]


def run_search(first_bad, skipped=()):
    """Return the suspects, and the tested releases, if every release from ``first_bad`` on is bad."""
    search, tested = Search(EIGHT), []
    while (name := search.next_candidate()) is not None:
        tested.append(name)
        search.set_status(name, SKIP if name in skipped else BAD if name >= first_bad else GOOD)
    return search.suspects, tested


@pytest.mark.parametrize("first_bad", EIGHT[1:])
def test_the_first_bad_release_is_found_in_three_tests(first_bad):
    suspects, tested = run_search(first_bad)
    assert suspects == [first_bad]
    assert len(tested) <= 3


def test_a_skipped_release_is_a_suspect_only_next_to_the_first_bad_one():
    assert run_search("1.5", skipped=["1.4"]) == (["1.4", "1.5"], ["1.4", "1.5", "1.3"])
    assert run_search("1.8", skipped=["1.4", "1.5"])[0] == ["1.8"]


def test_if_every_release_is_skipped_all_are_suspects():
    assert run_search("1.5", skipped=EIGHT[1:-1])[0] == EIGHT[1:]


def test_a_good_release_after_a_bad_one_is_ignored():
    search = Search(EIGHT, {3: BAD, 5: GOOD})
    assert (search.good, search.bad) == (0, 3)


# the command


@pytest.fixture
def history(add_environment, monkeypatch):
    """history(factors, run): eight releases of abacus; ``factors`` multiply the steps of ``run``, by version."""
    add_environment("abacus", seconds=[])
    text = (environments.folders()[1] / "abacus.toml").read_text()
    requirements = 'python = ">=3.10"\n' + text + '[requirements]\n"abacus" = "the framework"\n'
    (environments.folders()[1] / "abacus.toml").write_text(requirements)
    environments.described.cache_clear()
    releases = [
        Release("abacus", name, f"2024-01-0{number}T00:00:00+00:00") for number, name in enumerate(EIGHT, 1)
    ]
    ledger.add("abacus", frameworks.environment_of("abacus"), releases)

    def history(factors, run, missing=()):
        def make(environment):
            if environment.name.rpartition("-")[2] in missing:
                raise SteleError(f"'{environment.name}' was never built here")

        def measure_arms(launcher, arms, timeout):
            subject = launcher.trial
            return {
                arm: dataclasses.replace(
                    run,
                    seconds=tuple(factors[subject.arm(arm).name.rpartition("-")[2]] * s for s in run.seconds),
                )
                for arm in arms
            }

        monkeypatch.setattr(command, "make", make)
        monkeypatch.setattr(command.builds, "resolved_like", lambda candidate, good: candidate)
        monkeypatch.setattr("stele.gate.launcher.measure_arms", measure_arms)
        monkeypatch.setattr("stele.gate.timing.passes_at_once", lambda *_, **__: 1)
        monkeypatch.setattr(measure, "inputs", lambda task: ({"data_origin": {}}, None))

    return history


def slower_from(first_bad, by=1.06):
    return {name: by if name >= first_bad else 1.0 for name in EIGHT}


def test_the_first_bad_release_is_named_with_the_evidence_of_each_step(history, run, capsys, tmp_path):
    history(slower_from("1.5"), run)
    report = tmp_path / "report.json"
    assert entry_point.main(["bisect", "abacus", "1.1", "1.8", f"--json={report}"]) == 0
    out = capsys.readouterr().out
    assert "6 releases between abacus-1.1 and abacus-1.8: about 4 gates" in out
    assert re.search(r"bad +abacus-1.8: 6.0 % slower in 4 passes", out)
    assert re.search(r"good +abacus-1.4: the same", out)
    assert out.endswith("The first bad candidate is abacus-1.5.\n")
    result = json.loads(report.read_text())
    assert result["suspects"] == ["abacus-1.5"]
    assert [step["status"] for step in result["steps"]] == ["bad", "good", "bad", "bad"]


def test_a_smaller_slow_down_before_the_first_bad_release_is_ignored(history, run, capsys):
    history({**slower_from("1.6", 1.10), "1.3": 1.02, "1.4": 1.02, "1.5": 1.02}, run)
    assert entry_point.main(["bisect", "abacus", "1.1", "1.8"]) == 0
    assert capsys.readouterr().out.endswith("The first bad candidate is abacus-1.6.\n")


def test_a_release_that_does_not_install_is_skipped_and_stays_a_suspect(history, run, capsys):
    history(slower_from("1.5"), run, missing=("1.4",))
    assert entry_point.main(["bisect", "abacus", "1.1", "1.8"]) == 3
    out = capsys.readouterr().out
    assert re.search(r"skip +abacus-1.4: 'abacus-1.4' was never built here", out)
    assert (
        "The first bad candidate is one of these; some of them gave no verdict: abacus-1.4, abacus-1.5" in out
    )


def test_without_a_regression_there_is_no_search(history, run, capsys):
    history(dict.fromkeys(EIGHT, 1.0), run)
    assert entry_point.main(["bisect", "abacus", "1.1", "1.8"]) == 3
    assert (
        "Nothing to bisect: abacus-1.8 was not shown to be worse than abacus-1.1." in capsys.readouterr().out
    )


def test_a_change_between_two_candidates_ends_the_search(history, run, capsys, monkeypatch):
    history(slower_from("1.5"), run)
    judge = command.judge_candidate

    def inputs(task):
        return {"data_origin": {"fingerprint": fingerprint}}, None

    def judge_after_a_change(*arguments, **options):
        nonlocal fingerprint
        fingerprint = next(data)
        return judge(*arguments, **options)

    fingerprint, data = "0", iter("0011")
    monkeypatch.setattr(measure, "inputs", inputs)
    monkeypatch.setattr(command, "judge_candidate", judge_after_a_change)
    assert entry_point.main(["bisect", "abacus", "1.1", "1.8"]) == 2
    output = capsys.readouterr()
    assert (
        "during the bisection: the data of gru was 0 seeded and is now 1 seeded. Run it again." in output.err
    )
    assert "first bad" not in output.out


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"net.py": "1", "a.py": "1", "b.py": "1"}, None),  # this candidate alone reads b.py
        ({"net.py": "2", "a.py": "1"}, "net.py changed"),
        ({"net.py": "1", "a.py": "2"}, "a.py changed"),
        ({"net.py": "1"}, "a.py is missing now"),
    ],
)
def test_what_one_candidate_reads_is_compared_in_all_later_ones(files, message):
    arguments = argparse.Namespace(content=None)
    command.require_same_search(arguments, {"files": {"net.py": "1", "a.py": "1"}})
    if message is None:
        command.require_same_search(arguments, {"files": files, "packages": {"jax in NEW": "2"}})
        assert arguments.content["files"] == files
    else:
        with pytest.raises(SteleError, match=f"changed during the bisection: {message}"):
            command.require_same_search(arguments, {"files": files})


def test_the_files_and_variables_of_a_candidate_are_those_of_the_model_from_then_on():
    arguments = argparse.Namespace(
        subject=Model("net.py:build", Path("/x"), reads=Reads((Path("/x/net.py"),)))
    )
    for name in ("a.py", "a.py", "b.py"):
        command.remember_reads(arguments, Reads((Path("/x", name),), variables=("HIDDEN",)))
    assert [path.name for path in arguments.subject.reads.files] == ["net.py", "a.py", "b.py"]
    assert arguments.subject.reads.variables == ("HIDDEN",)


def test_an_unknown_release_is_an_error_that_names_the_nearest(history, run, capsys):
    history(slower_from("1.5"), run)
    assert entry_point.main(["bisect", "abacus", "1.1", "1.88"]) == 2
    assert "Unknown release 'abacus-1.88'. Did you mean abacus-1.8" in capsys.readouterr().err


def test_the_bad_release_must_be_the_later_one(history, run, capsys):
    history(slower_from("1.5"), run)
    assert entry_point.main(["bisect", "abacus", "1.8", "1.1"]) == 2
    assert "OLDER..NEWER" in capsys.readouterr().err
