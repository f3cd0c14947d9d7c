"""The gate judges the time until a target accuracy, which contains the speed and the convergence."""

import json
import math
import re
from pathlib import Path

import numpy
import pytest

from stele import __main__ as entry_point
from stele.gate import judgement
from stele.gate.judgement import Series
from stele.gate.launcher import Launcher, plan_of, seeds_of
from stele.gate.metrics import ALL, KINDS, MOST_TRAININGS, TRAININGS
from stele.gate.trial import ARMS, Trial
from stele.measuring import measure
from stele.measuring.run import Options, Origin
from stele.measuring.settings import Settings
from stele.subjects import Cell, Tasks
from tests.support.gates import answer
from tests.support.runs import changed, to_training
from tests.support.scripted_environments import scripted_environment

METRIC = next(metric for metric in ALL if metric.name == "time-to-target")
INPUTS = {"data": None, "data_origin": Origin(origin="official", fingerprint="0")}
CELL, TARGET, EPOCHS = Cell("cnn", "train"), 0.6, 3
OLD = {"epoch": 2.0, "accuracy": 0.62, "deviation": 0.005}
# a planted optimizer: its epochs are a fifth faster, but only every third training reaches the target
PLANTED = {"epoch": 1.6, "accuracy": 0.5975, "deviation": 0.005}


def draw(script, seed):
    """Return the accuracy of a training and the seconds of its epochs, which vary by a hundredth."""
    random = numpy.random.RandomState([seed, round(1e6 * script["accuracy"])])
    seconds = script["epoch"] * random.normal(1, 0.01, EPOCHS)
    return random.normal(script["accuracy"], script["deviation"]), seconds.tolist()


def train(environment, settings, template):
    """Return the Run of a launch that trains until the target, as a worker does."""
    script, missed = json.loads(environment.variables["SCRIPT"]), []
    for attempt in range(MOST_TRAININGS):
        accuracy, seconds = draw(script, settings.seed + attempt)
        if accuracy >= TARGET or attempt == MOST_TRAININGS - 1:
            break
        missed.append(sum(seconds) + 0.5)
    return to_training(
        template,
        environment=environment.name,
        framework={"versions": {"scripted": "1.0"}},
        settings=settings,
        options={"target": TARGET},
        steps={"seconds": seconds},
        learning={"losses": [2.0] * EPOCHS, "accuracy": accuracy},
        epochs={
            "accuracies": [accuracy] * EPOCHS,
            "evaluation_seconds": [1.0] * EPOCHS,
            "compile_seconds": 5.0,
            "elapsed": 20.0,
            "missed": missed,
        },
    )


@pytest.fixture
def gate(add_environment, monkeypatch, run):
    """gate(new={...}, *options) -> exit status of a gate whose launches draw their trainings from these scripts."""
    monkeypatch.setattr(measure, "inputs", lambda task: (INPUTS, None))

    def measure_arms(sides, plan, settings, timeout):
        return {arm: train(environment, settings[arm], run) for arm, environment in sides.items()}

    answer(monkeypatch, measure_arms)

    def gate(*options, old=OLD, new=OLD):
        for name, script in (("old", old), ("new", new)):
            add_environment(name, **script)
        defaults = ["--metric=time-to-target", "--task=cnn", "--phase=train", "--target=60%", "--budget=20m"]
        return entry_point.main(["gate", "old", "new", *defaults, *options])

    return gate


def printed(capsys):
    return re.sub("  +", "  ", capsys.readouterr().out)


def test_faster_steps_with_worse_convergence_are_a_regression(gate, capsys):
    assert gate(new=PLANTED) == 1
    assert re.search(r"REGRESSED  train time-to-target: \d+\.\d % slower in \d+ passes", printed(capsys))


def test_faster_steps_with_equal_convergence_are_an_improvement(gate, capsys):
    assert gate(new={**OLD, "epoch": 1.6}) == 0
    assert "IMPROVED  train time-to-target: " in printed(capsys)


def test_equal_releases_pass(gate, capsys):
    assert gate() == 0
    assert "\n  train time-to-target  " in printed(capsys)


def test_a_release_that_never_reaches_the_target_is_a_regression(gate):
    assert gate(new={**PLANTED, "accuracy": 0.4}) == 1


def test_a_target_that_no_release_reaches_is_inconclusive(gate, capsys):
    hopeless = {**OLD, "accuracy": 0.4}
    assert gate(old=hopeless, new=hopeless) == 3
    assert "OLD and NEW reported no time-to-target, so it cannot be compared." in printed(capsys)


def test_each_launch_trains_from_seeds_of_its_own(gate):
    assert gate() == 0
    [path] = Path(".stele/gates").glob("*.jsonl")
    header, *launches, _ = map(json.loads, path.read_text().splitlines())
    assert header["target"] == 0.6
    seeds = [run["settings"]["seed"] for launch in launches for run in launch["runs"].values()]
    assert sorted(seeds) == [MOST_TRAININGS * number for number in range(4 * len(launches))]


def test_a_record_with_another_target_is_not_resumed(gate, capsys):
    assert gate() == 0
    assert gate("--target=61%", "--resume") == 2
    assert "it was made with --target 60%; now --target 61%" in capsys.readouterr().err


def test_a_launch_trains_at_the_scale_of_the_trainings_with_a_target():
    plan = plan_of(CELL, "quick", Tasks(), None, KINDS[TRAININGS], target=TARGET)
    assert (plan.phase, plan.scale) == ("time-to-accuracy", "quick")
    assert plan.options == Options(attempts=MOST_TRAININGS, target=TARGET)


def test_the_number_is_the_time_of_all_trainings_of_a_launch(run):
    environment = scripted_environment(OLD)
    reached = train(environment, Settings(device="cpu", threads=1), run)
    reached = changed(reached, learning={"accuracy": 0.6}, epochs={"missed": (10.0, 11.0)})
    expected = 21.0 + 0.5 + sum(reached.steps.seconds)
    assert METRIC.value(reached) == pytest.approx(expected)
    missed = changed(reached, learning={"accuracy": 0.59})
    assert METRIC.value(missed) is None
    values = METRIC.values({"old": reached, "new": missed})
    assert values["new"] == pytest.approx(math.log(expected))
    assert METRIC.values({"old": missed, "new": missed}) is None


def test_equal_releases_that_often_miss_the_target_are_seldom_called_different():
    """Each launch is geometric: half of the trainings reach the target, so times differ by factors."""
    random, alarms = numpy.random.RandomState(0), 0
    for _ in range(200):
        tries = numpy.minimum(random.geometric(0.5, (20, 4)), MOST_TRAININGS)
        logs = numpy.log(tries * random.normal(6.5, 0.1, (20, 4)))
        passes = tuple((tuple(row[:2]), tuple(row[2:])) for row in logs)
        series = Series(METRIC.margin, METRIC.tolerance, METRIC.noise, passes)
        alarms += judgement.replay(series, tests=1).status in ("REGRESSED", "IMPROVED")
    assert alarms <= 6  # two tests at 1 %


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--accuracy-scale=cpu-ful"], "Unknown scale of trainings 'cpu-ful' for task cnn"),
        (["--task=resnet50", "--accuracy-scale=paper"], "'resnet50' generates its samples"),
    ],
)
def test_a_task_that_cannot_be_trained_to_a_target_is_an_error(gate, capsys, options, message):
    assert gate(*options) == 2
    assert message in capsys.readouterr().err


def test_a_task_without_a_target_asks_for_one(gate, capsys):
    gate()
    capsys.readouterr()
    arguments = ["gate", "old", "new", "--metric=time-to-target", "--task=cnn", "--phase=train"]
    assert entry_point.main(arguments) == 2
    assert "Task 'cnn' has no target at scale quick. Add --target 60%." in capsys.readouterr().err


def test_a_scale_without_its_data_is_an_error(gate, monkeypatch, capsys):
    synthetic = {**INPUTS, "data_origin": Origin(origin="synthetic", fingerprint="1")}
    monkeypatch.setattr(measure, "inputs", lambda task: (synthetic, "cifar10 is synthetic: no file"))
    assert gate() == 2
    assert "The scale 'quick' of 'cnn' needs real data. Set STELE_DATA" in capsys.readouterr().err


def test_the_seeds_follow_from_the_random_order_of_the_arms():
    environment = scripted_environment({})
    trial = Trial(environment, environment, (CELL,), (METRIC,), Settings(device="cpu", threads=1), 0, 60.0)
    launcher = Launcher(trial, (), trial.settings, kind=KINDS[TRAININGS], number=2)
    arms = ("new", "old", "repeat", "control")
    expected = dict(zip(arms, (40, 45, 50, 55), strict=True))
    assert {arm: one.seed for arm, one in seeds_of(launcher, arms).items()} == expected
    assert set(arms) == set(ARMS)
