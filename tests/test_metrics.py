"""The metrics that are judged only if they are selected: blocks of steps, one sample, caches, another batch size."""

import dataclasses
import re
from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest

from stele import environments
from stele.environments import ORACLE
from stele.errors import SteleError
from stele.gate import launcher, steps
from stele.gate.launcher import Launcher, plan_of
from stele.gate.metrics import (
    ALL,
    BLOCKS,
    KINDS,
    LATENCY,
    LOADER,
    LONG,
    METRICS,
    MORE,
    NEW_BATCH,
    PEAK,
    PROFILED,
    SHORT,
    SIZES,
    WARM,
    launch_settings,
)
from stele.gate.state import State, probes_of
from stele.gate.trial import Cell, Trial
from stele.measuring import measure
from stele.measuring.run import Run
from stele.measuring.settings import Settings
from stele.measuring.worker import cache_variables
from stele_worker import clock, loaders, measurement, process, tasks

BY_NAME = {metric.name: metric for metric in ALL}
CPU = Settings(device="cpu", threads=1)
CELL = Cell("chain", "infer")


def make_trial(names, *cells):
    metrics = tuple(BY_NAME[name] for name in names)
    return Trial(ORACLE, ORACLE, cells or (CELL,), metrics, CPU, seed=0, budget=60.0)


@pytest.fixture
def scripted_clock(monkeypatch):
    """A clock that only moves when something takes time."""
    now = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(clock, "perf_counter", lambda: now.seconds)

    def take(seconds):
        now.seconds += seconds

    return take


def test_a_block_waits_once_and_shows_when_the_calls_returned(scripted_clock):
    waits = []

    def wait(value):
        waits.append(value)
        scripted_clock(1.0 if value == "result" else 0.0)

    def step(x):
        scripted_clock(0.25)
        return "result"

    timed = list(clock.time_blocks(step, [[(1,)] * 4, [(2,)] * 4], wait))
    assert timed == [(0.5, 0.25), (0.5, 0.25)]
    assert waits.count("result") == 2


@pytest.mark.parametrize(("step", "count"), [(2**-10, 103), (0.01, 10), (0.03, 4), (3.0, 2)])
def test_a_block_lasts_a_tenth_of_a_second(step, count):
    assert measurement.steps_of_block([step] * 5) == count


def test_another_batch_is_half_of_one_or_two_samples():
    rows = numpy.arange(12).reshape(3, 4)
    assert measurement.other_size(rows).tolist() == [0, 1]
    assert measurement.other_size(numpy.arange(3).reshape(3, 1)).tolist() == [0, 1]


@pytest.mark.parametrize("phase", ["infer", "train"])
def test_a_launch_measures_blocks_and_another_batch(phase):
    kind = KINDS[BLOCKS]._replace(asked={"blocks": 3, "new_batch": True}, steps=4)
    plan = plan_of(Cell("chain", phase), "smoke", None, kind.steps, kind)
    run = measure.side_by_side({"a": ORACLE, "b": ORACLE}, plan, CPU)["a"]
    assert len(run.blocks) == len(run.returned) == 3
    assert all(0 < returned <= block for returned, block in zip(run.returned, run.blocks, strict=True))
    assert run.new_batch > 0
    assert Run.from_dict(run.to_dict()) == run
    assert (
        BY_NAME["throughput"].value(run) > 0 and BY_NAME["first-step-new-batch"].value(run) == run.new_batch
    )


def test_compilations_are_those_that_the_framework_reports(run):
    def count(in_force):
        return BY_NAME["compilations"].value(dataclasses.replace(run, in_force=in_force))

    assert (
        count({"graphs": 2, "recompilations": 1, "graph_breaks": 3}) == 2
    )  # the second graph is the repetition
    assert [count({"traces": 2}), count({"programs": 2, "operations": 310}), count({"compilations": 1})] == [
        2,
        2,
        1,
    ]
    assert count({"graphs": 0}) is None and count(None) is None


def test_what_a_new_batch_compiles_again_counts():
    sizes = {4}  # for each of which the framework compiled
    framework = SimpleNamespace(
        wait=lambda value: None, take=numpy.take, in_force=lambda: {"compilations": len(sizes)}
    )
    batches = measurement.Batches(framework, [numpy.arange(8)], numpy.arange(8).reshape(2, 4), None, None)
    result = measurement.more(lambda x: sizes.add(len(x)), batches, {}, new_batch=True)
    assert result["in_force"] == {"compilations": 2}


def test_the_sizes_of_a_batch_take_turns(scripted_clock):
    framework = SimpleNamespace(wait=lambda value: None, take=numpy.take)
    rows, seen = numpy.arange(16).reshape(2, 8), []
    batches = measurement.Batches(framework, [numpy.arange(16)], rows, None, None)

    def step(x):
        seen.append(len(x))
        scripted_clock(9.0 if len(seen) <= 4 else 0.5 + 0.25 * len(x))  # the first turn compiles

    sizes = measurement.time_sizes(step, batches, 2)
    assert seen == [2, 4, 6, 8] * 3
    assert sizes == {"2": [1.0] * 2, "4": [1.5] * 2, "6": [2.0] * 2, "8": [2.5] * 2}


@pytest.mark.parametrize(
    ("batch", "sizes"), [(1, "1 2 3 4"), (3, "3 6 9 12"), (4, "1 2 3 4"), (10, "2 4 6 8")]
)
def test_a_small_batch_has_larger_sizes(batch, sizes):
    framework = SimpleNamespace(wait=lambda value: None, take=numpy.take)
    rows = numpy.arange(2 * batch).reshape(2, batch)
    batches = measurement.Batches(framework, [numpy.arange(2 * batch)], rows, None, None)
    assert list(measurement.time_sizes(lambda x: None, batches, 1)) == sizes.split()


@pytest.mark.parametrize("phase", ["infer", "train"])
def test_the_overhead_is_a_step_without_samples(phase):
    kind = KINDS[SIZES]
    run = measure.side_by_side(
        {"a": ORACLE, "b": ORACLE}, plan_of(Cell("chain", phase), "smoke", None, 3, kind), CPU
    )["a"]
    assert list(run.sizes) == ["1", "2", "3", "4"]
    assert {len(seconds) for seconds in run.sizes.values()} == {kind.asked["sizes"]}
    assert Run.from_dict(run.to_dict()) == run
    assert 0 < BY_NAME["overhead"].value(run) < 4 * BY_NAME["step"].value(run)


def test_the_overhead_is_unknown_if_a_line_has_nothing_at_zero(run):
    def value(sizes):
        return BY_NAME["overhead"].value(dataclasses.replace(run, sizes=sizes))

    assert value({"8": [1.0] * 4, "16": [1.5] * 4}) == pytest.approx(0.5)
    assert value({"8": [1.0] * 4, "16": [2.5] * 4}) is None and value(None) is None


def test_a_step_is_idle_outside_of_operations(run):
    def value(busy):
        profile = {"step": 2.0, "busy": busy, "operations": {}, "kernels": {}}
        return BY_NAME["idle"].value(dataclasses.replace(run, profile=profile))

    assert value(1.5) == 0.25
    assert value(2.5) is None  # threads of a framework compute at the same time
    assert value(None) is None and BY_NAME["idle"].value(run) is None


def test_only_the_profiler_of_a_framework_says_what_is_busy():
    def busy(**more):
        framework = SimpleNamespace(wait=lambda value: None, take=numpy.take, kernels=lambda run: {}, **more)
        batches = measurement.Batches(framework, [numpy.arange(8)], numpy.arange(8).reshape(2, 4), None, None)
        return measurement.profiled(lambda x: None, batches, 2)["busy"]

    def profile(run):
        run()
        return {"multiply": (3.0, 4)}

    assert busy(profile=profile) == 1.5
    assert busy(profile=lambda run: run() or {}) is None and busy() is None
    assert busy(profile=lambda run: profile(run) | {"Step#SGD": (1.0, 2)}, ANNOTATIONS=("Step#",)) == 1.5


@pytest.fixture
def loads(monkeypatch):
    """Each framework has a loader. Return what the loaders are given: shape, type of the labels, and workers."""
    given = []

    def batches(images, labels, batch, workers):
        given.append((images.shape, labels.dtype.name, workers))
        return iter([(images[:batch],)] * (len(images) // batch))

    monkeypatch.setattr(loaders, "find", lambda name: SimpleNamespace(batches=batches))
    return given


def arrays_of(folder, samples):
    """Store images and labels, and return their paths."""
    images, labels = numpy.zeros((samples, 32, 32, 3), numpy.uint8), numpy.zeros(samples, numpy.uint8)
    for name, array in {"train_x": images, "train_y": labels}.items():
        numpy.save(folder / f"{name}.npy", array)
    return {name: str(folder / f"{name}.npy") for name in ("train_x", "train_y")}


def test_a_loader_is_measured_alone_and_with_steps(loads, scripted_clock, monkeypatch, tmp_path):
    monkeypatch.setattr(loaders, "perf_counter", clock.perf_counter)
    done = []
    framework = SimpleNamespace(
        __name__="stele_worker.frameworks.numpy", wait=lambda value: scripted_clock(0.25)
    )
    batches = measurement.Batches(framework, [], [], None, None)

    def step(images):
        done.append(len(images))
        scripted_clock(1.0)

    task = tasks.make("cnn", "smoke", batch=8)
    seconds = loaders.measure(step, batches, task, arrays_of(tmp_path, 100), 6)
    assert seconds == {"alone": 0.25, "fed": 1.25}
    assert done == [8] * (loaders.WARMUP + 6)
    workers = len(process.processors())
    assert loads == [((88, 32, 32, 3), "int32", workers)] * 2  # each epoch has a loader of its own


def test_a_task_or_a_framework_without_a_loader_has_no_number(run):
    framework = SimpleNamespace(__name__="stele_worker.frameworks.numpy")
    batches = measurement.Batches(framework, [], [], None, None)
    for name in ("cnn", "gru"):  # the oracle has none
        assert loaders.measure(None, batches, tasks.make(name, "smoke"), {}, 6) is None
    assert BY_NAME["loader"].value(run) is None and BY_NAME["fed-step"].value(run) is None
    loaded = dataclasses.replace(run, loader={"alone": 0.5, "fed": 2.0})
    assert (BY_NAME["loader"].value(loaded), BY_NAME["fed-step"].value(loaded)) == (0.5, 2.0)


def test_a_missing_package_of_a_loader_is_named(monkeypatch):
    def find(name):
        raise ModuleNotFoundError("No module named 'grain'", name="grain")

    monkeypatch.setattr(loaders.importlib, "import_module", find)
    with pytest.raises(RuntimeError, match="The loader of jax needs the package grain. Install it"):
        loaders.find("jax")


def test_each_loader_is_of_a_framework():
    files = {path.stem for path in Path(loaders.__file__).parent.glob("*.py")} - {"__init__"}
    assert files <= {one.framework for one in environments.described().values()} and files


def test_a_launch_that_is_not_asked_has_no_number():
    plan = plan_of(CELL, "smoke", None, 3)
    run = measure.side_by_side({"a": ORACLE}, plan, CPU)["a"]
    assert run.blocks == run.returned == () and run.new_batch is None
    assert BY_NAME["throughput"].values({"old": run, "new": run}) is None
    assert BY_NAME["first-step-new-batch"].values({"old": run, "new": run}) is None


def test_the_latency_is_of_one_sample():
    kind = KINDS[LATENCY]
    plan = plan_of(Cell("gru", "infer"), "smoke", None, 6, kind)
    run = measure.side_by_side({"a": ORACLE}, plan, CPU)["a"]
    assert run.batch == 1
    assert BY_NAME["latency"].value(run) <= BY_NAME["latency-p99"].value(run)


def test_the_peak_memory_is_of_the_scale_of_the_timed_launches():
    steady = dataclasses.replace(CPU, malloc="steady")
    assert launch_settings(SHORT, "depth-64", steady) == ("smoke", dataclasses.replace(CPU, malloc="plain"))
    assert launch_settings(PEAK, "depth-64", steady) == ("depth-64", dataclasses.replace(CPU, malloc="plain"))
    assert launch_settings(LONG, "depth-64", steady) == ("depth-64", steady)
    assert steps.of_next_launch(PEAK, "depth-64", []) == 3


def test_the_peak_memory_is_that_of_the_device_if_it_has_its_own(run):
    value = BY_NAME["peak-memory"].value
    assert value(dataclasses.replace(run, host_memory=7, device_memory=None)) == 7
    assert value(dataclasses.replace(run, host_memory=7, device_memory=5)) == 5


def test_a_run_with_a_negative_block_is_refused():
    run = measure.side_by_side({"a": ORACLE}, plan_of(CELL, "smoke", None, 3), CPU)["a"]
    for changes in (
        {"blocks": (0.1, -0.1)},
        {"returned": (0.0,)},
        {"new_batch": -1.0},
        {"sizes": {"8": [0.0]}},
    ):
        with pytest.raises(SteleError, match="Check the clock"):
            Run.from_dict(dataclasses.replace(run, **changes).to_dict())


def test_each_metric_selects_the_launches_that_measure_it():
    assert [probe.kind for probe in probes_of(CELL, METRICS)] == [LONG, SHORT]
    assert [probe.kind for probe in probes_of(CELL, [BY_NAME["first-step"]])] == [SHORT]
    selected = ("latency", "latency-p99", "dispatch", "first-step-cached", "overhead", "idle", "fed-step")
    kinds = [probe.kind for probe in probes_of(CELL, [BY_NAME[name] for name in selected])]
    assert kinds == [LATENCY, BLOCKS, WARM, SIZES, PROFILED, LOADER]


def test_the_latency_is_judged_in_inference_only():
    cells = Cell("gru", "train"), Cell("gru", "infer")
    state = State(make_trial(["latency", "throughput"], *cells), cells)
    assert {str(probe.cell): probe.kind for probe in state.results if probe.kind == LATENCY} == {
        "gru infer": LATENCY
    }
    assert [metric.name for metric in state.metrics_of(cells[0])] == ["throughput"]


def test_the_launches_of_a_kind_have_their_number_of_steps():
    assert steps.of_next_launch(LATENCY, "gate", []) == KINDS[LATENCY].steps
    assert steps.of_next_launch(NEW_BATCH, "smoke", []) == steps.of_next_launch(SHORT, "smoke", [])


def test_the_caches_are_filled_once_for_each_release(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    launched = []

    def side_by_side(sides, plan, settings, *, timeout, caches, changed=None):
        launched.append(list(sides))
        for environment in sides.values():
            (caches / environment.slug).mkdir(parents=True, exist_ok=True)
        return dict.fromkeys(sides)

    monkeypatch.setattr(launcher.measure, "side_by_side", side_by_side)
    new = dataclasses.replace(ORACLE, name="numpy-new")
    trial = dataclasses.replace(make_trial(["first-step-cached"]), new=new)
    launch = Launcher(trial, CELL, CPU, "smoke", 3, KINDS[WARM])
    for _ in range(2):
        launcher.measure_lanes(launch, [["old", "new"]], 60.0)
    assert launched == [["old"], ["new"], ["old", "new"], ["old", "new"]]


def test_caches_that_were_not_filled_completely_are_removed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def fail(sides, plan, settings, *, timeout, caches):
        (caches / ORACLE.slug).mkdir(parents=True)
        raise KeyboardInterrupt

    monkeypatch.setattr(launcher.measure, "side_by_side", fail)
    launch = Launcher(make_trial(["first-step-cached"]), CELL, CPU, "smoke", 3, KINDS[WARM])
    with pytest.raises(KeyboardInterrupt):
        launcher.measure_lanes(launch, [["old"]], 60.0)
    assert not list(tmp_path.rglob(ORACLE.slug))


def test_the_caches_of_frameworks_are_in_the_folder(tmp_path):
    variables = cache_variables(tmp_path / "caches")
    assert variables["JAX_ENABLE_COMPILATION_CACHE"] == "true"
    assert variables["TORCHINDUCTOR_CACHE_DIR"].startswith(str(tmp_path))


def test_every_metric_has_a_unit_and_a_sentence():
    for metric in ALL:
        assert metric.unit in ("s", "bytes", "count", "fraction")
        assert metric.meaning.endswith(".") and metric.meaning[0].isupper()
    assert len({metric.name for metric in ALL}) == len(ALL)


def test_the_page_of_the_gate_has_the_thresholds_of_every_metric():
    page = (Path(__file__).parents[1] / "docs/gate.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?)( \*)? \| (\d+) % \| (\d+) % \|$", page, re.M)
    found = {
        name: (int(tolerance) / 100, int(margin) / 100, bool(selected))
        for names, selected, tolerance, margin in rows
        for name in re.findall(r"`(\w[\w-]+)`", names)
    }
    assert found == {one.name: (one.tolerance, one.margin, one in MORE) for one in ALL}
