import itertools
import json
import re
from pathlib import Path

import pytest

from stele import __main__ as entry_point
from stele import environments
from stele.commands import bisect as command
from stele.environments import ORACLE
from stele.errors import SteleError
from stele.measuring import measure
from stele.measuring.content import Reads
from stele.measuring.run import Origin
from stele.releases import frameworks, ledger
from stele.releases.bisection import BAD, CandidateStatus
from stele.releases.index import Release
from stele.subjects import InOld, Model, Tasks
from tests.support.gates import INPUTS, NUMBERS, SECONDS, answer
from tests.support.runs import changed
from tests.support.scripted_environments import INSPECTION


@pytest.mark.slow
def test_bisect_names_the_release_that_is_slower_on_a_model(model_gate, monkeypatch, capsys, add_environment):
    model_gate()
    slow = {"seconds": [1.3 * value for value in SECONDS], "numbers": NUMBERS, "inspection": INSPECTION}
    fast = {**slow, "seconds": SECONDS}
    for version, script in (("1.0", fast), ("1.1", fast), ("1.2", slow), ("1.3", slow)):
        add_environment(f"abacus-{version}", **script)
    assert bisect_abacus(monkeypatch) == 0
    assert "The first bad candidate is abacus-1.2." in capsys.readouterr().out


def bisect_abacus(monkeypatch):
    names = [f"abacus-1.{number}" for number in range(4)]
    monkeypatch.setattr("stele.releases.candidates.select_requirements", lambda *ends: names)
    command = ["bisect", "abacus", "1.0", "1.3", "--model=net.py:build", "--metric=step", "--budget=10m"]
    return entry_point.main(command)


@pytest.mark.slow
def test_bisect_asks_each_release_and_skips_one_that_builds_another_model(
    model_gate, monkeypatch, capsys, add_environment
):
    model_gate()
    fast = {"seconds": SECONDS, "numbers": NUMBERS, "inspection": INSPECTION}
    slow = {**fast, "seconds": [1.3 * value for value in SECONDS]}
    other = {**slow, "inspection": {**INSPECTION, "output": [8, 4]}}
    add_environment("abacus-1.0", **{**fast, "inspection": {**INSPECTION, "output": [8, 3]}})
    for version, script in (("1.1", fast), ("1.2", other), ("1.3", slow)):
        add_environment(f"abacus-{version}", **script)
    assert bisect_abacus(monkeypatch) == 3
    out = capsys.readouterr().out
    assert "skip  abacus-1.2: the output has shape 8x4 in NEW, 8x3 in OLD" in out
    assert "one of these; some of them gave no verdict: abacus-1.2, abacus-1.3" in out


EIGHT = [f"1.{number}" for number in range(1, 9)]
BISECT = command.BisectOptions(framework="abacus", good="1.1", bad="1.8")


# the command


@pytest.fixture
def history(add_environment, monkeypatch):
    """history(factors, run): eight releases of abacus; ``factors`` multiply the steps of ``run``, by version."""
    add_environment("abacus", seconds=[])
    text = (environments.folders()[1] / "abacus.toml").read_text()
    requirements = 'python = ">=3.10"\n' + text + '[requirements]\n"abacus" = "the framework"\n'
    (environments.folders()[1] / "abacus.toml").write_text(requirements)
    environments.described.cache_clear()
    releases = [Release("abacus", name, f"2024-01-0{number}T00:00:00+00:00") for number, name in enumerate(EIGHT, 1)]
    ledger.add("abacus", frameworks.environment_of("abacus"), releases)

    def history(factors, run, missing=()):
        def make(environment):
            if environment.name.rpartition("-")[2] in missing:
                raise SteleError(f"'{environment.name}' was never built here")

        def measure_arms(sides, *_):
            return {
                arm: changed(
                    run,
                    steps={
                        "seconds": tuple(factors[environment.name.rpartition("-")[2]] * s for s in run.steps.seconds)
                    },
                )
                for arm, environment in sides.items()
            }

        monkeypatch.setattr(command, "make", make)
        monkeypatch.setattr(command.builds, "resolved_like", lambda candidate, good: candidate)
        answer(monkeypatch, measure_arms)
        monkeypatch.setattr(measure, "inputs", lambda task: (INPUTS, None))

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


@pytest.mark.slow
def test_a_smaller_slow_down_before_the_first_bad_release_is_ignored(history, run, capsys):
    history({**slower_from("1.6", 1.10), "1.3": 1.02, "1.4": 1.02, "1.5": 1.02}, run)
    assert entry_point.main(["bisect", "abacus", "1.1", "1.8"]) == 0
    assert capsys.readouterr().out.endswith("The first bad candidate is abacus-1.6.\n")


def test_a_release_that_does_not_install_is_skipped_and_stays_a_suspect(history, run, capsys):
    history(slower_from("1.5"), run, missing=("1.4",))
    assert entry_point.main(["bisect", "abacus", "1.1", "1.8"]) == 3
    out = capsys.readouterr().out
    assert re.search(r"skip +abacus-1.4: 'abacus-1.4' was never built here", out)
    assert "The first bad candidate is one of these; some of them gave no verdict: abacus-1.4, abacus-1.5" in out


def test_without_a_regression_there_is_no_search(history, run, capsys):
    history(dict.fromkeys(EIGHT, 1.0), run)
    assert entry_point.main(["bisect", "abacus", "1.1", "1.8"]) == 3
    assert "Nothing to bisect: abacus-1.8 was not shown to be worse than abacus-1.1." in capsys.readouterr().out


def test_a_change_between_two_candidates_ends_the_search(history, run, capsys, monkeypatch):
    history(slower_from("1.5"), run)
    judge = command.Bisection.judge

    def inputs(task):
        return {**INPUTS, "data_origin": Origin(origin="official", fingerprint=fingerprint)}, None

    def judge_after_a_change(*arguments, **options):
        nonlocal fingerprint
        fingerprint = next(data)
        return judge(*arguments, **options)

    fingerprint, data = "0", iter("0011")
    monkeypatch.setattr(measure, "inputs", inputs)
    monkeypatch.setattr(command.Bisection, "judge", judge_after_a_change)
    assert entry_point.main(["bisect", "abacus", "1.1", "1.8"]) == 2
    output = capsys.readouterr()
    assert (
        "during the bisection: the data of gru was official 0 seeded and is now official 1 seeded. Run it again."
        in output.err
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
    tasks = Tasks()
    bisection = command.Bisection(BISECT, {}, InOld(tasks, ORACLE), tasks)
    bisection.require_same({"files": {"net.py": "1", "a.py": "1"}})
    if message is None:
        bisection.require_same({"files": files, "packages": {"jax in NEW": "2"}})
        assert bisection.content["files"] == files
    else:
        with pytest.raises(SteleError, match=f"changed during the bisection: {message}"):
            bisection.require_same({"files": files})


def test_the_files_and_variables_of_a_candidate_are_those_of_the_model_from_then_on():
    model = Model("net.py:build", Path("/x"), reads=Reads((Path("/x/net.py"),)))
    for name in ("a.py", "a.py", "b.py"):
        model = model.with_reads(Reads((Path("/x", name),), variables=("HIDDEN",)))
    assert [path.name for path in model.reads.files] == ["net.py", "a.py", "b.py"]
    assert model.variables == ("HIDDEN",)


def test_an_unknown_release_is_an_error_that_names_the_nearest(history, run, capsys):
    history(slower_from("1.5"), run)
    assert entry_point.main(["bisect", "abacus", "1.1", "1.88"]) == 2
    assert "Unknown release 'abacus-1.88'. Did you mean abacus-1.8" in capsys.readouterr().err


def test_the_bad_release_must_be_the_later_one(history, run, capsys):
    history(slower_from("1.5"), run)
    assert entry_point.main(["bisect", "abacus", "1.8", "1.1"]) == 2
    assert "OLDER..NEWER" in capsys.readouterr().err


class PlantedPins:
    """Six packages differ; some of them make it worse, and only together."""

    def __init__(self, culprits):
        self.culprits, self.gates = set(culprits), 0
        self.candidates, self.pins = {"all as in GOOD": ()}, self

    def environment(self, steps):
        return tuple(steps)

    def judge(self, name, *, margin, budget):
        self.gates += 1
        steps = self.candidates[name]
        return CandidateStatus(name, BAD if self.culprits <= set(steps) else "good", "planted")


@pytest.mark.parametrize(
    "culprits", [combination for size in (1, 2, 3) for combination in itertools.combinations("abcdef", size)]
)
def test_the_changes_of_pins_that_are_needed_together_are_named(culprits, monkeypatch, capsys):
    steps = list("abcdef")
    bisection = PlantedPins(culprits)
    bisection.candidates |= {step: tuple(steps[: number + 1]) for number, step in enumerate(steps)}
    monkeypatch.setattr(command, "begin", lambda chosen: bisection)
    chosen = command.BisectOptions(framework="x", good="a.txt", bad="b.txt", pins=True)
    assert command.bisect(chosen) == 0
    said = capsys.readouterr().out
    if len(culprits) == 1:
        assert f"The first bad candidate is {culprits[0]}." in said
    else:
        assert f"only together: {' and '.join(culprits)}." in said
    assert bisection.gates <= 12
