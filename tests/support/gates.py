"""Gates of releases that return scripted numbers, of tasks and of a model of the user."""

import functools
import json
import re
from datetime import datetime, timezone
from pathlib import Path

import pytest

from stele import __main__ as entry_point
from stele import environments
from stele.environments import ORACLE
from stele.gate.metrics import (
    ALL,
    METRICS,
)
from stele.gate.trial import ARMS, Trial
from stele.measuring import measure
from stele.measuring.measure import SideFailed
from stele.measuring.run import Framework, Origin
from stele.measuring.settings import Settings
from stele.measuring.worker import TIMEOUT
from stele.subjects import Cell
from tests.support.runs import changed, make_run
from tests.support.scripted_environments import INSPECTION

MEASURE_LANES = measure.measure_lanes
SECONDS = [0.5, *[0.010, 0.011, 0.012] * 16]
INPUTS = {"data": None, "data_origin": Origin(origin="official", fingerprint="0")}


def printed(capsys):
    """Return what was printed, with two spaces between columns."""
    return re.sub("  +", "  ", capsys.readouterr().out)


def slower(by):
    return [by * value for value in SECONDS]


def per_lane(measure_arms, lanes, plans, settings, *, timeout=TIMEOUT, changed=None, **_):
    """Return the Runs of each lane, by arm, as ``measure_arms(sides, plan, settings, timeout)`` gives them for a plan.

    ``sides`` are the environments by arm; ``settings`` are those of each arm.
    """
    passes = []
    for lane in lanes:
        of_arms = {arm: (changed or {}).get(arm, settings) for arm in lane}
        runs = []
        for number, plan in enumerate(plans):
            try:
                runs.append(measure_arms(lane, plan, of_arms, timeout))
            except SideFailed as error:
                error.plan = number
                raise
        passes.append({arm: tuple(of_plan[arm] for of_plan in runs) for arm in lane})
    return passes


def answer(monkeypatch, measure_arms):
    """Let this function answer in place of workers, one pass after the other."""
    monkeypatch.setattr(measure, "measure_lanes", functools.partial(per_lane, measure_arms))
    monkeypatch.setattr("stele.gate.timing.parallel_passes", lambda *_, **__: 1)


def measure_arms(sides, plan, settings, timeout):
    """Return the Runs that scripted workers would give. Workers are started only if one is to fail."""
    scripts = {arm: json.loads(environment.variables["SCRIPT"]) for arm, environment in sides.items()}
    if any({"configure", plan.phase} & set(script) for script in scripts.values()):
        return measure_with_workers(sides, plan, settings, timeout)
    return {arm: scripted_run(sides[arm], script, plan, settings[arm]) for arm, script in scripts.items()}


def measure_with_workers(sides, plan, settings, timeout):
    [runs] = MEASURE_LANES([sides], [plan], next(iter(settings.values())), timeout=timeout)
    return {arm: run for arm, [run] in runs.items()}


def scripted_run(environment, script, plan, settings):
    return changed(
        make_run(),
        when=datetime.now(timezone.utc).isoformat(),
        environment=environment.name,
        label=environment.label,
        task=plan.task,
        phase=plan.phase,
        scale=plan.scale,
        settings=settings,
        framework=Framework(import_seconds=0.5, versions={"scripted": "1.0"}, flags={}),
        steps={"seconds": script["seconds"]},
        memory={"host": script.get("host_memory", 2**20)},
        learning={"losses": script.get("losses", []), "accuracy": script.get("accuracy")},
    )


@pytest.fixture
def gate(add_environment, monkeypatch):
    """gate(new={...}, *options) -> exit status of a gate from a steady OLD to a NEW with this script."""
    monkeypatch.setattr(measure, "inputs", lambda task: (INPUTS, None))
    answer(monkeypatch, measure_arms)

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


@pytest.fixture
def two_at_once(monkeypatch):
    """Measure two passes at the same time. Yields the orders of each launch."""
    orders = []

    def measure_lanes(lanes, *about, **options):
        if len(lanes) > 1:
            orders.append([list(lane) for lane in lanes])
        return per_lane(measure_arms, lanes, *about, **options)

    monkeypatch.setattr("stele.gate.timing.parallel_passes", lambda *_, **__: 2)
    monkeypatch.setattr(measure, "measure_lanes", measure_lanes)
    return orders


SKETCH = [1.0, 0.5, 0.25]
NUMBERS = {
    "task": "0",
    "unequal": {},
    "layers": {"first": SKETCH, "second": SKETCH},
    "logits": SKETCH,
    "repeats": True,
    "tracked": False,
    "norms": {"w": 1.0},
    "loss": 2.3,
    "gradients": {"w": SKETCH},
    "updates": {"1": {"w": SKETCH}, "10": {"w": SKETCH}},
    "losses": [2.3, 2.2, 2.1],
}


@pytest.fixture
def model_gate(add_environment, tmp_path):
    """model_gate(*options, old={...}, new={...}) -> exit code of a gate of net.py:build."""
    (tmp_path / "net.py").write_text("build = None\n")
    script = {"seconds": SECONDS, "numbers": NUMBERS, "inspection": INSPECTION}

    def model_gate(*options, old=None, new=None, metric="parity"):
        add_environment("old", **{**script, **(old or {})})
        add_environment("new", **{**script, **(new or {})})
        command = ["gate", "old", "new", "--model", "net.py:build", f"--metric={metric}", "--worker-timeout=20"]
        return entry_point.main([*command, *options])

    return model_gate


BUILT = {
    "arrays": [{"name": "w", "shape": [12], "dtype": "float32", "parameter": True}],
    "tied": [],
    "training": True,
}
HALF = {**BUILT, "arrays": [{**BUILT["arrays"][0], "dtype": "float16"}]}


def runs_of(run, seconds, noise=0.01):
    """Return the Runs of a pass whose steps take so many seconds, with a noise that differs between the arms."""
    cycles = {"old": (1, 0, -1), "control": (0, -1, 1), "new": (-1, 1, 0), "repeat": (1, -1, 0)}
    return {
        arm: changed(
            run,
            options={"turn": 1},
            steps={"seconds": (1.0, *[seconds * (1 + noise * part) for part in cycles[arm] * 8]), "warmup": 1},
        )
        for arm in ARMS
    }


BY_NAME = {metric.name: metric for metric in ALL}
CPU = Settings(device="cpu", threads=1)
CELL = Cell("chain", "infer")


def trial_with(names, *cells):
    """Return a trial of NumPy beside itself with the metrics of these names."""
    metrics = tuple(BY_NAME[name] for name in names)
    return Trial(ORACLE, ORACLE, cells or (CELL,), metrics, CPU, seed=0, budget=60.0)


def make_trial(**facts):
    return Trial(
        old=environments.ORACLE,
        new=environments.ORACLE,
        cells=(Cell("gru", "infer"),),
        metrics=METRICS,
        settings=CPU,
        seed=0,
        budget=60,
        **facts,
    )
