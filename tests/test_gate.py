"""The gate as a user runs it, on environments that return scripted numbers."""

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

from fakes import correct_numbers
from processes import alive, wait_until
from stele import __main__ as entry_point
from stele.commands import gate as command
from stele.commands import options
from stele.environments import builds
from stele.gate import trial
from stele.gate.correctness import SEEDS
from stele.gate.verdict import accuracy_verdict, bound, change_range
from stele.measuring import measure
from stele.measuring.run import Run
from stele.measuring.worker import WorkerError

SECONDS = [0.5, *[0.010, 0.011, 0.012] * 16]
INPUTS = {"data": None, "data_origin": {"origin": "official", "fingerprint": "0"}}


def printed(capsys):
    """Return what was printed, with two spaces between columns."""
    return re.sub("  +", "  ", capsys.readouterr().out)


def slower(by):
    return [by * value for value in SECONDS]


measure_with_workers = trial.measure_arms


def measure_arms(subject, cell, arms, settings, scale, **options):
    """Return the Runs that scripted workers would give. Workers are started only if one is to fail."""
    scripts = {arm: json.loads(subject.arm(arm).variables["SCRIPT"]) for arm in arms}
    if any({"configure", cell.phase} & set(script) for script in scripts.values()):
        return measure_with_workers(subject, cell, arms, settings, scale, **options)
    return {
        arm: scripted_run(subject.arm(arm), script, cell, settings, scale) for arm, script in scripts.items()
    }


def scripted_run(environment, script, cell, settings, scale):
    return Run.from_dict(
        {
            "when": datetime.now(timezone.utc).isoformat(),
            "environment": environment.name,
            "label": environment.label,
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
def gate(add_environment, monkeypatch):
    """gate(new={...}, *options) -> exit status of a gate from a steady OLD to a NEW with this script."""
    monkeypatch.setattr(measure, "inputs", lambda task: (INPUTS, None))
    monkeypatch.setattr(trial, "measure_arms", measure_arms)

    def gate(*options, old=None, new=None, metric="step", task="gru", phase="infer"):
        add_environment("old", **{"seconds": SECONDS, **(old or {})})
        add_environment("new", **{"seconds": SECONDS, **(new or {})})
        defaults = [f"--metric={metric}", f"--task={task}", *([f"--phase={phase}"] if phase else [])]
        return entry_point.main(["gate", "old", "new", *defaults, *options])

    return gate


def entries(folder=Path(".stele/gates")):
    [path] = folder.glob("*.jsonl")
    return path, [json.loads(line) for line in path.read_text().splitlines()[1:]]


def test_equal_releases_pass_after_six_pairs(gate, capsys):
    assert gate() == 0
    out = printed(capsys)
    assert (
        "PASS  gru infer  step  [1.000 1.000 1.000]  the same; at worst the same (6 pairs, margin 5 %)" in out
    )
    assert out.endswith("PASS: old to new. No regression: every metric is within its margin.\n")
    _, launches = entries()
    assert [launch["key"] for launch in launches] == [["long", "gru infer", n] for n in range(6)]
    # the control measures OLD a second time
    assert all(set(launch["runs"]) == {"old", "new", "control"} for launch in launches)


def test_a_slower_step_is_a_regression(gate, capsys):
    assert gate(new={"seconds": slower(1.05)}) == 1
    out = printed(capsys)
    assert "REGRESSED  gru infer  step  [1.050 1.050 1.050]  5.0 % slower in 10 pairs, p 0.00098" in out
    assert "REGRESSED: old to new. At least one metric regressed." in out


def test_a_faster_step_is_an_improvement_and_passes(gate, capsys):
    assert gate(new={"seconds": slower(0.9)}) == 0
    assert "IMPROVED  gru infer  step  [0.900 0.900 0.900]  10.0 % faster in 10 pairs" in printed(capsys)


def test_memory_that_doubles_is_a_regression(gate, capsys):
    assert gate(new={"host_memory": 2**21}, metric="step,host-memory") == 1
    assert "REGRESSED  gru infer  host-memory  [2.000 2.000 2.000]  100.0 % more in 10 pairs" in printed(
        capsys
    )


def test_short_launches_measure_everything_but_the_step_and_the_import_only_once(gate, capsys):
    assert gate(metric="step,first-step,import,host-memory", phase=None) == 0
    out = printed(capsys)
    assert "gru infer  import" in out and "gru train  import" not in out
    kinds = {
        launch["key"][0]: [run["settings"]["malloc"] for run in launch["runs"].values()]
        for launch in entries()[1]
    }
    assert set(kinds["long"]) == {"steady"} and set(kinds["short"]) == {"plain"}


def test_a_gate_without_the_step_has_a_control(gate):
    assert gate(metric="import") == 0
    assert all(set(launch["runs"]) == {"old", "new", "control"} for launch in entries()[1])


def test_device_memory_is_not_judged_on_a_machine_without_a_device(gate, capsys):
    assert gate(metric="step,device-memory") == 0
    assert "device-memory" not in printed(capsys)


@pytest.mark.parametrize(
    "failure, message",
    [("segfault", "killed by SIGSEGV"), ("raise_error", "no such kernel"), ("hang", "sent no message")],
)
def test_a_new_release_that_fails_is_broken(gate, capsys, failure, message):
    assert gate("--worker-timeout=0.5", new={"infer": failure}) == 1
    out = printed(capsys)
    assert "BROKEN  gru infer  all" in out and message in out
    assert len(entries()[1]) == 1  # the launch is not repeated


def test_a_new_release_that_does_not_import_is_broken(gate, capsys):
    assert gate(new={"configure": "raise_error"}) == 1
    assert "BROKEN" in printed(capsys)


def test_an_old_release_that_fails_is_inconclusive(gate, capsys):
    assert gate(old={"infer": "segfault"}) == 3
    assert "INCONCLUSIVE  gru infer  all" in printed(capsys)


def test_a_new_release_that_fails_now_and_then_is_broken(gate, capsys, monkeypatch):
    """Each launch of NEW succeeds at its second attempt, and each of OLD at its first."""
    calls = itertools.count()

    def measure_flakily(*arguments, **options):
        if next(calls) % 2 == 0:
            raise measure.SideFailed("new", WorkerError("Worker 'new' crashed now and then."))
        return measure_arms(*arguments, **options)

    monkeypatch.setattr(trial, "measure_arms", measure_flakily)
    assert gate() == 1
    assert "that of OLD in none: Worker 'new' crashed now and then." in printed(capsys)


def test_if_both_releases_fail_new_is_not_blamed(gate, capsys):
    for seed in range(4):
        assert gate(f"--seed={seed}", old={"infer": "segfault"}, new={"infer": "segfault"}) == 3
        assert "OLD: Worker 'old' crashed" in printed(capsys)


def test_a_new_release_that_installs_but_does_not_import_is_broken(gate, capsys, monkeypatch, tmp_path):
    def make(environment):
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
    scripts = {"old": {"accuracy": 0.80}, "new": {"accuracy": 0.80}}
    assert gate(metric="accuracy", phase="train", **scripts) == 0
    seeds = [run["settings"]["seed"] for launch in entries()[1] for run in launch["runs"].values()]
    assert seeds == [seed for seed in range(5) for _ in ("old", "new")]


@pytest.mark.parametrize(
    ("count", "status", "part"),
    [
        (4, "INCONCLUSIVE", "4 of 5 seeds"),
        (8, "INCONCLUSIVE", "More seeds are needed. Raise --budget."),
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
    ],
)
def test_the_message_of_a_pass_names_its_upper_bound(middle, high, message):
    assert bound(middle, high, ("slower", "faster")) == message


@pytest.mark.parametrize(
    "low, high, message",
    [
        (1.186, 1.235, "18.6 to 23.5 % slower"),
        (0.94, 0.98, "6.0 to 2.0 % faster"),
        (0.99, 1.02, "1.0 % faster to 2.0 % slower"),
        (1.0, 1.02, "the same to 2.0 % slower"),
        (1.0, 1.0, "the same"),
    ],
)
def test_the_message_of_an_open_metric_names_its_interval(low, high, message):
    assert change_range(low, high, ("slower", "faster")) == message


def test_a_budget_that_is_too_small_is_reported_after_one_pass(gate, capsys):
    assert gate("--budget=0.00001s") == 3
    err = capsys.readouterr().err
    assert "A verdict needs 6 to 16 passes" in err and err.count("--resume to keep what was measured") == 1
    assert gate("--budget=0.00001s", "--resume") == 3
    assert "to keep what was measured" not in capsys.readouterr().err  # not repeated for recorded passes


def test_a_gate_without_a_budget_is_inconclusive_and_names_the_command_that_continues(gate, capsys):
    assert gate("--budget=0s") == 3
    out = printed(capsys)
    assert "step  Only 0 pairs were measured before the budget ran out; at least 6 are needed." in out
    assert out.endswith("continue with: stele gate old new --resume --budget 1m\n")


def test_the_order_of_the_arms_is_drawn_at_random(gate):
    gate()
    orders = {tuple(arm for arm in launch["runs"] if arm != "control") for launch in entries()[1]}
    assert orders == {("old", "new"), ("new", "old")}


@pytest.fixture
def set_differences(monkeypatch):
    """set_differences(new=..., control=...): replace the measured differences of each arm to OLD."""

    def set_differences(**arms):
        monkeypatch.setattr(
            "stele.gate.timing.differences",
            lambda metric, pairs, arm: [arms[arm](number) for number in range(len(pairs))],
        )

    return set_differences


def test_a_control_that_differs_makes_every_metric_inconclusive(gate, capsys, set_differences):
    set_differences(new=lambda number: 0.15, control=lambda number: 0.15 + 0.001 * number)
    assert gate() == 3
    out = printed(capsys)
    assert "INCONCLUSIVE  gru infer  step" in out and "REGRESSED" not in out
    assert "The control failed: OLD differs from itself" in out


def test_a_control_that_stays_undecided_does_not_pass(gate, capsys, set_differences):
    set_differences(new=lambda number: 0.0, control=lambda number: 0.3 * (-1) ** number)
    assert gate() == 3
    out = printed(capsys)
    assert "PASS" in out and "could not be shown to be equal" in out
    assert max(launch["key"][2] for launch in entries()[1]) == 33  # all looks were used


def test_a_gate_of_memory_alone_has_no_control(gate):
    assert gate(metric="host-memory") == 0
    assert all(set(launch["runs"]) == {"old", "new"} for launch in entries()[1])


def test_a_pair_with_stolen_processor_time_does_not_count(gate, capsys, monkeypatch):
    stolen = iter([True, True, True])
    monkeypatch.setattr(
        "stele.gate.conditions.Conditions.excluded",
        property(lambda self: "stolen" if next(stolen, None) else None),
    )
    assert gate() == 0
    assert max(launch["key"][2] for launch in entries()[1]) > 5


# resuming


def test_an_interrupted_gate_resumes_and_gives_the_same_verdicts(gate, monkeypatch, capsys):
    assert gate(new={"seconds": slower(1.05)}) == 1
    complete = printed(capsys)
    path, launches = entries()
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:5]) + lines[5][:20])  # killed in the middle of a line
    assert gate("--resume", new={"seconds": slower(1.05)}) == 1
    assert printed(capsys) == complete
    resumed = entries()[1]
    assert [launch["key"] for launch in resumed] == [launch["key"] for launch in launches]
    assert resumed[:4] == launches[:4] and resumed[5] != launches[5]


def test_a_record_of_a_different_machine_is_refused(gate, monkeypatch, capsys):
    gate()
    monkeypatch.setattr("stele.measuring.machine.processor", lambda: "Abacus 3000")
    assert gate("--resume") == 2
    assert "its processor was" in capsys.readouterr().err


def test_a_failed_launch_is_repeated_when_the_gate_resumes(gate, capsys):
    assert gate(new={"infer": "segfault"}) == 1
    assert gate("--resume") == 0


def test_an_arm_that_changed_its_release_is_refused(gate, capsys):
    gate(new={"seconds": slower(1.05)})
    path, _ = entries()
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line.replace('{"scripted": "1.0"}', '{"scripted": "0.9"}') for line in lines[:6]))
    assert gate("--resume", new={"seconds": slower(1.05)}) == 2
    assert "was {'scripted': '0.9'}" in capsys.readouterr().err


def test_a_record_of_different_options_is_refused(gate, capsys):
    gate()
    assert gate("--resume", metric="import") == 2
    assert "its metrics was {'step': 0.05} and is now {'import': 0.25}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content, message",
    [
        ("", "not a gate's record: it has no schema number"),
        ("{\n", "is not JSON"),
        ('{"schema": 9}\n', "not a gate's record: schema 9"),
        ("[]\n", "is not a launch"),
        ('{"schema": 1}\n', "lines that are not launches"),
        ('{"schema": 1, "machine": {}}\n{"run": 3}\n', "lines that are not launches"),
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


def test_ctrl_c_leaves_a_record_and_no_process(add_environment, tmp_path):
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
    ]
    process = subprocess.Popen(line, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    wait_until(lambda: len(children.read_text().split()) == 3)
    workers = children.read_text().split()
    grandchildren = [Path(f"/proc/{worker}/task/{worker}/children") for worker in workers]
    wait_until(lambda: any(path.read_text().split() for path in grandchildren))
    family = [*map(int, workers), *(int(pid) for path in grandchildren for pid in path.read_text().split())]
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(10) == 130
    assert "interrupted. Finished results are saved." in process.stderr.read()
    process.stderr.close()
    wait_until(lambda: not any(map(alive, family)))
    assert list((tmp_path / ".stele/gates").glob("*.jsonl"))


# reports


def test_all_reports_contain_the_same_verdicts(gate, tmp_path):
    files = {kind: tmp_path / f"report.{kind}" for kind in ("json", "markdown", "junit")}
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


def test_an_inconclusive_verdict_is_an_error_in_junit(gate, tmp_path):
    assert gate("--budget=0s", f"--junit={tmp_path / 'report.xml'}") == 3
    suite = ElementTree.parse(tmp_path / "report.xml").getroot()
    assert (suite.get("tests"), suite.get("errors")) == ("2", "2")


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
        (["--margin=5"], "--margin 5 is not a margin. Use --margin 5% or --margin METRIC=5%"),
        (["--margin=parity=5%"], "--margin parity=5%"),
        (["--threads=0"], "at least one thread"),
        (["--threads=1000"], "--threads 1000 leaves no processor"),
        (["--metric=accuracy"], "--metric accuracy needs training, but --phase infer excludes it"),
        (["--json=nowhere/report.json"], "nowhere/report.json cannot be written"),
    ],
)
def test_an_error_quotes_the_invalid_option(gate, capsys, options, message):
    assert gate(*options) == 2
    assert message in capsys.readouterr().err


def test_an_unknown_environment_is_an_error(gate, capsys):
    assert entry_point.main(["gate", "torhc", "torch"]) == 2
    assert "Did you mean 'torch'?" in capsys.readouterr().err


def test_margins_are_parsed():
    margins = {metric.name: metric.margin for metric in command.parse_margins(["2%", "host-memory=10%"])}
    assert (margins["step"], margins["host-memory"], margins["import"]) == (0.02, 0.10, 0.25)


@pytest.mark.parametrize("text, value", [("90s", 90), ("20m", 1200), ("1.5h", 5400)])
def test_durations_are_parsed(text, value):
    assert options.parse_duration(text) == value
