"""What one launch measures beside its steps: blocks, other batches, sizes, operations and loaders."""

from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest

from stele import environments
from stele.environments import ORACLE
from stele.gate.launcher import plan_of
from stele.gate.metrics import (
    BLOCKS,
    KINDS,
    SIZES,
)
from stele.measuring import measure
from stele.measuring.run import Options
from stele.subjects import Cell, Tasks
from stele_suite import tasks
from stele_worker import clock, loaders, measurement, process, subjects
from tests.support.gates import BY_NAME, CPU
from tests.support.numpy_framework import framework
from tests.support.runs import changed


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
    kind = KINDS[BLOCKS]._replace(options=Options(blocks=3, new_batch=True), steps=4)
    plan = plan_of(Cell("chain", phase), "smoke", Tasks(), kind.steps, kind)
    run = measure.side_by_side({"a": ORACLE, "b": ORACLE}, plan, CPU)["a"]
    assert len(run.blocks.seconds) == len(run.blocks.returned) == 3
    assert all(0 < returned <= block for returned, block in zip(run.blocks.returned, run.blocks.seconds, strict=True))
    assert run.new_batch > 0
    assert changed(run) == run
    assert BY_NAME["throughput"].value(run) > 0 and BY_NAME["first-step-new-batch"].value(run) == run.new_batch


def test_what_a_new_batch_compiles_again_counts():
    sizes = {4}  # for each of which the framework compiled
    counting = framework(in_force=lambda: {"compilations": len(sizes)})
    batches = measurement.Batches(counting, [numpy.arange(8)], numpy.arange(8).reshape(2, 4), None, None)
    result = measurement.more(lambda x: sizes.add(len(x)), batches, {}, new_batch=True)
    assert result["in_force"] == {"compilations": 2}


def test_the_sizes_of_a_batch_take_turns(scripted_clock):
    rows, seen = numpy.arange(16).reshape(2, 8), []
    batches = measurement.Batches(framework(), [numpy.arange(16)], rows, None, None)

    def step(x):
        seen.append(len(x))
        scripted_clock(9.0 if len(seen) <= 4 else 0.5 + 0.25 * len(x))  # the first turn compiles

    sizes = measurement.time_sizes(step, batches, 2)
    assert seen == [2, 4, 6, 8] * 3
    assert sizes == {"2": [1.0] * 2, "4": [1.5] * 2, "6": [2.0] * 2, "8": [2.5] * 2}


@pytest.mark.parametrize(("batch", "sizes"), [(1, "1 2 3 4"), (3, "3 6 9 12"), (4, "1 2 3 4"), (10, "2 4 6 8")])
def test_a_small_batch_has_larger_sizes(batch, sizes):
    rows = numpy.arange(2 * batch).reshape(2, batch)
    batches = measurement.Batches(framework(), [numpy.arange(2 * batch)], rows, None, None)
    assert list(measurement.time_sizes(lambda x: None, batches, 1)) == sizes.split()


@pytest.mark.parametrize("phase", ["infer", "train"])
def test_the_overhead_is_a_step_without_samples(phase):
    kind = KINDS[SIZES]
    run = measure.side_by_side(
        {"a": ORACLE, "b": ORACLE}, plan_of(Cell("chain", phase), "smoke", Tasks(), 3, kind), CPU
    )["a"]
    assert list(run.sizes) == ["1", "2", "3", "4"]
    assert {len(seconds) for seconds in run.sizes.values()} == {kind.options.sizes}
    assert changed(run) == run
    assert 0 < BY_NAME["overhead"].value(run) < 4 * BY_NAME["step"].value(run)


def test_only_the_profiler_of_a_framework_says_what_is_busy():
    def busy(**more):
        profiled = framework(kernels=lambda run: {}, HAS_PROFILER="profile" in more, **more)
        batches = measurement.Batches(profiled, [numpy.arange(8)], numpy.arange(8).reshape(2, 4), None, None)
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
    slow = framework(wait=lambda value: scripted_clock(0.25))
    batches = measurement.Batches(slow, [], [], None, None)

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
    batches = measurement.Batches(framework(), [], [], None, None)
    for name in ("cnn", "gru"):  # the oracle has none
        assert loaders.measure(None, batches, tasks.make(name, "smoke"), {}, 6) is None
    assert BY_NAME["loader"].value(run) is None and BY_NAME["fed-step"].value(run) is None
    loaded = changed(run, loader={"alone": 0.5, "fed": 2.0})
    assert (BY_NAME["loader"].value(loaded), BY_NAME["fed-step"].value(loaded)) == (0.5, 2.0)


def test_a_missing_package_of_a_loader_is_named(monkeypatch):
    def part(framework, name):
        raise ModuleNotFoundError("No module named 'grain'", name="grain")

    monkeypatch.setattr(loaders.frameworks, "part", part)
    with pytest.raises(RuntimeError, match="The loader of jax needs the package grain. Install it"):
        loaders.find("jax")


def test_each_loader_is_of_a_framework():
    folders = {path.parent.name for path in Path(loaders.__file__).parent.glob("frameworks/*/loader.py")}
    assert folders <= {one.framework for one in environments.described().values()} and folders


def test_steps_of_the_first_seconds_are_not_steady():
    seconds = [1.0, *[0.1] * 30]
    assert clock.find_steady_step(seconds, 3, 0.05) == 1
    assert clock.find_steady_step(seconds, 3, 0.05, least=2.0) == 10


def test_rows_are_repeated_until_the_least_seconds_have_passed():
    seconds = []
    for _ in measurement.repeat([[0], [1], [2]], seconds, 1.0):
        seconds.append(0.25)
    assert len(seconds) == 4
    assert list(measurement.repeat([[0], [1]], [], 0.0)) == [[0], [1]]


def test_the_loss_of_a_step_is_a_number_before_the_next_step(monkeypatch):
    """Arrays that stay between the steps divide the heap, so that memory and time of a step depend on chance."""
    events, of_numpy = [], framework()
    plain_fetch = of_numpy.fetch
    monkeypatch.setattr(of_numpy, "fetch", lambda value: events.append("fetch") or plain_fetch(value))
    subject = subjects.find(of_numpy, "chain", "smoke", 0, "float32")
    make_step = subject.recipe.training_step

    def training_step(net, task):
        step = make_step(net, task)
        return lambda *batch: events.append("step") or step(*batch)

    monkeypatch.setattr(subject.recipe, "training_step", training_step)
    host = SimpleNamespace(report=lambda **_: None)
    warmup = {"window": 1, "tolerance": 0.5, "most": 3}
    outcome = measurement.train(of_numpy, subject, host, None, None, warmup, steps=3)
    assert events == ["step", "fetch"] * 3
    assert all(isinstance(loss, float) for loss in outcome["learning"]["losses"])
