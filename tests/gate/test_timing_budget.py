"""The gate keeps to its budget, however long a step of a release takes. Launches are scripted; the clock is virtual."""

import random
import re
from types import SimpleNamespace

import pytest

from stele import __main__ as entry_point
from stele.gate import steps, timing
from stele.measuring.conditions import Conditions
from stele.measuring.measure import SideFailed
from stele.measuring.worker import WorkerError
from stele_worker.clock import is_over
from tests.support.gates import INPUTS, answer, scripted_run
from tests.support.runs import changed

START = 4.0  # seconds until a launch begins with its steps


class Clock:
    """A virtual clock. It is also the Monitor of a launch."""

    now = 0.0
    launched = 0

    def __call__(self, settings, session=None, lanes=1):
        began = self.now
        return Watch(self, began)


class Watch:
    def __init__(self, clock, began):
        self.clock, self.began = clock, began

    @property
    def seconds(self):
        return self.clock.now - self.began

    def conditions(self):
        return Conditions(self.seconds, 0.0, 0.0, None)


@pytest.fixture
def gate(add_environment, monkeypatch):
    """gate(old, new, *options) -> (exit code, virtual seconds).

    A release is (seconds of the first step, of others), perhaps with the bytes that it uses.
    """
    clock, draw = Clock(), random.Random(7)
    releases = {}

    def seconds_of(plan, first, other):
        seconds = [first]
        while len(seconds) < plan.options.steps and not is_over(seconds, plan.options.limit):
            seconds.append(other * draw.gauss(1, 0.005))
        return seconds

    def measure_arms(sides, plan, settings, timeout):
        runs = {}
        for arm, environment in sides.items():
            clock.now += START
            clock.launched += 1
            release = releases[environment.name]
            if release == "hangs":
                clock.now += timeout
                raise SideFailed(arm, WorkerError(f"Worker '{arm}' sent no message for {timeout:g} s"))
            if release == "fails":
                raise SideFailed(arm, WorkerError(f"Worker '{arm}' crashed"))
            memory = release[2] if len(release) > 2 else 2**20
            script = {"seconds": seconds_of(plan, *release[:2]), "host_memory": memory}
            run = scripted_run(environment, script, plan, settings[arm])
            runs[arm] = changed(run, options={"turn": 1})
            clock.now += sum(run.steps.seconds)
        return runs

    monkeypatch.setattr("stele.gate.preparation.say_conditions", lambda trial: None)
    monkeypatch.setattr("stele.measuring.measure.inputs", lambda task: (INPUTS, None))
    monkeypatch.setattr("stele.gate.launcher.Monitor", clock)
    answer(monkeypatch, measure_arms)

    def gate(old, new, *options, metric="step,host-memory"):
        releases.update(old=old, new=new)
        for name in releases:
            add_environment(name)
        command = ["gate", "old", "new", f"--metric={metric}", "--task=gru", "--phase=infer", *options]
        return entry_point.main(command), clock.now

    return gate


def test_a_step_that_takes_a_thousand_times_as_long_is_a_regression_within_the_budget(gate, capsys):
    code, seconds = gate((0.05, 0.006), (8.0, 8.0), "--budget=4m")
    assert code == 1
    out = " ".join(capsys.readouterr().out.split())
    assert re.search(r"REGRESSED infer step: 1,3\d\d times as long in 4 passes", out)
    assert seconds <= 240 + 4 * (START + 24)  # and one pass at most


def test_a_step_that_takes_a_thousand_times_as_long_leaves_time_for_the_memory(gate, capsys):
    code, seconds = gate((0.05, 0.001), (1.0, 1.0, 15 * 2**20), "--budget=4m")
    assert code == 1 and seconds <= 240
    out = capsys.readouterr().out
    for metric, message in (
        ("step", r"(1,0\d\d|99\d) times as long"),
        ("host-memory", "15.0 times as large"),
    ):
        assert re.search(rf"^  REGRESSED +infer {metric}: {message} in \d passes", out, flags=re.M), out


@pytest.mark.parametrize(
    ("old", "new", "statuses"),
    [
        ((8.0, 8.0), (0.05, 0.006), {"step": "IMPROVED"}),
        ((0.1, 0.01), (10.0, 0.01), {"step": "PASS", "first-step": "REGRESSED"}),
        ((8.0, 8.0), (8.0, 8.0), {}),
        ((0.05, 0.006), (90.0, 90.0), {}),
    ],
    ids=["old is slow", "only the first step is slow", "both are slow", "a step is longer than a share"],
)
def test_no_release_makes_the_gate_exceed_its_budget_by_more_than_a_pass(gate, capsys, old, new, statuses):
    _, seconds = gate(old, new, "--budget=4m", metric="step,first-step")
    limit = 240 / (steps.PASSES * 4)
    longest = 4 * START + 2 * sum(first + max(2 * other, limit + other) for first, other in (old, new))
    assert seconds <= 240 + longest
    out = capsys.readouterr().out
    for metric, status in statuses.items():
        label = rf"infer {metric} " if status == "PASS" else rf"{status} +infer {metric}: "
        assert re.search(f"^  {label}", out, flags=re.M), out


@pytest.mark.parametrize("failure", ["hangs", "fails"])
@pytest.mark.parametrize("budget", [30, 120])
def test_a_release_that_fails_does_not_exceed_the_budget_by_more_than_a_launch(gate, capsys, failure, budget):
    code, seconds = gate((0.05, 0.006), failure, f"--budget={budget}s", "--worker-timeout=60", metric="step")
    assert code in (1, 3)
    assert seconds <= budget + START + 60 + START
    assert ("BROKEN" if code == 1 else "too few to exclude chance") in capsys.readouterr().out


def test_the_one_advice_about_the_budget_is_what_the_verdict_needs(gate, capsys):
    """A gate that runs out of its budget names one budget, with which it then has a verdict."""
    code, _ = gate((0.1, 0.1), (0.102, 0.102), "--budget=20s", metric="step")
    output = capsys.readouterr()
    [budget] = re.findall(r"--budget (\d+)m", output.out + output.err)
    assert code == 3 and 1 <= int(budget) <= 10
    code, _ = gate((0.1, 0.1), (0.102, 0.102), f"--budget={budget}m", "--resume", metric="step")
    assert code in (0, 1)


@pytest.mark.parametrize("failure", ["fails", "hangs"])
def test_no_budget_is_advised_where_none_helps(gate, capsys, failure):
    code, _ = gate(failure, (0.1, 0.1), "--budget=30m", "--worker-timeout=60", metric="step")
    output = capsys.readouterr()
    assert code == 3 and "A larger budget does not help" in output.out
    assert "--budget" not in output.out + output.err


def test_a_probe_comes_first_if_it_can_only_then_be_decided():
    times = {"long": 150.0}
    state = SimpleNamespace(
        results={"long": [SimpleNamespace(took=50.0)], "short": []},
        seconds_to_verdict=lambda: times,
        open_probes=lambda: ["short", "long"],
    )
    assert timing.next_probe("short", state, 158.0) == "long"
    assert timing.next_probe("short", state, 1000.0) == "short"
    assert timing.next_probe("short", state, 100.0) == "short"  # it cannot be decided any more
    assert timing.next_probe("long", state, 158.0) == "long"
    times["short"] = 140.0
    assert timing.next_probe("short", state, 158.0) == "short"  # it can be decided, too


def test_a_probe_that_another_one_of_its_round_has_decided_is_not_measured_again():
    state = SimpleNamespace(results={"long": [], "short": []}, open_probes=lambda: ["long"])
    assert timing.next_probe("short", state, 158.0) is None
