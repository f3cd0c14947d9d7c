"""Which passes are measured, in which order, and when they end."""

import re
from types import SimpleNamespace

import pytest

from stele.gate import replay, timing
from stele.gate.gate import Gate
from stele.gate.metrics import LONG
from stele.gate.state import Probe, Result, State
from stele.gate.steps import LEAST
from stele.gate.trial import ARMS
from stele.measuring import measure
from stele.measuring.conditions import Conditions
from stele.measuring.worker import WorkerError
from stele.report.headline import of_gates
from stele.subjects import Cell
from tests.support.gates import CELL, answer, entries, measure_arms, per_lane, printed, runs_of, slower, trial_with
from tests.support.runs import changed


def test_equal_releases_pass_after_three_passes(gate, capsys):
    assert gate() == 0
    out = printed(capsys)
    assert re.search(
        r"^PASS  old → new\n  infer step  the same; at most \d.\d % slower \(3 passes, margin 5 %\)\n"
        r"  not judged  whether both compute the same, memory\n  details  stele report .stele/gates/\S+.jsonl\n$",
        out,
    )
    _, launches = entries()
    assert [launch["key"] for launch in launches] == [["long", "gru infer", n] for n in range(3)]
    assert all(set(launch["runs"]) == {"old", "control", "new", "repeat"} for launch in launches)


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

    def fail(lanes, *about, **options):
        if len(lanes) > 1:
            raise measure.SideFailed("repeat", WorkerError("Worker 'new' was killed."), lane=1)
        return per_lane(measure_arms, lanes, *about, **options)

    monkeypatch.setattr(measure, "measure_lanes", fail)
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


@pytest.mark.slow
def test_short_launches_measure_memory_and_the_import_is_judged_only_once(gate, capsys):
    assert gate("--malloc=steady", metric="step,first-step,import,host-memory", phase=None) == 0
    out = printed(capsys)
    assert "infer import  " in out and "train import" not in out
    kinds = {
        launch["key"][0]: [run["settings"]["malloc"] for run in launch["runs"].values()] for launch in entries()[1]
    }
    assert set(kinds["long"]) == {"steady"} and set(kinds["short"]) == {"mmap"}


def test_a_gate_without_the_step_has_short_launches_alone(gate):
    assert gate(metric="import,first-step,host-memory") == 0
    assert {launch["key"][0] for launch in entries()[1]} == {"short"}


def test_a_regression_is_printed_as_soon_as_it_is_certain(gate, capsys):
    assert gate(new={"seconds": slower(1.2)}, task="gru,cnn") == 1
    messages = capsys.readouterr().err.splitlines()
    first = next(number for number, line in enumerate(messages) if line.startswith("REGRESSED: gru infer step"))
    assert any("  pass " in line for line in messages[first:])


def test_fail_fast_ends_at_the_first_regression(gate):
    assert gate("--fail-fast", new={"seconds": slower(1.2)}, task="gru,cnn", phase=None) == 1
    launched = [launch["key"] for launch in entries()[1]]
    # all four cells are slower, so they are certain together, after fewer passes than one of them alone
    assert launched[-1] == ["long", "cnn train", 2]


def test_a_budget_that_is_too_small_is_reported_after_one_pass(gate, capsys):
    assert gate("--budget=0.00001s") == 3
    err = capsys.readouterr().err
    announced = "  time, memory   most verdicts need 2 to 7 more passes, here about 0 s to 0 s"
    assert err.count(f"{announced}; the budget has 0 s left. That may be too little.") == 1
    assert "--budget" not in err  # the last line of the gate says what to continue with


def test_a_budget_that_is_too_small_is_reported_before_the_first_pass(gate, capsys):
    gate()
    capsys.readouterr()
    assert gate("--budget=0.001s") == 3
    err = capsys.readouterr().err
    assert "  time, memory   most verdicts need 3 to 8 passes, here about 0 s to 0 s" in err
    assert err.index("That may be too little") < err.index("pass 1")


def test_the_order_of_the_arms_is_drawn_at_random(gate):
    gate()
    assert len({tuple(launch["runs"]) for launch in entries()[1]}) == 3


def test_a_pass_on_a_gpu_that_was_throttled_does_not_count(gate, monkeypatch):
    throttled = {"0": True}
    monkeypatch.setattr(
        "stele.measuring.conditions.Conditions.excluded",
        property(lambda self: "hot" if throttled.setdefault(str(self.seconds), len(throttled) < 3) else None),
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
def test_a_busy_machine_is_said_once_and_stands_beside_the_verdict(gate, capsys, monkeypatch, share, names, message):
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


def test_time_that_the_hypervisor_took_stands_beside_the_verdict_and_excludes_no_pass(gate, capsys, monkeypatch):
    stolen = Conditions(10.0, 0.12, 0.0, None)
    monkeypatch.setattr("stele.gate.launcher.Monitor.conditions", lambda self: stolen)
    assert gate("--budget=10m") == 0
    assert "The hypervisor took 12% of the processors in 3 of 3 passes. A busy machine needs more" in printed(capsys)


def test_if_no_pass_counts_the_reason_is_named(gate, capsys, monkeypatch):
    reason = "the GPU was throttled"
    monkeypatch.setattr("stele.measuring.conditions.Conditions.excluded", property(lambda self: reason))
    monkeypatch.setattr("stele.gate.state.MAX_EXCLUDED", 4)
    assert gate() == 3
    assert f"4 of 4 passes do not count: {reason}. Cool it, or lock its clocks." in printed(capsys)


@pytest.mark.slow
def test_the_cheapest_cell_comes_first_in_each_pass(gate):
    assert gate(task="cnn,gru", phase=None) == 0
    launched = [(launch["key"][2], launch["key"][1]) for launch in entries()[1]]
    assert launched[:4] == [(0, "gru infer"), (0, "gru train"), (0, "cnn infer"), (0, "cnn train")]
    assert launched == sorted(launched, key=lambda one: one[0])


def test_a_metric_that_is_decided_is_not_measured_again(gate):
    assert gate(new={"host_memory": 2**21}, metric="step,host-memory") == 1
    kinds = [launch["key"][0] for launch in entries()[1]]
    assert (kinds.count("long"), kinds.count("short")) == (3, 4)


@pytest.mark.slow
def test_a_launch_measures_inference_and_then_training_of_a_task(gate, monkeypatch):
    phases = []

    def measure_lanes(lanes, plans, *about, **options):
        phases.append([plan.phase for plan in plans])
        return per_lane(measure_arms, lanes, plans, *about, **options)

    monkeypatch.setattr(measure, "measure_lanes", measure_lanes)
    assert gate(phase=None) == 0
    assert phases == [["infer", "train"]] * 3
    of_passes = {}
    for launch in entries()[1]:
        of_passes.setdefault(launch["key"][2], set()).add(launch["conditions"]["seconds"])
    assert [len(seconds) for seconds in of_passes.values()] == [1, 1, 1]
    phases.clear()
    assert gate(phase="train") == 0 and phases == [["train"]] * 3


def with_noise(phase):
    """Return what answers in place of workers, with noise in the steps of a phase."""
    numbers = iter(range(1000))

    def measure_arms_with_noise(sides, plan, settings, timeout):
        runs = measure_arms(sides, plan, settings, timeout)
        if plan.phase != phase:
            return runs
        number = next(numbers)
        return {
            arm: changed(run, steps={"seconds": slower(1 + (0.04 if (number + place) % 2 else 0))})
            for place, (arm, run) in enumerate(sorted(runs.items()))
        }

    return measure_arms_with_noise


@pytest.mark.parametrize("noisy", ["infer", "train"])
def test_training_follows_inference_until_training_is_decided(gate, monkeypatch, noisy):
    """So what training needs in memory is that after inference, in all passes."""
    answer(monkeypatch, with_noise(noisy))
    gate(phase=None)
    cells = [launch["key"][1] for launch in entries()[1]]
    of_infer, of_train = cells.count("gru infer"), cells.count("gru train")
    assert (of_infer > of_train == 3) if noisy == "infer" else (of_infer == of_train > 3)


@pytest.mark.slow
def test_a_training_that_fails_is_not_counted_against_inference(gate, capsys):
    assert gate(phase=None, new={"train": "segfault"}) == 1
    out = printed(capsys)
    assert "BROKEN" in out and "BROKEN  train: NEW failed" in out
    failed = [launch["key"][1] for launch in entries()[1] if launch["runs"] is None]
    assert set(failed) == {"gru train"}


@pytest.mark.parametrize(
    ("needed", "said"),
    [
        (None, ", at most 1.0 min left"),  # not known yet
        (30.0, ", about 30 s left"),
        (90.0, ", about 1.5 min needed, 1.0 min of the budget left"),
        (0.0, ""),
    ],
)
def test_the_time_left_is_that_of_the_passes_still_needed_and_not_that_of_the_budget(needed, said):
    assert timing.time_left(60.0, needed) == said


def test_all_metrics_of_a_launch_need_its_passes_once(monkeypatch):
    metrics = trial_with(["step", "host-memory"]).metrics
    state = State([CELL], metrics)
    [probe] = [one for one in state.results if one.kind == LONG]
    monkeypatch.setattr(State, "passes_needed", lambda self: {probe: [3, 5]})
    assert state.seconds_to_end() is None  # no pass shows how long one takes
    state.results[probe].append(Result({}, [], None, 2.0))
    assert state.seconds_to_end() == 10.0
    monkeypatch.setattr(State, "passes_needed", lambda self: {probe: [3, None]})
    assert state.seconds_to_end() is None


def test_the_phases_of_a_task_share_the_start_of_a_launch(run):
    conditions = Conditions(seconds=60.0, steal=0.0, foreign=0.0, gpu=None)
    infer, train = (Probe(Cell("gru", phase), LONG) for phase in ("infer", "train"))
    runs = {probe: runs_of(run, seconds, 0.0) for probe, seconds in ((infer, 0.1), (train, 0.4))}
    results = {probe: [Result(of_probe, [], conditions, 30.0)] for probe, of_probe in runs.items()}
    steps_of_all = sum(sum(each.steps.seconds) for of_probe in runs.values() for each in of_probe.values())
    for probe, of_probe in runs.items():
        assert timing.starts_of(probe, results) == [(of_probe, pytest.approx((60 - steps_of_all) / len(ARMS) / 2))]
    results[train] = [Result({}, [], conditions, 30.0)]  # its launches failed
    assert timing.starts_of(train, results) == []


def test_a_phase_that_is_decided_has_few_steps_in_the_launches_of_the_other(run, monkeypatch):
    trial = trial_with(["step"], Cell("gru", "infer"), Cell("gru", "train"))
    infer, train = (Probe(cell, LONG) for cell in trial.cells)
    conditions = Conditions(seconds=60.0, steal=0.0, foreign=0.0, gpu=None)
    results = {probe: [Result(runs_of(run, 0.001, 0.05), [], conditions, 30.0)] for probe in (infer, train)}
    gate = Gate(trial, SimpleNamespace(spent=0.0))
    counts = [
        [plan.options.steps for plan in timing.launcher_of(gate, [infer, train], results, decided).plans]
        for decided in ((), (infer,))
    ]
    assert counts[0][0] > LEAST and counts[1] == [LEAST, counts[0][1]]
