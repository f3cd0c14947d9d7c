"""The gate as a user runs it, on environments that return scripted numbers."""

import dataclasses
import functools
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fakes import SHORT, correct_numbers
from processes import alive, wait_until
from stele import __main__ as entry_point
from stele.commands import gate as command
from stele.commands import options
from stele.environments import builds
from stele.gate import record, replay, thresholds
from stele.gate.correctness import SEEDS
from stele.gate.launcher import Launcher
from stele.gate.launcher import measure_arms as measure_with_workers
from stele.gate.verdict import accuracy_verdict, bound, change_range
from stele.measuring import content, measure, processors
from stele.measuring.conditions import Conditions
from stele.measuring.run import Run
from stele.measuring.worker import WorkerError
from stele.report import gate as pages
from stele.report.summary import of_gates
from stele.text import DURATION, SIZE, change

SECONDS = [0.5, *[0.010, 0.011, 0.012] * 16]
INPUTS = {"data": None, "data_origin": {"origin": "official", "fingerprint": "0"}}


def printed(capsys):
    """Return what was printed, with two spaces between columns."""
    return re.sub("  +", "  ", capsys.readouterr().out)


def slower(by):
    return [by * value for value in SECONDS]


def measure_arms(launcher, arms, timeout):
    """Return the Runs that scripted workers would give. Workers are started only if one is to fail."""
    subject = launcher.trial
    scripts = {arm: json.loads(subject.arm(arm).variables["SCRIPT"]) for arm in arms}
    if any({"configure", launcher.cell.phase} & set(script) for script in scripts.values()):
        return measure_with_workers(launcher, arms, timeout)
    return {arm: scripted_run(subject.arm(arm), script, launcher) for arm, script in scripts.items()}


def scripted_run(environment, script, launcher):
    cell = launcher.cell
    return Run.from_dict(
        {
            "when": datetime.now(timezone.utc).isoformat(),
            "environment": environment.name,
            "label": environment.label,
            "versions": {"scripted": "1.0"},
            "task": cell.task,
            "phase": cell.phase,
            "scale": launcher.scale,
            "settings": dataclasses.asdict(launcher.settings),
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
            "losses": script.get("losses", []),
            "accuracy": script.get("accuracy"),
        }
    )


@pytest.fixture
def gate(add_environment, monkeypatch):
    """gate(new={...}, *options) -> exit status of a gate from a steady OLD to a NEW with this script."""
    monkeypatch.setattr(measure, "inputs", lambda task: (INPUTS, None))
    monkeypatch.setattr("stele.gate.launcher.measure_arms", measure_arms)
    monkeypatch.setattr("stele.gate.timing.passes_at_once", lambda *_, **__: 1)

    def gate(*options, old=None, new=None, metric="step", task="gru", phase="infer"):
        add_environment("old", **{"seconds": SECONDS, **(old or {})})
        add_environment("new", **{"seconds": SECONDS, **(new or {})})
        defaults = [f"--metric={metric}", f"--task={task}", *([f"--phase={phase}"] if phase else [])]
        return entry_point.main(["gate", "old", "new", *defaults, *options])

    return gate


def entries(folder=Path(".stele/gates")):
    """Return the path of the record, and its launches: without the verdicts, which are its last line if it ended."""
    [path] = folder.glob("*.jsonl")
    listed = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    return path, [entry for entry in listed if entry["key"] != ["verdicts"]]


def test_a_release_beside_itself_is_said_to_be_no_upgrade(gate, capsys):
    assert gate() == 0
    capsys.readouterr()
    assert entry_point.main(["gate", "old", "old", "--metric=step", "--task=gru", "--phase=infer"]) == 0
    assert (
        "PASS: old to old. OLD and NEW are the same, so this gate checks the machine and not an upgrade."
        in printed(capsys)
    )


def test_equal_releases_pass_after_three_passes(gate, capsys):
    assert gate() == 0
    out = printed(capsys)
    assert re.search(
        r"PASS  gru infer  step  \[0\.\d+ 1\.000 1\.\d+\]  the same; at most \d.\d % slower \(3 passes", out
    )
    assert out.endswith(
        "PASS: old to new. Nothing that was judged became worse. "
        "Not judged: whether both compute the same, memory.\n"
    )
    _, launches = entries()
    assert [launch["key"] for launch in launches] == [["long", "gru infer", n] for n in range(3)]
    assert all(set(launch["runs"]) == {"old", "control", "new", "repeat"} for launch in launches)


def test_the_record_has_its_verdicts_in_its_last_line(gate):
    assert gate(new={"seconds": slower(1.05)}) == 1
    said = replay.load(entries()[0])
    assert said.ended and [(one.metric, one.status) for one in said.verdicts] == [
        ("step", "REGRESSED"), ("control", "PASS"),
    ]  # fmt: skip
    assert replay.judge(record.read(entries()[0])) == said.verdicts


@pytest.fixture
def delete(monkeypatch):
    """delete(folder) lets somebody delete a folder before the second pass."""

    def delete(folder, measure_arms=measure_arms):
        passes = []

        def measure(launcher, arms, timeout):
            passes.append(launcher)
            if len(passes) == 2:
                shutil.rmtree(folder)
            return measure_arms(launcher, arms, timeout)

        monkeypatch.setattr("stele.gate.launcher.measure_arms", measure)

    return delete


def deleted(folder):
    return (
        f"The folder {folder} was deleted while Stele used it. Create it again, then run the command again."
    )


def test_a_project_that_is_deleted_during_a_gate_is_named(gate, delete, tmp_path, capsys):
    delete(tmp_path)
    assert gate() == 2
    output = capsys.readouterr()
    assert output.err.splitlines()[-1].endswith(deleted(tmp_path)) and "verdict" not in output.out


def test_a_folder_of_records_that_is_deleted_during_a_gate_is_named(gate, delete, tmp_path, capsys):
    delete(tmp_path / ".stele")
    assert gate() == 2
    assert capsys.readouterr().err.splitlines()[-1].endswith(deleted(".stele/gates"))


def test_a_folder_for_temporary_files_that_is_deleted_during_a_gate_is_named(
    gate, delete, tmp_path, monkeypatch, capsys
):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    delete(folder, measure_with_workers)
    assert gate("--budget=60s") == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"stele: {deleted(folder)}"


@pytest.fixture
def two_at_once(monkeypatch):
    """Measure two passes at the same time. Yields the orders of each launch."""
    orders = []

    def measure_lanes(launcher, lanes, timeout):
        orders.append(lanes)
        return [measure_arms(launcher, lane, timeout) for lane in lanes]

    monkeypatch.setattr("stele.gate.timing.passes_at_once", lambda *_, **__: 2)
    monkeypatch.setattr("stele.gate.launcher.measure_lanes", measure_lanes)
    return orders


def test_two_passes_are_measured_at_the_same_time_in_separate_orders(gate, two_at_once):
    assert gate() == 0
    _, launches = entries()
    assert [launch["key"] for launch in launches] == [["long", "gru infer", n] for n in range(4)]
    assert [len(orders) for orders in two_at_once] == [2, 2]
    assert any(first != second for first, second in two_at_once)
    assert launches[0]["conditions"] == launches[1]["conditions"]
    assert launches[0]["took"] == launches[1]["took"] == launches[0]["conditions"]["seconds"] / 2


def test_a_launch_that_fails_beside_another_pass_is_repeated_alone(gate, two_at_once, monkeypatch):
    """Perhaps there is not enough memory for eight processes."""

    def fail(launcher, lanes, timeout):
        raise measure.SideFailed("repeat", WorkerError("Worker 'new' was killed."), lane=1)

    monkeypatch.setattr("stele.gate.launcher.measure_lanes", fail)
    assert gate() == 0
    _, launches = entries()
    assert [launch["key"][-1] for launch in launches] == [0, 1, 2]
    first, alone = launches[0]["rounds"]
    assert first["failures"] == {"repeat": "Worker 'new' was killed."} and alone["failures"] == {}
    assert set(first["arms"]) == {"old", "control", "new", "repeat"}


def test_a_resumed_gate_measures_only_the_pass_that_is_missing(gate, two_at_once):
    assert gate() == 0
    path, _ = entries()
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:2], *lines[3:]]))  # without the second pass
    two_at_once.clear()
    assert gate("--resume") == 0
    assert two_at_once == []  # alone
    assert sorted(launch["key"][-1] for launch in entries()[1]) == [0, 1, 2, 3]


def test_a_slower_step_is_a_regression(gate, capsys):
    assert gate(new={"seconds": slower(1.05)}) == 1
    out = printed(capsys)
    assert re.search(
        r"REGRESSED  gru infer  step  \[1\.\d+ 1\.050 1\.\d+\]  5\.0 % slower in 4 passes, p 0\.00", out
    )
    assert "REGRESSED: old to new. At least one metric regressed." in out


def test_a_faster_step_is_an_improvement_and_passes(gate, capsys):
    assert gate(new={"seconds": slower(0.9)}) == 0
    assert "10.0 % faster in 4 passes" in printed(capsys)


def test_memory_that_doubles_is_a_regression(gate, capsys):
    assert gate(new={"host_memory": 2**21}, metric="step,host-memory") == 1
    assert re.search(
        "REGRESSED  gru infer  host-memory  .*  2.0 times as large in [45] passes", printed(capsys)
    )


def test_short_launches_measure_memory_and_the_import_is_judged_only_once(gate, capsys):
    assert gate("--malloc=steady", metric="step,first-step,import,host-memory", phase=None) == 0
    out = printed(capsys)
    assert "gru infer  import" in out and "gru train  import" not in out
    kinds = {
        launch["key"][0]: [run["settings"]["malloc"] for run in launch["runs"].values()]
        for launch in entries()[1]
    }
    assert set(kinds["long"]) == {"steady"} and set(kinds["short"]) == {"plain"}


def test_a_gate_without_the_step_has_short_launches_alone(gate):
    assert gate(metric="import,first-step,host-memory") == 0
    assert {launch["key"][0] for launch in entries()[1]} == {"short"}


def test_device_memory_is_not_judged_on_a_machine_without_a_device(gate, capsys):
    assert gate(metric="step,device-memory") == 2
    assert "--metric device-memory needs a device with a memory of its own" in capsys.readouterr().err


def test_a_metric_without_numbers_is_inconclusive(gate, capsys):
    assert gate(new={"host_memory": None}, metric="step,host-memory") == 3
    assert "NEW reported no host-memory, so it cannot be compared." in printed(capsys)
    assert len([launch for launch in entries()[1] if launch["key"][0] == "short"]) == 1


def test_growth_below_the_tolerance_passes(gate, capsys):
    assert gate("--tolerance=3%", new={"seconds": slower(1.02)}) == 0
    assert "2.0 % slower, tolerance 3 %; at most" in printed(capsys)


def test_growth_above_the_tolerance_is_a_regression_whatever_the_margin(gate, capsys):
    assert gate("--margin=10%", new={"seconds": slower(1.02)}) == 1
    assert "REGRESSED" in printed(capsys)


def test_a_regression_is_printed_as_soon_as_it_is_certain(gate, capsys):
    assert gate(new={"seconds": slower(1.2)}, task="gru,cnn") == 1
    messages = capsys.readouterr().err.splitlines()
    first = next(
        number for number, line in enumerate(messages) if line.startswith("REGRESSED: gru infer step")
    )
    assert any(line.startswith("pass") for line in messages[first:])


def test_fail_fast_ends_at_the_first_regression(gate):
    assert gate("--fail-fast", new={"seconds": slower(1.2)}, task="gru,cnn", phase=None) == 1
    assert [launch["key"][1] for launch in entries()[1]][-1] == "gru infer"


@pytest.mark.parametrize(
    "failure, message",
    [("segfault", "killed by SIGSEGV"), ("raise_error", "no such kernel"), ("hang", "sent no message")],
)
def test_a_new_release_that_fails_is_broken(gate, capsys, failure, message):
    assert gate(f"--worker-timeout={SHORT}", new={"infer": failure}) == 1
    out = printed(capsys)
    assert "BROKEN  gru infer  all" in out and message in out
    assert len(entries()[1]) == 2  # the first pass alone is not certain enough


def test_a_new_release_that_does_not_import_is_broken(gate, capsys):
    assert gate(new={"configure": "raise_error"}) == 1
    assert "BROKEN" in printed(capsys)


def test_an_old_release_that_fails_is_inconclusive(gate, capsys):
    assert gate(old={"infer": "segfault"}) == 3
    assert "INCONCLUSIVE  gru infer  all" in printed(capsys)


def fails(monkeypatch, arms_that_fail):
    """Let each first attempt of a pass fail in the next of these arms."""
    arms_that_fail, alone = iter(arms_that_fail), []

    def measure_flakily(launcher, arms, timeout):
        failing = None if len(arms) == 1 else next(arms_that_fail, None)
        if failing is not None:
            raise measure.SideFailed(failing, WorkerError(f"Worker '{failing}' crashed now and then."))
        alone.append(arms)
        return measure_arms(launcher, arms, timeout)

    monkeypatch.setattr("stele.gate.launcher.measure_arms", measure_flakily)


def test_releases_that_fail_equally_often_are_not_broken(gate, monkeypatch):
    fails(monkeypatch, ["new", None, "old", None, "repeat", None, "control", None] * 5)
    assert gate() == 0


def test_a_few_failures_of_new_alone_may_be_chance(gate, monkeypatch):
    fails(monkeypatch, ["new", None, "repeat", None])
    assert gate() == 0


def test_a_release_that_fails_now_and_then_while_old_never_does_is_broken(gate, capsys, monkeypatch):
    monkeypatch.setattr("stele.gate.state.Launcher", functools.partial(Launcher, attempts=20))
    fails(monkeypatch, ["new"] * 12)
    assert gate() == 1
    assert "NEW failed in 12 of" in printed(capsys)


def test_if_both_releases_fail_new_is_not_blamed(gate, capsys):
    for seed in range(4):
        assert gate(f"--seed={seed}", old={"infer": "segfault"}, new={"infer": "segfault"}) == 3
        assert "OLD: Worker 'old' crashed" in printed(capsys)


def test_a_new_release_that_installs_but_does_not_import_is_broken(gate, capsys, monkeypatch, tmp_path):
    def make(environment, **_):
        if environment.name == "new":
            raise builds.ImportFailed("'new' was installed, but its import failed")

    monkeypatch.setattr(command, "make", make)
    assert gate(f"--junit={tmp_path / 'report.xml'}") == 1
    assert "BROKEN  all all  import  NEW: 'new' was installed" in printed(capsys)
    assert (tmp_path / "report.xml").exists()


def test_a_cell_that_only_old_has_is_missing(gate, capsys):
    assert gate(new={"absent": {"gru": "no recurrences"}}, task="gru,cnn") == 1
    assert "MISSING  gru infer  all" in printed(capsys)


def test_a_new_release_that_computes_something_different_is_broken_and_not_timed(gate, capsys):
    wrong = {**correct_numbers("gru"), "logits": [[0.0, 0.0]] * 16}
    assert gate(old={"numbers": correct_numbers("gru")}, new={"numbers": wrong}, metric="parity,step") == 1
    out = printed(capsys)
    assert "BROKEN  gru all  parity  NEW differs from OLD: logits differ (rung 3): relative error" in out
    assert "step" not in out


def test_a_new_release_that_computes_the_same_passes(gate, capsys):
    assert (
        gate(
            old={"numbers": correct_numbers("gru")}, new={"numbers": correct_numbers("gru")}, metric="parity"
        )
        == 0
    )
    assert "PASS  gru all  parity  all rungs agree, up to rung 9" in printed(capsys)


def test_a_loss_of_accuracy_is_a_regression(gate, capsys):
    scripts = {"old": {"accuracy": 0.80}, "new": {"accuracy": 0.77}}
    assert gate(metric="accuracy", phase="train", **scripts) == 1
    assert "REGRESSED  gru train  accuracy  mean accuracy loss +3.00 points" in printed(capsys)


def test_an_equal_accuracy_passes(gate, capsys):
    scripts = {
        "old": {"accuracy": 0.80, "losses": [2.0, 1.0]},
        "new": {"accuracy": 0.80, "losses": [2.1, 1.1]},
    }
    assert gate(metric="accuracy", phase="train", **scripts) == 0
    seeds = [run["settings"]["seed"] for launch in entries()[1] for run in launch["runs"].values()]
    assert seeds == [seed for seed in range(5) for _ in ("old", "new")]


def test_equal_losses_of_one_seed_are_enough(gate, capsys):
    scripts = {
        "old": {"accuracy": 0.80, "losses": [2.0, 1.0]},
        "new": {"accuracy": 0.801, "losses": [2.0001, 1.0]},
    }
    assert gate(metric="accuracy", phase="train", **scripts) == 0
    assert (
        "the losses of all 2 steps from one seed are equal (largest relative difference 5.0e-05)"
        in printed(capsys)
    )
    assert len(entries()[1]) == 1


def test_equal_losses_do_not_hide_a_lower_accuracy(gate):
    scripts = {"old": {"accuracy": 0.80, "losses": [2.0]}, "new": {"accuracy": 0.77, "losses": [2.0]}}
    assert gate(metric="accuracy", phase="train", **scripts) == 1


def test_an_unknown_accuracy_is_inconclusive(gate, capsys):
    assert gate(metric="accuracy", phase="train", old={"accuracy": 0.8}, new={"accuracy": None}) == 3
    assert "NEW reported no accuracy, so it cannot be compared." in printed(capsys)


@pytest.mark.parametrize(
    ("count", "status", "part"),
    [
        (4, "INCONCLUSIVE", "4 of 5 seeds"),
        (8, "INCONCLUSIVE", "More seeds are needed."),
        (20, "PASS", "margin 1 point"),
    ],
)
def test_accuracies_that_vary_between_seeds_take_more_seeds(count, status, part):
    losses = [0.003 * (5, -5, 3, -3, 1, -1)[seed % 6] for seed in range(count)]
    verdict = accuracy_verdict(("gru", "train"), losses, margin=0.01, looks=SEEDS)
    assert (verdict.status, part in verdict.message) == (status, True)


def test_accuracies_that_vary_too_much_are_inconclusive_after_the_last_seed():
    losses = [0.05 * (-1) ** seed for seed in range(20)]
    for count, part in ((12, "More seeds are needed"), (20, "The seeds differ too much")):
        verdict = accuracy_verdict(("gru", "train"), losses[:count], margin=0.01, looks=SEEDS)
        assert verdict.status == "INCONCLUSIVE" and part in verdict.message


@pytest.mark.parametrize(
    "middle, high, message",
    [
        (1.005, 1.017, "at most 1.7 %"),
        (0.9, 1.017, "at most 1.7 % slower"),
        (1.0, 1.017, "at most 1.7 % slower"),
        (0.9, 0.95, "at least 5.0 %"),
        (0.9, 1.0, "at worst the same"),
        (0.9, 2.5, "at most 2.5 times as long"),
        (1.5, 2.5, "at most 2.5 times as long"),
        (2.4, 2.5, "at most 2.5 times as long"),
    ],
)
def test_the_message_of_a_pass_names_its_upper_bound(middle, high, message):
    assert bound(middle, high, DURATION) == message


@pytest.mark.parametrize(
    "low, high, message",
    [
        (1.186, 1.235, "18.6 to 23.5 % slower"),
        (0.94, 0.98, "6.0 to 2.0 % faster"),
        (0.99, 1.02, "1.0 % faster to 2.0 % slower"),
        (1.0, 1.02, "the same to 2.0 % slower"),
        (1.0, 1.0, "the same"),
        (2.1, 3.4, "2.1 to 3.4 times as long"),
        (1.5, 3.4, "50.0 % slower to 3.4 times as long"),
    ],
)
def test_the_message_of_an_open_metric_names_its_interval(low, high, message):
    assert change_range(low, high, DURATION) == message


@pytest.mark.parametrize(
    ("ratio", "words", "message"),
    [
        (1.999, DURATION, "99.9 % slower"),
        (2.0, DURATION, "2.0 times as long"),
        (296.25, DURATION, "296 times as long"),
        (1411.012, DURATION, "1,411 times as long"),
        (0.003, DURATION, "99.7 % faster"),
        (15.278, SIZE, "15.3 times as large"),
        (1.5, SIZE, "50.0 % more"),
    ],
)
def test_a_growth_by_more_than_a_hundred_per_cent_is_a_factor(ratio, words, message):
    assert change(ratio, words) == message


def test_a_budget_that_is_too_small_is_reported_after_one_pass(gate, capsys):
    assert gate("--budget=0.00001s") == 3
    err = capsys.readouterr().err
    announced = "time and memory: most verdicts need 2 to 7 more passes, here about 0 s to 0 s"
    assert err.count(f"{announced}; the budget has 0 s left. That may be too little.") == 1
    assert "--budget" not in err  # the last line of the gate says what to continue with


def test_a_budget_that_is_too_small_is_reported_before_the_first_pass(gate, capsys):
    gate()
    capsys.readouterr()
    assert gate("--budget=0s") == 3
    err = capsys.readouterr().err
    assert "time and memory: most verdicts need 3 to 8 passes, here about 0 s to 0 s" in err
    assert "That may be too little" in err and "pass 1" not in err


def test_a_gate_without_a_budget_is_inconclusive_and_names_the_command_that_continues(gate, capsys):
    assert gate("--budget=0s") == 3
    out = printed(capsys)
    assert "step    Nothing was measured before the budget ran out." in re.sub("  +", "    ", out)
    words = "gate old new --metric=step --task=gru --phase=infer"
    assert out.endswith(f"continue with: stele {words} --resume --budget 2m\n")
    assert entry_point.main([*words.split(), "--resume", "--budget", "1m"]) == 0


@pytest.mark.parametrize(
    ("typed", "continued"),
    [
        ("gate a b", "gate a b --resume --budget 4m"),
        ("gate a b --budget 2m --phase infer", "gate a b --phase infer --resume --budget 4m"),
        ("gate a b --budget=2m --explain", "gate a b --explain --resume --budget 4m"),
        ("gate --bud 2m a b", "gate a b --resume --budget 4m"),
        ("gate --changed main --model m.py:f", "gate --changed main --model m.py:f --resume --budget 4m"),
        ("gate a b --resume --budget 2m", "gate a b --resume --budget 4m"),
        ("gate a b --resume=x.jsonl", "gate a b --resume=x.jsonl --budget 4m"),
        ("gate a b --res x.jsonl", "gate a b --res x.jsonl --budget 4m"),
        (
            "gate 'torch==2.12 a>1' b --with \"numpy<2\" --input ids=int:2x3:9 --metric parity,step --python 3 --x ''",
            "gate 'torch==2.12 a>1' b --with 'numpy<2' --input ids=int:2x3:9 --metric parity,step --python 3 --x '' "
            "--resume --budget 4m",
        ),
    ],
)
def test_the_command_that_continues_has_every_option_of_the_first_one(typed, continued):
    assert pages.continuation(shlex.split(typed), "4m") == f"stele {continued}"


def test_the_record_has_the_command_and_may_be_resumed_by_another_one(gate, capsys):
    assert gate("--budget=0s") == 3
    path, _ = entries()
    assert json.loads(path.read_text().splitlines()[0])["command"] == [
        "gate", "old", "new", "--metric=step", "--task=gru", "--phase=infer", "--budget=0s",
    ]  # fmt: skip
    capsys.readouterr()
    assert entry_point.main(["report"]) == 0
    words = "stele gate old new --metric=step --task=gru --phase=infer --resume .stele"
    assert words in " ".join(capsys.readouterr().out.split())
    assert gate("--budget=5m", "--resume") == 0


def test_the_order_of_the_arms_is_drawn_at_random(gate):
    gate()
    assert len({tuple(launch["runs"]) for launch in entries()[1]}) == 3


def test_a_control_that_differs_makes_every_metric_inconclusive(gate, capsys, monkeypatch):
    """The second launch of OLD is always slower, which no release can explain."""

    def measure_with_drift(launcher, arms, timeout):
        runs = measure_arms(launcher, arms, timeout)
        seconds = tuple(value * (1.3 if len(runs) > 1 else 1) for value in runs["control"].seconds)
        return {**runs, "control": dataclasses.replace(runs["control"], seconds=seconds)}

    monkeypatch.setattr("stele.gate.launcher.measure_arms", measure_with_drift)
    assert gate() == 3
    out = printed(capsys)
    assert "INCONCLUSIVE  gru infer  step" in out and "REGRESSED" not in out
    assert "The control failed: OLD differs from itself" in out


def test_a_gate_of_memory_alone_has_no_verdict_on_the_control(gate, capsys):
    assert gate(metric="host-memory") == 0
    assert "control" not in printed(capsys)


def test_a_pass_with_stolen_processor_time_does_not_count(gate, monkeypatch):
    stolen = {"0": True}
    monkeypatch.setattr(
        "stele.measuring.conditions.Conditions.excluded",
        property(lambda self: "stolen" if stolen.setdefault(str(self.seconds), len(stolen) < 3) else None),
    )
    assert gate() == 0
    assert len(entries()[1]) > 3


@pytest.mark.parametrize(
    ("share", "names", "message"),
    [
        (0.42, ["chrome", "make"], "Other processes use 42% of the processors: chrome, make. The verdict"),
        (0.42, [], "Other processes use 42% of the processors. The verdict needs more time."),
        (0.01, ["chrome"], None),
        (None, ["chrome"], None),
    ],
)
def test_a_busy_machine_is_said_once_and_stands_beside_the_verdict(
    gate, capsys, monkeypatch, share, names, message
):
    busy = Conditions(10.0, 0.0, share, None)
    monkeypatch.setattr("stele.gate.launcher.Monitor.conditions", lambda self: busy)
    monkeypatch.setattr("stele.gate.timing.busiest", lambda: names)
    assert gate("--budget=10m") == 0
    output = capsys.readouterr()
    assert output.err.count("Other processes use") == (message is not None)
    assert (message or "") in output.err
    shown = "Other processes used 42% of the processors in 3 of 3 passes." in output.out
    assert shown == (message is not None)
    summary = of_gates([replay.load(entries()[0])])
    assert any("Other processes used 42%" in cause for cause in summary.causes) == (message is not None)


def test_if_no_pass_counts_the_reason_is_named(gate, capsys, monkeypatch):
    reason = "the hypervisor took 12% of the processors"
    monkeypatch.setattr("stele.measuring.conditions.Conditions.excluded", property(lambda self: reason))
    monkeypatch.setattr("stele.gate.state.MAX_EXCLUDED", 4)
    assert gate() == 3
    assert f"4 of 4 passes do not count: {reason}. Use a machine that is idle." in printed(capsys)


def test_the_verdicts_are_printed_the_worst_first_and_the_status_last(gate, capsys):
    assert gate(new={"host_memory": 2**21}, metric="step,host-memory") == 1
    lines = capsys.readouterr().out.splitlines()
    statuses = [line.split()[0] for line in lines if re.match(r"[A-Z]+  .*gru", line)]
    assert statuses == ["REGRESSED", "PASS", "PASS"]  # memory, the step, the control
    assert any(line.startswith("REGRESSED: old to new.") for line in lines[len(statuses) :])


def test_the_cheapest_cell_comes_first_in_each_pass(gate):
    assert gate(task="cnn,gru", phase=None) == 0
    launched = [(launch["key"][2], launch["key"][1]) for launch in entries()[1]]
    assert launched[:4] == [(0, "gru infer"), (0, "cnn infer"), (0, "gru train"), (0, "cnn train")]
    assert launched == sorted(launched, key=lambda one: one[0])


def test_a_metric_that_is_decided_is_not_measured_again(gate):
    assert gate(new={"host_memory": 2**21}, metric="step,host-memory") == 1
    kinds = [launch["key"][0] for launch in entries()[1]]
    assert (kinds.count("long"), kinds.count("short")) == (3, 4)


@pytest.fixture
def counted(gate, monkeypatch):
    """The number of lines of the record, at the start of each pass."""
    lines = []

    def measure_and_count(launcher, arms, timeout):
        lines.append(sum(len(path.read_text().splitlines()) for path in Path(".stele/gates").iterdir()))
        return measure_arms(launcher, arms, timeout)

    monkeypatch.setattr("stele.gate.launcher.measure_arms", measure_and_count)
    return lines


def test_each_launch_is_on_disk_before_the_next_one_starts(gate, counted):
    assert gate() == 0
    assert counted == [1, 2, 3]  # the header, and one line for each earlier pass


def test_stored_launches_are_used_only_to_resume(gate, counted):
    for launches in (3, 6):
        assert gate() == 0
        assert len(counted) == launches
    assert gate("--resume") == 0
    assert len(counted) == 6


def test_an_internal_error_keeps_the_record(gate, monkeypatch, capsys):
    measured = []

    def fail_later(launcher, arms, timeout):
        measured.append(arms)
        return {}["fault"] if len(measured) == 2 else measure_arms(launcher, arms, timeout)

    monkeypatch.setattr("stele.gate.launcher.measure_arms", fail_later)
    assert gate() == 4
    assert "This is an error in Stele, not a verdict" in capsys.readouterr().err
    assert [launch["key"] for launch in entries()[1]] == [["long", "gru infer", 0]]
    assert gate("--resume") == 0


def test_accuracy_is_judged_after_three_fifths_of_the_budget(gate, monkeypatch):
    calls = []

    def measure_passes(trial, record, cells, say, *, share=1.0):
        calls.append(("time", share))
        return []

    monkeypatch.setattr(command.timing, "measure_passes", measure_passes)
    monkeypatch.setattr(command.correctness, "accuracy_verdicts", lambda *_: calls.append("accuracy") or [])
    gate(metric="step,accuracy", phase="train")
    assert calls == [("time", 0.6), "accuracy", ("time", 1.0)]


@pytest.mark.parametrize(
    ("loss", "spread", "status"),
    [
        (0.004, 0.0005, "PASS"),  # certain, and below half a point
        (0.006, 0.0005, "REGRESSED"),
        (0.006, 0.01, "INCONCLUSIVE"),  # not certain
        (0.0, 0.02, "INCONCLUSIVE"),  # a loss of one point is not ruled out
        (0.0, 0.002, "PASS"),
    ],
)
def test_an_accuracy_is_judged_by_what_is_certain_of_its_loss(loss, spread, status):
    losses = [loss + spread * part for part in (1, -1, 0.5, -0.5, 0)]
    assert accuracy_verdict(("gru", "train"), losses, margin=0.01, looks=SEEDS).status == status


# resuming


def test_an_interrupted_gate_resumes_and_gives_the_same_verdicts(gate, monkeypatch, capsys):
    assert gate(new={"seconds": slower(1.05)}) == 1
    complete = printed(capsys)
    path, launches = entries()
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:3]) + lines[3][:20])  # killed in the middle of a line
    assert gate("--resume", new={"seconds": slower(1.05)}) == 1
    assert printed(capsys) == complete
    resumed = entries()[1]
    assert [launch["key"] for launch in resumed] == [launch["key"] for launch in launches]
    assert resumed[:2] == launches[:2] and resumed[2] != launches[2]


@pytest.mark.parametrize("finished", [0, 2])
def test_an_interrupt_says_how_to_continue_if_a_result_is_saved(gate, monkeypatch, capsys, finished):
    passes = iter([measure_arms] * finished)

    def interrupted(*arguments):
        for measure_pass in passes:
            return measure_pass(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr("stele.gate.launcher.measure_arms", interrupted)
    assert gate("--budget", "9m") == 130
    command = "stele gate old new --metric=step --task=gru --phase=infer --budget 9m --resume"
    saved = f" Finished results are saved. Continue with: {command}" if finished else ""
    assert capsys.readouterr().err.splitlines()[-1] == f"stele: interrupted.{saved}"


def test_an_interrupt_before_the_record_speaks_of_no_results(gate, monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "prepare", interrupted)
    assert gate() == 130
    assert capsys.readouterr().err == "stele: interrupted.\n"


def test_a_record_of_another_version_of_stele_is_refused(gate, monkeypatch, capsys):
    gate()
    monkeypatch.setattr(content, "of_package", lambda package: {"measure.py": "0123"})
    assert gate("--resume") == 2
    assert "because what it measured has changed: Stele itself changed." in capsys.readouterr().err


def test_a_record_of_other_data_is_refused(gate, monkeypatch, capsys):
    gate()
    other = {**INPUTS, "data_origin": {"origin": "official", "fingerprint": "1"}}
    monkeypatch.setattr(measure, "inputs", lambda task: (other, None))
    assert gate("--resume") == 2
    message = "the data of gru was official 0 seeded and is now official 1 seeded."
    assert message in capsys.readouterr().err


def test_passes_of_two_contents_are_never_pooled(gate, monkeypatch, capsys):
    measured = []

    def measure_and_change(launcher, arms, timeout):
        measured.append(arms)
        if len(measured) == 2:  # in the middle of the second pass
            monkeypatch.setattr(content, "of_package", lambda package: {})
        return measure_arms(launcher, arms, timeout)

    monkeypatch.setattr("stele.gate.launcher.measure_arms", measure_and_change)
    assert gate() == 2
    assert "changed during the measurement: Stele itself changed." in capsys.readouterr().err
    assert [launch["key"] for launch in entries()[1]] == [["long", "gru infer", 0]]


def test_two_gates_that_start_in_the_same_second_have_two_records(gate):
    gate()
    gate()
    assert len(list(Path(".stele/gates").glob("*.jsonl"))) == 2


def test_the_newest_record_is_the_one_with_the_highest_number(tmp_path):
    path = tmp_path / "gate.jsonl"
    assert record.newest(path) is None
    written = [record.create(path, {"old": name}).path for name in ("first", "second", "third")]
    assert record.newest(path) == written[-1] == tmp_path / "gate-3.jsonl"


def test_a_record_of_a_different_machine_is_refused(gate, monkeypatch, capsys):
    gate()
    monkeypatch.setattr("stele.measuring.machine.processor", lambda: "Abacus 3000")
    assert gate("--resume") == 2
    assert "its processor was" in capsys.readouterr().err


def test_a_failed_launch_is_repeated_when_the_gate_resumes(gate, capsys, monkeypatch):
    monkeypatch.setattr(content, "of_environment", lambda *_, **__: {})  # whose script changes
    assert gate(new={"infer": "segfault"}) == 1
    assert gate("--resume") == 0


def test_an_arm_that_changed_its_release_is_refused(gate, capsys):
    gate(new={"seconds": slower(1.05)})
    path, _ = entries()
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line.replace('{"scripted": "1.0"}', '{"scripted": "0.9"}') for line in lines[:2]))
    assert gate("--resume", new={"seconds": slower(1.05)}) == 2
    assert "was {'scripted': '0.9'}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("recorded", "now", "said"),
    [
        ((), ("--metric=import",), "made with --metric step; now --metric import."),
        (("--metric=step,import",), (), "made with --metric step,import; now --metric step."),
        ((), ("--seed", "7"), "made without --seed; now --seed 7."),
        (("--seed=7", "--threads=1"), ("--budget=9m",), "made with --seed 7; now without --seed."),
        (
            (),
            ("--scale", "study", "--seed=7"),
            "made without --scale; now --scale study and without --seed; now",
        ),
    ],
)
def test_a_record_of_different_options_is_refused_and_they_are_named_as_they_were_typed(
    gate, capsys, recorded, now, said
):
    gate(*recorded)
    assert gate("--resume", *now) == 2
    error = capsys.readouterr().err
    assert f"it was {said}" in error.replace(" and with --threads 1; now without --threads", "")
    assert "with the options of the record" in error and "an older one" not in error


def test_an_older_record_that_may_fit_is_named(gate, capsys):
    gate("--seed=7")
    path, _ = entries()
    older = path.rename(path.with_name(f"20200101-000000{path.name[15:]}"))
    gate()
    assert gate("--seed=7", "--resume") == 2
    assert f"an older one may fit: --resume {older}" in capsys.readouterr().err
    assert gate("--seed=7", "--resume", str(older)) == 0


@pytest.mark.parametrize(
    "content, message",
    [
        ("", "not a gate's record: it has no schema number"),
        ("{\n", "is not JSON"),
        ('{"schema": 9}\n', "not a gate's record: schema 9"),
        ("[]\n", "is not a launch"),
        ('{"schema": 1}\n', "not a gate's record: it has no machine"),
        (
            '{"schema": 1, "machine": {}}\n{"run": 3}\n',
            "line 2, is not a launch: ValueError(\"it has no 'key'\")",
        ),
    ],
)
def test_the_error_names_a_damaged_record(gate, tmp_path, capsys, content, message):
    (tmp_path / "damaged.jsonl").write_text(content)
    assert gate(f"--resume={tmp_path / 'damaged.jsonl'}") == 2
    err = capsys.readouterr().err
    assert message in err and "damaged.jsonl" in err


def test_resume_without_a_record_is_an_error(gate, capsys):
    assert gate("--resume") == 2
    assert (
        "No record of old and new in .stele/gates to resume. Run without --resume." in capsys.readouterr().err
    )


def test_the_newest_record_may_have_a_number(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "FOLDER", tmp_path)
    first, later = (tmp_path / f"20261127-12000{second}-old-new.jsonl" for second in (0, 1))
    paths = [record.create(path, {}).path for path in (first, later, later)]
    assert command.newest_record("old-new") == paths[-1] == tmp_path / "20261127-120001-old-new-2.jsonl"


@pytest.mark.parametrize("at_once", [1, min(2, len(processors.lanes(1)))])
def test_ctrl_c_leaves_a_record_and_no_process(add_environment, tmp_path, at_once):
    add_environment("old", seconds=SECONDS, infer="hang_with_child")
    add_environment("new", seconds=SECONDS, infer="hang_with_child")
    line = [
        sys.executable,
        "-m",
        "stele",
        "gate",
        "old",
        "new",
        "--task=resnet50",
        "--phase=infer",
        "--metric=step",
        f"--at-once={at_once}",
    ]
    process = subprocess.Popen(line, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    wait_until(lambda: len(children.read_text().split()) == 4 * at_once)
    workers = children.read_text().split()
    grandchildren = [Path(f"/proc/{worker}/task/{worker}/children") for worker in workers]
    wait_until(lambda: any(path.read_text().split() for path in grandchildren))
    family = [*map(int, workers), *(int(pid) for path in grandchildren for pid in path.read_text().split())]
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(10) == 130
    assert process.stderr.read().endswith("stele: interrupted.\n")  # no launch had ended
    process.stderr.close()
    wait_until(lambda: not any(map(alive, family)))
    assert list((tmp_path / ".stele/gates").glob("*.jsonl"))


# reports


def test_a_report_shows_the_versions_of_the_packages_that_old_and_new_name(gate, monkeypatch, tmp_path):
    def installed(environment):
        return {"old": "3.1" if environment.name == "old" else "3.2", "numpy": "2.0"}

    monkeypatch.setattr("stele.commands.gate.packages.of_environment", installed)
    page = tmp_path / "page.md"
    assert gate(f"--markdown={page}") == 0
    text = page.read_text()
    assert "OLD and NEW differ in old 3.1 → 3.2." in text
    assert (
        "| package | old | 3.1 | 3.2 | yes |" in text
        and "| reported version | scripted | 1.0 | 1.0 | no |" in text
    )


def test_all_reports_contain_the_same_verdicts(gate, tmp_path):
    files = {kind: tmp_path / f"report.{kind}" for kind in ("json", "markdown", "junit")}
    assert gate(*(f"--{kind}={path}" for kind, path in files.items()), new={"seconds": slower(1.05)}) == 1
    facts = json.loads(files["json"].read_text())
    assert (facts["status"], facts["old"], facts["launches"]) == ("REGRESSED", "old", 16)
    assert facts["verdicts"][0]["ratio"]["middle"] == pytest.approx(1.05)
    assert facts["versions"] == {"old": {"scripted": "1.0"}, "new": {"scripted": "1.0"}}
    page = files["markdown"].read_text()
    assert page.startswith("# REGRESSED: old to new\n")
    assert page.split("\n\n")[1].startswith(
        "Do not upgrade yet: with new, a step of gru inference takes 5.0 % longer"
    )
    assert "| REGRESSED | gru infer | step |" in page and "5.0 % slower in 4 passes, p 0.0012 |" in page
    case, control = ElementTree.parse(files["junit"]).getroot()
    assert (case.get("classname"), case.get("name")) == ("gru.infer", "step")
    assert case.find("failure").get("type") == "REGRESSED"
    assert (control.get("name"), list(control)) == ("control", [])


def test_an_inconclusive_verdict_is_an_error_in_junit(gate, tmp_path):
    assert gate("--budget=0s", f"--junit={tmp_path / 'report.xml'}") == 3
    suite = ElementTree.parse(tmp_path / "report.xml").getroot()
    assert (suite.get("tests"), suite.get("errors")) == ("1", "1")


def test_an_error_message_is_escaped_in_reports(gate, tmp_path):
    files = [f"--markdown={tmp_path / 'page.md'}", f"--junit={tmp_path / 'page.xml'}"]
    assert gate(*files, new={"infer": "hostile_error"}) == 1
    page = (tmp_path / "page.md").read_text()
    assert "<script>" not in page and "\\<script\\>" in page
    ElementTree.parse(tmp_path / "page.xml")


# invalid options


@pytest.mark.parametrize(
    "options, message",
    [
        (["--metric=steps"], "Unknown metric 'steps'. Did you mean 'step'?"),
        (["--task=cn"], "Unknown task 'cn'. Did you mean 'cnn'?"),
        (["--task="], "--task '' contains no name"),
        (["--margin=5"], "--margin 5 is not a threshold. Use --margin 5% or --margin METRIC=5%"),
        (["--margin=parity=5%"], "--margin parity=5%"),
        (["--tolerance=nan%"], "--tolerance nan% is not a threshold."),
        (
            ["--tolerance=8%", "--margin=5%"],
            "The margin of step, 0.05, has to be above 0 and at least its tolerance",
        ),
        (["--threads=1000"], "--threads 1000 leaves no processor"),
        (["--metric=accuracy"], "--metric accuracy needs training, but --phase infer excludes it"),
        (
            ["--metric=loader,fed-step"],
            "--metric loader,fed-step needs training, but --phase infer excludes it",
        ),
        (
            ["--metric=latency", "--phase=train"],
            "--metric latency needs inference, but --phase train excludes it",
        ),
        (
            ["--metric=loader", "--phase=train"],
            "needs a task with loaders, and 'gru' has none. Add --task cnn.",
        ),
        (["--json=nowhere/report.json"], "nowhere/report.json cannot be written"),
    ],
)
def test_an_error_quotes_the_invalid_option(gate, capsys, options, message):
    assert gate(*options) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("task", "scale", "message"),
    [
        ("stack", "depth-63", "Unknown scale of stack 'depth-63'. Did you mean 'depth-64'?"),
        ("gru", "depth-64", "Unknown scale of gru 'depth-64'. Known: study, gate, quick, paper."),
        ("gru", "smoke", "Unknown scale of gru 'smoke'."),
    ],
)
def test_a_scale_that_a_task_does_not_have_is_an_error(gate, capsys, task, scale, message):
    assert gate(f"--task={task}", f"--scale={scale}") == 2
    assert message in capsys.readouterr().err


def test_an_unknown_environment_is_an_error(gate, capsys):
    assert entry_point.main(["gate", "torhc", "torch"]) == 2
    assert "Did you mean 'torch'?" in capsys.readouterr().err


def test_thresholds_are_parsed():
    assert thresholds.parse("--margin", ["2%", "host-memory=10%"]) == {"step": 0.02, "host-memory": 0.10}


def test_a_margin_is_raised_to_its_tolerance_and_a_tolerance_lowered_to_its_margin():
    metrics = {metric.name: metric for metric in thresholds.apply({"host-memory": 0.08}, {"import": 0.02})}
    assert (metrics["host-memory"].tolerance, metrics["host-memory"].margin) == (0.08, 0.08)
    assert (metrics["import"].tolerance, metrics["import"].margin) == (0.02, 0.02)
    assert (metrics["step"].tolerance, metrics["step"].margin) == (0.01, 0.05)


@pytest.mark.parametrize("text, value", [("90s", 90), ("20m", 1200), ("1.5h", 5400)])
def test_durations_are_parsed(text, value):
    assert options.parse_duration(text) == value
