"""The gate as a user runs it, on environments whose every number is written in advance."""

import dataclasses
import itertools
import json
import os
import re
import signal
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fakes import well
from processes import alive, wait_until
from stele import __main__ as door
from stele.commands import gate as command
from stele.commands import options
from stele.environments import builds
from stele.gate import trial
from stele.gate.correctness import SEEDS
from stele.gate.verdict import of_accuracy
from stele.measuring import measure
from stele.measuring.run import Run
from stele.measuring.worker import WorkerError

SECONDS = [0.5, *[0.010, 0.011, 0.012] * 16]
INPUTS = {"data": None, "data_origin": {"origin": "official", "fingerprint": "0"}}


def printed(capsys):
    """What was printed, columns as wide as they need to be."""
    return re.sub("  +", "  ", capsys.readouterr().out)


def slower(by):
    return [by * value for value in SECONDS]


launched = trial.measured


def measured(subject, cell, arms, settings, scale, **how):
    """The Runs that scripted workers would give; they are started only where one is to fail."""
    scripts = {arm: json.loads(subject.arm(arm).variables["SCRIPT"]) for arm in arms}
    if any({"configure", cell.phase} & set(script) for script in scripts.values()):
        return launched(subject, cell, arms, settings, scale, **how)
    return {arm: told(subject.arm(arm), script, cell, settings, scale) for arm, script in scripts.items()}


def told(row, script, cell, settings, scale):
    return Run.from_dict(
        {
            "when": datetime.now(timezone.utc).isoformat(),
            "environment": row.name,
            "label": row.label,
            "versions": {"scripted": "1.0"},
            "task": cell.task,
            "phase": cell.phase,
            "scale": scale,
            "settings": dataclasses.asdict(settings),
            "flags": {},
            "plan": {},
            "machine": {},
            "data": {},
            "weights": "seeded",
            "import_seconds": 0.5,
            "seconds": script["seconds"],
            "warmup": 1,
            "steady": True,
            "batch": 64,
            "host_memory": script.get("host_memory", 2**20),
            "device_memory": None,
            "accuracy": script.get("accuracy"),
        }
    )


@pytest.fixture
def gate(row, monkeypatch):
    """gate(new={...}, *options) -> status, of a gate from a steady OLD to a NEW with this script."""
    monkeypatch.setattr(measure, "inputs", lambda task: (INPUTS, None))
    monkeypatch.setattr(trial, "measured", measured)

    def gate(*options, old=None, new=None, metric="step", task="gru", phase="infer"):
        row("old", **{"seconds": SECONDS, **(old or {})})
        row("new", **{"seconds": SECONDS, **(new or {})})
        chosen = [f"--metric={metric}", f"--task={task}", *([f"--phase={phase}"] if phase else [])]
        return door.main(["gate", "old", "new", *chosen, *options])

    return gate


def entries(folder=Path(".stele/gates")):
    [path] = folder.glob("*.jsonl")
    return path, [json.loads(line) for line in path.read_text().splitlines()[1:]]


def test_equals_pass_in_six_pairs(gate, capsys):
    assert gate() == 0
    out = printed(capsys)
    assert (
        "PASS  gru infer  step  [1.000 1.000 1.000]  the same, at worst the same, in 6 pairs; 5 % is allowed"
        in out
    )
    assert out.endswith("PASS: old to new. Nothing that was judged got worse by more than its margin.\n")
    _, launches = entries()
    assert [one["key"] for one in launches] == [["long", "gru infer", n] for n in range(6)]
    assert all(
        set(one["runs"]) == {"old", "new", "control"} for one in launches
    )  # the control is OLD once more


def test_a_slower_step_is_a_regression(gate, capsys):
    assert gate(new={"seconds": slower(1.05)}) == 1
    out = printed(capsys)
    assert "REGRESSED  gru infer  step  [1.050 1.050 1.050]  5.0 % slower in 10 pairs, p 0.00098" in out
    assert "REGRESSED: old to new. Something got worse." in out


def test_a_faster_step_is_an_improvement_and_passes(gate, capsys):
    assert gate(new={"seconds": slower(0.9)}) == 0
    assert "IMPROVED  gru infer  step  [0.900 0.900 0.900]  10.0 % faster in 10 pairs" in printed(capsys)


def test_memory_that_doubles_is_a_regression(gate, capsys):
    assert gate(new={"host_memory": 2**21}, metric="step,host-memory") == 1
    assert "REGRESSED  gru infer  host-memory  [2.000 2.000 2.000]  100.0 % more in 10 pairs" in printed(
        capsys
    )


def test_all_but_the_step_is_judged_by_short_launches_and_the_import_once(gate, capsys):
    assert gate(metric="step,first-step,import,host-memory", phase=None) == 0
    out = printed(capsys)
    assert "gru infer  import" in out and "gru train  import" not in out
    kinds = {
        one["key"][0]: [run["settings"]["malloc"] for run in one["runs"].values()] for one in entries()[1]
    }
    assert set(kinds["long"]) == {"steady"} and set(kinds["short"]) == {"plain"}


def test_what_is_not_the_step_has_its_control_too(gate):
    assert gate(metric="import") == 0
    assert all(set(one["runs"]) == {"old", "new", "control"} for one in entries()[1])


def test_device_memory_is_not_judged_where_there_is_none(gate, capsys):
    assert gate(metric="step,device-memory") == 0
    assert "device-memory" not in printed(capsys)


@pytest.mark.parametrize(
    "deed, message",
    [("segfault", "killed by SIGSEGV"), ("complain", "no such kernel"), ("hang", "gave no sign of life")],
)
def test_a_new_release_that_fails_is_broken(gate, capsys, deed, message):
    assert gate("--worker-timeout=0.5", new={"infer": deed}) == 1
    out = printed(capsys)
    assert "BROKEN  gru infer  all" in out and message in out
    assert len(entries()[1]) == 1  # it is not asked again


def test_a_new_release_that_does_not_import_is_broken(gate, capsys):
    assert gate(new={"configure": "complain"}) == 1
    assert "BROKEN" in printed(capsys)


def test_an_old_release_that_fails_tells_nothing(gate, capsys):
    assert gate(old={"infer": "segfault"}) == 3
    assert "INCONCLUSIVE  gru infer  all" in printed(capsys)


def test_a_new_release_that_fails_now_and_then_is_broken(gate, capsys, monkeypatch):
    """Each launch of NEW succeeds at its second attempt, and OLD at its first."""
    asked = itertools.count()

    def flaky(*given, **how):
        if next(asked) % 2 == 0:
            raise measure.SideFailed("new", WorkerError("Worker 'new' crashed now and then."))
        return measured(*given, **how)

    monkeypatch.setattr(trial, "measured", flaky)
    assert gate() == 1
    assert "OLD in none: Worker 'new' crashed now and then." in printed(capsys)


def test_where_both_fail_it_is_no_fault_of_new(gate, capsys):
    for seed in range(4):
        assert gate(f"--seed={seed}", old={"infer": "segfault"}, new={"infer": "segfault"}) == 3
        assert "OLD: Worker 'old' crashed" in printed(capsys)


def test_what_can_be_installed_and_not_imported_is_broken(gate, capsys, monkeypatch, tmp_path):
    def make(row):
        if row.name == "new":
            raise builds.DoesNotImport("'new' was installed, but does not import")

    monkeypatch.setattr(command, "make", make)
    assert gate(f"--junit={tmp_path / 'found.xml'}") == 1
    assert "BROKEN  all all  import  NEW: 'new' was installed" in printed(capsys)
    assert (tmp_path / "found.xml").exists()


def test_what_new_lacks_is_missing(gate, capsys):
    assert gate(new={"absent": {"gru": "no recurrences"}}, task="gru,cnn") == 1
    assert "MISSING  gru infer  all" in printed(capsys)


def test_another_mathematics_is_broken_and_not_timed(gate, capsys):
    wrong = {**well("gru"), "logits": [[0.0, 0.0]] * 16}
    assert gate(old={"numbers": well("gru")}, new={"numbers": wrong}, metric="parity,step") == 1
    out = printed(capsys)
    assert "BROKEN  gru all  parity  NEW is broken at rung 3, logits" in out
    assert "step" not in out


def test_the_same_mathematics_passes(gate, capsys):
    assert gate(old={"numbers": well("gru")}, new={"numbers": well("gru")}, metric="parity") == 0
    assert "PASS  gru all  parity  all rungs hold, up to 9" in printed(capsys)


def test_a_lost_accuracy_is_a_regression(gate, capsys):
    told = {"old": {"accuracy": 0.80}, "new": {"accuracy": 0.77}}
    assert gate(metric="accuracy", phase="train", **told) == 1
    assert "REGRESSED  gru train  accuracy  +3.00 points lost on average of 5 seeds" in printed(capsys)


def test_an_equal_accuracy_passes(gate, capsys):
    told = {"old": {"accuracy": 0.80}, "new": {"accuracy": 0.80}}
    assert gate(metric="accuracy", phase="train", **told) == 0
    seeds = [run["settings"]["seed"] for one in entries()[1] for run in one["runs"].values()]
    assert seeds == [seed for seed in range(5) for _ in ("old", "new")]


@pytest.mark.parametrize(
    ("count", "status", "why"),
    [
        (4, "INCONCLUSIVE", "4 of 5 seeds"),
        (8, "INCONCLUSIVE", "more would tell, raise --budget"),
        (20, "PASS", "1 is"),
    ],
)
def test_accuracies_that_spread_take_more_seeds(count, status, why):
    lost = [0.003 * (5, -5, 3, -3, 1, -1)[seed % 6] for seed in range(count)]
    found = of_accuracy(("gru", "train"), lost, margin=0.01, looks=SEEDS)
    assert (found.status, why in found.message) == (status, True)


def test_accuracies_that_spread_too_far_are_told_so_in_the_end():
    lost = [0.05 * (-1) ** seed for seed in range(20)]
    for count, why in ((12, "more would tell, raise --budget"), (20, "the seeds spread too far")):
        found = of_accuracy(("gru", "train"), lost[:count], margin=0.01, looks=SEEDS)
        assert found.status == "INCONCLUSIVE" and why in found.message


def test_a_budget_that_cannot_do_is_told_after_one_pass(gate, capsys):
    assert gate("--budget=0.001s") == 3
    said = capsys.readouterr().err
    assert "6 decide little and 16 most" in said and said.count("raise --budget: --resume keeps it all") == 1
    assert gate("--budget=0.001s", "--resume") == 3
    assert "keeps it all" not in capsys.readouterr().err  # of what is remembered it was said


def test_where_the_budget_ends_nothing_passes(gate, capsys):
    assert gate("--budget=0s") == 3
    assert "INCONCLUSIVE  gru infer  step  0 pairs are too few: raise --budget" in printed(capsys)


def test_orders_are_drawn_from_the_seed_and_not_fixed(gate):
    gate()
    pairs = {tuple(arm for arm in one["runs"] if arm != "control") for one in entries()[1]}
    assert pairs == {("old", "new"), ("new", "old")}


@pytest.fixture
def drawn(monkeypatch):
    """drawn(new=..., control=...) -> differences of each arm to OLD, in place of what was measured."""

    def drawn(**arms):
        monkeypatch.setattr(
            "stele.gate.timing.differences",
            lambda metric, pairs, arm: [arms[arm](number) for number in range(len(pairs))],
        )

    return drawn


def test_a_machine_on_which_old_differs_from_old_tells_nothing(gate, capsys, drawn):
    drawn(new=lambda number: 0.15, control=lambda number: 0.15 + 0.001 * number)
    assert gate() == 3
    out = printed(capsys)
    assert "INCONCLUSIVE  gru infer  step" in out and "REGRESSED" not in out
    assert "OLD differs from OLD" in out


def test_a_machine_too_noisy_for_its_control_passes_nothing(gate, capsys, drawn):
    drawn(new=lambda number: 0.0, control=lambda number: 0.3 * (-1) ** number)
    assert gate() == 3
    out = printed(capsys)
    assert "PASS" in out and "OLD was not seen to be as fast as OLD" in out
    assert max(one["key"][2] for one in entries()[1]) == 33  # it was given every chance


def test_memory_alone_needs_no_control(gate):
    assert gate(metric="host-memory") == 0
    assert all(set(one["runs"]) == {"old", "new"} for one in entries()[1])


def test_a_pair_on_a_stolen_processor_does_not_count(gate, capsys, monkeypatch):
    stolen = iter([True, True, True])
    monkeypatch.setattr(
        "stele.gate.conditions.Conditions.excluded",
        property(lambda self: "stolen" if next(stolen, None) else None),
    )
    assert gate() == 0
    assert max(one["key"][2] for one in entries()[1]) > 5


# going on


def test_what_was_interrupted_goes_on(gate, monkeypatch, capsys):
    assert gate(new={"seconds": slower(1.05)}) == 1
    whole = printed(capsys)
    path, launches = entries()
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:5]) + lines[5][:20])  # killed in the middle of a line
    assert gate("--resume", new={"seconds": slower(1.05)}) == 1
    assert printed(capsys) == whole
    again = entries()[1]
    assert [one["key"] for one in again] == [one["key"] for one in launches]
    assert again[:4] == launches[:4] and again[5] != launches[5]


def test_a_record_of_another_machine_is_refused(gate, monkeypatch, capsys):
    gate()
    monkeypatch.setattr("stele.measuring.machine.processor", lambda: "Abacus 3000")
    assert gate("--resume") == 2
    assert "its processor is" in capsys.readouterr().err


def test_what_failed_is_tried_again_when_it_goes_on(gate, capsys):
    assert gate(new={"infer": "segfault"}) == 1
    assert gate("--resume") == 0


def test_an_arm_that_became_another_release_is_refused(gate, capsys):
    gate(new={"seconds": slower(1.05)})
    path, _ = entries()
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line.replace('{"scripted": "1.0"}', '{"scripted": "0.9"}') for line in lines[:6]))
    assert gate("--resume", new={"seconds": slower(1.05)}) == 2
    assert "was {'scripted': '0.9'}" in capsys.readouterr().err


def test_a_record_of_other_options_is_refused(gate, capsys):
    gate()
    assert gate("--resume", metric="import") == 2
    assert "its metrics is {'step': 0.05}, now it is {'import': 0.25}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content, message",
    [
        ("", "not a gate's record: a missing schema"),
        ("{\n", "is not JSON"),
        ('{"schema": 9}\n', "not a gate's record: schema 9"),
        ("[]\n", "is no launch"),
        ('{"schema": 1}\n', "lines that are not launches"),
        ('{"schema": 1, "machine": {}}\n{"run": 3}\n', "lines that are not launches"),
    ],
)
def test_a_damaged_record_is_named(gate, tmp_path, capsys, content, message):
    (tmp_path / "damaged.jsonl").write_text(content)
    assert gate(f"--resume={tmp_path / 'damaged.jsonl'}") == 2
    err = capsys.readouterr().err
    assert message in err and "damaged.jsonl" in err


def test_nothing_to_resume_is_said(gate, capsys):
    assert gate("--resume") == 2
    assert "Nothing to resume: no record of old and new" in capsys.readouterr().err


def test_ctrl_c_leaves_a_record_and_no_process(row, tmp_path):
    row("old", seconds=SECONDS, infer="hang_with_child")
    row("new", seconds=SECONDS, infer="hang_with_child")
    asked = [
        sys.executable,
        "-m",
        "stele",
        "gate",
        "old",
        "new",
        "--task=resnet50",
        "--phase=infer",
        "--metric=step",
    ]
    process = subprocess.Popen(asked, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    wait_until(lambda: len(children.read_text().split()) == 3)
    workers = children.read_text().split()
    grandchildren = [Path(f"/proc/{worker}/task/{worker}/children") for worker in workers]
    wait_until(lambda: any(path.read_text().split() for path in grandchildren))
    family = [*map(int, workers), *(int(pid) for path in grandchildren for pid in path.read_text().split())]
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(10) == 130
    assert "interrupted; what was finished is kept" in process.stderr.read()
    process.stderr.close()
    wait_until(lambda: not any(map(alive, family)))
    assert list((tmp_path / ".stele/gates").glob("*.jsonl"))


# what is written


def test_the_pages_say_the_same(gate, tmp_path):
    files = {kind: tmp_path / f"found.{kind}" for kind in ("json", "markdown", "junit")}
    assert gate(*(f"--{kind}={path}" for kind, path in files.items()), new={"seconds": slower(1.05)}) == 1
    facts = json.loads(files["json"].read_text())
    assert (facts["status"], facts["old"], facts["launches"]) == ("REGRESSED", "old", 48)
    assert facts["verdicts"][0]["ratio"]["middle"] == pytest.approx(1.05)
    assert facts["versions"] == {"old": {"scripted": "1.0"}, "new": {"scripted": "1.0"}}
    page = files["markdown"].read_text()
    assert page.startswith("# REGRESSED: old to new\n")
    assert (
        "| REGRESSED | gru infer | step | \\[1.050 1.050 1.050\\] | 5.0 % slower in 10 pairs, p 0.00098 |"
        in page
    )
    case, control = ElementTree.parse(files["junit"]).getroot()
    assert (case.get("classname"), case.get("name")) == ("gru.infer", "step")
    assert case.find("failure").get("type") == "REGRESSED"
    assert (control.get("name"), list(control)) == ("control", [])


def test_what_is_inconclusive_is_no_pass_in_junit(gate, tmp_path):
    assert gate("--budget=0s", f"--junit={tmp_path / 'found.xml'}") == 3
    suite = ElementTree.parse(tmp_path / "found.xml").getroot()
    assert (suite.get("tests"), suite.get("errors")) == ("2", "2")


def test_an_error_message_is_shown_and_never_obeyed(gate, tmp_path):
    files = [f"--markdown={tmp_path / 'page.md'}", f"--junit={tmp_path / 'page.xml'}"]
    assert gate(*files, new={"infer": "mischief"}) == 1
    page = (tmp_path / "page.md").read_text()
    assert "<script>" not in page and "\\<script\\>" in page
    ElementTree.parse(tmp_path / "page.xml")


# what cannot be asked


@pytest.mark.parametrize(
    "options, message",
    [
        (["--metric=steps"], "Unknown metric 'steps'. Did you mean 'step'?"),
        (["--task=cn"], "Unknown task 'cn'. Did you mean 'cnn'?"),
        (["--task="], "--task '' names none of"),
        (["--margin=5"], "--margin 5: say 5%, or METRIC=5%"),
        (["--margin=parity=5%"], "--margin parity=5%"),
        (["--threads=0"], "at least one thread"),
        (["--threads=1000"], "--threads 1000: leave a processor"),
        (["--metric=accuracy"], "Accuracy is of training: --phase infer leaves nothing to judge"),
        (["--json=nowhere/found.json"], "nowhere/found.json cannot be written"),
    ],
)
def test_what_cannot_be_asked_is_quoted(gate, capsys, options, message):
    assert gate(*options) == 2
    assert message in capsys.readouterr().err


def test_an_unknown_environment_is_an_error(gate, capsys):
    assert door.main(["gate", "torhc", "torch"]) == 2
    assert "Did you mean 'torch'?" in capsys.readouterr().err


def test_margins_are_read():
    found = {metric.name: metric.margin for metric in command.metrics(["2%", "host-memory=10%"])}
    assert (found["step"], found["host-memory"], found["import"]) == (0.02, 0.10, 0.25)


@pytest.mark.parametrize("text, value", [("90s", 90), ("20m", 1200), ("1.5h", 5400)])
def test_times_are_read(text, value):
    assert options.seconds(text) == value
