"""Measure one launch of one recipe.

An outcome is a dict with "steps", "memory" and, if the framework has modes, "in_force"; after training also "learning".
On request it also has what ``more`` returns. docs/protocol.md describes their keys.
"""

import math
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple, Optional

import numpy

from stele_worker import clock, loaders, process
from stele_worker.profiles import profile_functions
from stele_worker.ranks import ranks

NOT_EVALUATED = {"accuracy": None, "evaluated": 0}
BLOCK_SECONDS = 0.1  # least duration of a block of steps
SIZES = 4  # numbers of samples of ``time_sizes``
MOST_TAKEN = 64  # batches of a block, which are on the device at the same time; a longer block repeats them
PROGRESS_SECONDS = 1.0  # minimum time between two progress messages, so that they do not disturb the steps


def train(
    framework,
    subject,
    host,
    data,
    weights,
    warmup,
    turn=None,
    together=False,
    steps=None,
    limit=None,
    loader=0,
    **requests,
):
    """Train for the Task's epochs, time every step, then evaluate. Return an outcome.

    With ``steps``, stop after so many, or after ``limit`` seconds of steps: see ``clock.within``. Then do not evaluate,
    but measure what the ``requests`` to ``more`` name. With ``loader``, also measure so many batches of the framework's
    own loader: see ``loaders.measure``.
    """
    task, recipe = subject.task, subject.recipe
    watch = Stopwatch()
    samples = subject.samples("train", data)
    arrays = [framework.put(array) for array in samples]
    watch.lap("data")
    process.reset_peak_memory()
    net = recipe.load(recipe.network(task), subject.weights(weights, samples))
    step = recipe.training_step(net, task)
    watch.lap("network")
    batch_rows = subject.rows("train")[:steps]
    seconds, losses, least = [], [], warmup.get("seconds", 0.0)
    rows = clock.within(repeat(batch_rows, seconds, 2 * least if steps else 0.0), seconds, limit)
    batches = make_batches(framework, arrays, take_turns(rows, turn, host))
    report = progress_reporter(host, "train", len(batch_rows))
    for duration, loss in clock.time_steps(step, batches, framework.wait, together):
        seconds.append(duration)
        losses.append(float(framework.fetch(loss)))  # a number, because arrays that stay would divide the heap
        report(len(seconds))
        if len(seconds) == 1:
            framework.forget_peak_memory()
    steady = clock.find_steady_step(seconds, warmup["window"], warmup["tolerance"], least)
    unsteady = min(warmup["most"], len(seconds) // 2)
    outcome = summarise(framework, task, seconds, unsteady if steady is None else steady, steady is not None)
    outcome["preparation"] = watch.seconds
    learning = {"losses": losses}
    if not steps:
        return dict(outcome, learning=dict(learning, **evaluate(framework, subject, net, data, host)))
    batches = Batches(framework, arrays, batch_rows, turn, host, limit)
    learning.update(NOT_EVALUATED)
    result = dict(outcome, learning=learning, **more(step, batches, outcome["steps"], **requests))
    if not loader:
        return result
    count = affordable(loader, outcome["steps"], limit)
    return dict(result, loader=loaders.measure(step, batches, task, data, count))


def infer(
    framework, subject, host, data, weights, warmup, turn=None, together=False, steps=None, limit=None, **requests
):
    """Warm up until the step times stop trending, then time the Task's test batches. Return an outcome.

    With ``steps``, stop after so many in all, the warm-up included, or after ``limit`` seconds of steps, half of them
    in the warm-up: see ``clock.within``. Then measure what the ``requests`` to ``more`` name.
    """
    task, recipe = subject.task, subject.recipe
    watch = Stopwatch()
    inputs = [framework.put(array) for array in inputs_of(task, subject.samples("test", data))]
    watch.lap("data")
    process.reset_peak_memory()
    net = recipe.load(recipe.network(task), subject.weights(weights))
    step = recipe.inference_step(net, task)
    watch.lap("network")
    test_rows = subject.rows("infer")
    seconds, warmup_steps, least = [], [], warmup.get("seconds", 0.0)
    most = min(warmup["most"], warmup["most"] if steps is None else max(steps // 2, 1))

    def is_trending():
        return clock.find_steady_step(seconds, warmup["window"], warmup["tolerance"]) is None

    def batch_rows():
        while sum(seconds) < least or (is_trending() and len(seconds) < most):
            if clock.is_over(seconds, limit and limit / 2):
                break
            yield test_rows[len(seconds) % len(test_rows)]
        # of very long steps, the limit may end with the warm-up: then the last step counts
        warmup_steps.append(len(seconds) - clock.is_over(seconds, limit))
        count = len(test_rows) if steps is None else max(steps - len(seconds), 0)
        cycle = [test_rows[number % len(test_rows)] for number in range(count)]
        for rows in repeat(cycle, seconds, sum(seconds) + least):
            yield rows

    report = progress_reporter(host, "infer", len(test_rows))
    rows = clock.within(batch_rows(), seconds, limit)
    batches = make_batches(framework, inputs, take_turns(rows, turn, host))
    for duration, _ in clock.time_steps(step, batches, framework.wait, together):
        seconds.append(duration)
        if len(seconds) == 1:
            framework.forget_peak_memory()
        report(len(seconds) - warmup_steps[0] if warmup_steps else 0)
    steady = clock.find_steady_step(seconds[: warmup_steps[0]], warmup["window"], warmup["tolerance"])
    outcome = summarise(framework, task, seconds, warmup_steps[0], steady is not None)
    outcome["preparation"] = watch.seconds
    batches = Batches(framework, inputs, test_rows, turn, host, limit)
    return dict(outcome, **more(step, batches, outcome["steps"], **requests))


class Stopwatch:
    """Measures the parts of a preparation, one after the other: {part: seconds}."""

    def __init__(self):
        self.seconds, self.began = {}, perf_counter()

    def lap(self, part):
        now = perf_counter()
        self.seconds[part], self.began = now - self.began, now


class Batches(NamedTuple):
    """What makes batches after the timed steps, from the rows of the steps."""

    framework: Any
    arrays: list  # on the device
    rows: Any  # of each step
    turn: Optional[int]
    host: Any
    limit: Optional[float] = None  # of the seconds of each kind of steps

    def take(self, rows):
        """Yield the batches of these rows."""
        return make_batches(self.framework, self.arrays, rows)

    def in_turns(self, items):
        return take_turns(items, self.turn, self.host)

    def repeated(self, count):
        """Return so many batches, of which at most MOST_TAKEN differ."""
        rows = [self.rows[number % len(self.rows)] for number in range(min(count, MOST_TAKEN))]
        batches = list(self.take(rows))
        return [batches[number % len(batches)] for number in range(count)]


def more(step, batches, steps, blocks=0, new_batch=False, sizes=0, communication=0, profile=0, sampler=None):
    """Return what is measured on request, after everything else. ``steps`` are those of the outcome.

    blocks       seconds per step in each of so many blocks of steps, with one wait at the end of a block, and seconds
                 until a call of the step returned, the mean of each block
    new_batch    seconds of the first step with another number of samples; and ``in_force`` after it
    sizes        seconds of so many steps for each of SIZES numbers of samples: see ``time_sizes``
    profile      seconds and calls of each operation in a step, the mean over so many steps under the profiler, and in
                 "step" those of the step itself, which the profiler makes slower. ``sampler`` is the path of
                 py-spy, for frameworks without a profiler
    communication  of so many steps: see ``time_communication``; only if the recipe can leave the communication out
    """
    result, wait = {}, batches.framework.wait
    if blocks:
        count, seconds, returned = steps_of_block(counted(steps)), [], []
        numbers = clock.within(range(blocks), seconds, batches.limit and batches.limit / count)
        blocks_of_batches = (batches.repeated(count) for _ in batches.in_turns(numbers))
        for whole, until_return in clock.time_blocks(step, blocks_of_batches, wait):
            seconds.append(whole)
            returned.append(until_return)
        result["blocks"] = {"seconds": seconds, "returned": returned}
    if new_batch:
        rows = batches.in_turns([other_size(batches.rows)])
        [(result["new_batch"], _)] = clock.time_steps(step, batches.take(rows), wait)
        result.update(in_force(batches.framework))
    if sizes:
        result["sizes"] = time_sizes(step, batches, sizes)
    if profile:
        result["profile"] = profiled(step, batches, affordable(profile, steps, batches.limit), sampler)
    if communication and hasattr(step, "communication"):  # last: afterwards the ranks have different parameters
        result["communication"] = time_communication(step, batches, communication)
    return result


def time_sizes(step, batches, count):
    """Return {number of samples, as text: seconds of each of ``count`` steps}, for SIZES numbers of samples.

    They are equal parts of a batch and the whole; of a batch that is too small, that batch and several of it. The
    sizes take turns. The first turn is not counted, because it compiles.
    """
    unit = len(batches.rows[0]) // SIZES or len(batches.rows[0])
    sizes = range(unit, unit * SIZES + 1, unit)
    rows = numpy.concatenate([batches.rows[number % len(batches.rows)] for number in range(SIZES)])
    samples = list(batches.take([rows[:size] for size in sizes]))
    seconds = []
    numbers = clock.within(range(count + 1), seconds, batches.limit, first=SIZES)
    turns = (batch for _ in batches.in_turns(numbers) for batch in samples)
    for duration, _ in clock.time_steps(step, turns, batches.framework.wait):
        seconds.append(duration)
    return {str(size): seconds[SIZES + place :: SIZES] for place, size in enumerate(sizes)}


def time_communication(step, batches, count):
    """Return the seconds of ``count`` steps "with" communication, of as many "without", and of it "alone".

    The three take turns, and all ranks begin each at the same time. The first turn is not counted.
    """
    communication, wait = step.communication(), batches.framework.wait

    def run(exchanges, batch):
        communication.exchanges = exchanges
        return step(*batch)

    ways = {
        "with": lambda batch: run(True, batch),
        "without": lambda batch: run(False, batch),
        "alone": lambda batch: communication.alone(),
    }
    [rows] = batches.in_turns([[batches.rows[number % len(batches.rows)] for number in range(count + 1)]])
    seconds = {name: [] for name in ways}
    for batch in batches.take(rows):
        for name, way in ways.items():
            communication.meet()
            began = perf_counter()
            wait(way(batch))
            seconds[name].append(perf_counter() - began)
    return {name: durations[1:] for name, durations in seconds.items()}


def profiled(step, batches, count, sampler=None):
    """Return what ``count`` steps do under the profiler of the framework:

    step         seconds of a step
    operations   {operation: [seconds, calls]} of a step
    busy         seconds of a step in operations; None if the framework has no profiler, or its profiler shows none
    kernels      {operation: the implementations that were selected, and how often in all steps}
    """
    framework = batches.framework
    [rows] = batches.in_turns([[batches.rows[number % len(batches.rows)] for number in range(count)]])
    samples, durations = list(batches.take(rows)), []

    def run():
        began = perf_counter()
        for batch in samples:
            framework.wait(step(*batch))
        durations.append(perf_counter() - began)

    profile = framework.profile if framework.HAS_PROFILER else partial(profile_functions, sampler=sampler)
    profile(run)  # without its result: the first steps of JAX under a profiler took three times as long
    operations, seconds = profile(run), durations[-1]
    busy = in_operations(framework, operations) if framework.HAS_PROFILER else 0
    return {
        "step": seconds / count,
        "busy": busy / count or None,
        "operations": {
            name: [seconds / count, calls / count] for name, (seconds, calls) in operations.items() if seconds > 0
        },
        "kernels": framework.kernels(run),
    }


def in_operations(framework, operations):
    """Return the seconds of all operations of a profile, without the Python code that the framework shows as one."""
    return sum(seconds for name, (seconds, _) in operations.items() if not name.startswith(framework.ANNOTATIONS))


def counted(steps):
    """Return the durations of the steps after the warm-up."""
    return steps["seconds"][steps["warmup"] :]


def affordable(count, steps, limit):
    """Return how many steps, at most ``count``, take ``limit`` seconds; at least one, and all without a limit."""
    return count if limit is None else max(1, min(count, int(limit / clock.median(counted(steps)))))


def steps_of_block(seconds):
    """Return how many steps of about these durations a block has."""
    return max(2, math.ceil(BLOCK_SECONDS / clock.median(seconds)))


def other_size(batch_rows):
    """Return the rows of half a batch; of two samples, if a batch has one."""
    first = batch_rows[0]
    return first[: len(first) // 2] if len(first) > 1 else numpy.concatenate(batch_rows[:2])


def summarise(framework, task, seconds, warmup, steady):
    """Return the part of an outcome that training and inference share. Call it before anything else uses memory."""
    outcome = {
        "steps": {"seconds": seconds, "warmup": warmup, "steady": steady, "batch": task.batch},
        "memory": {"host": process.peak_memory(), "device": framework.peak_memory()},
    }
    return dict(outcome, **in_force(framework))


def in_force(framework):
    """Return what the framework reports about its mode, as a field of an outcome; {} if it has no modes."""
    done = framework.in_force()
    return {} if done is None else {"in_force": done}


def repeat(batch_rows, seconds, least):
    """Yield the rows of each step, and then again from the first, until the steps took ``least`` seconds in all."""
    for rows in batch_rows:
        yield rows
    number = 0
    while len(batch_rows) and sum(seconds) < least:
        yield batch_rows[number % len(batch_rows)]
        number += 1


def evaluate(framework, subject, net, data, host):
    """Return the accuracy or the score on the Task's test samples, and their number.

    Every rank evaluates all of them: with FSDP2 no rank has the whole network.
    """
    task = subject.task
    if task.data is None and subject.score is None:
        return NOT_EVALUATED
    arrays, test_rows = subject.samples("test", data), subject.rows("test")
    report = progress_reporter(host, "evaluate", len(test_rows))
    batches = predictions(framework, subject, net, arrays, test_rows, report)
    if subject.score is None:
        accuracy = sum(subject.correct(*batch) for batch in batches) / test_rows.size
    else:
        accuracy = score(subject, batches)
    return {"accuracy": accuracy, "evaluated": test_rows.size}


def predictions(framework, subject, net, arrays, batch_rows, report=lambda done: None):
    """Yield the outputs of the network and the targets for each batch, as NumPy arrays."""
    inputs, target = [framework.put(array) for array in inputs_of(subject.task, arrays)], arrays[-1]
    step = subject.recipe.inference_step(net, subject.task)
    main = main_output if is_of_user(subject.task) else lambda output: output
    for done, rows in enumerate(batch_rows, 1):
        output = step(*(framework.take(array, rows) for array in inputs))
        yield framework.fetch(main(output)), target[rows]
        report(done)


def main_output(output):
    from stele_worker.models import outputs  # which a bundle for a built-in task does not have

    return outputs.main(output)


def is_of_user(task):
    """Return whether a Task is that of a user's model, whose inference may return several outputs."""
    return hasattr(task, "model")


def score(subject, batches):
    """Return the Task's score of all batches of ``predictions``."""
    return subject.score(*map(numpy.concatenate, zip(*batches)))


def inputs_of(task, arrays):
    """Return the inputs among a Task's arrays. The target is the last; only a model that needs none has no target."""
    return arrays if getattr(task, "target", True) is None else arrays[:-1]


def make_batches(framework, arrays, batch_rows):
    """Yield the rows of each array on the device, as a tuple for each step; of several ranks, the share of this one."""
    for rows in map(ranks.share, batch_rows):
        yield tuple(framework.take(array, rows) for array in arrays)


def take_turns(batch_rows, turn, host):
    """Yield each item of ``batch_rows``; pause before the first and then after every ``turn`` of them."""
    for done, rows in enumerate(batch_rows):
        if turn and done % turn == 0:
            host.pause(done)
        yield rows


def progress_reporter(host, phase, of):
    """Return report(done), which sends progress to the host at most once every PROGRESS_SECONDS."""
    last = [perf_counter()]

    def report(done):
        if perf_counter() - last[0] >= PROGRESS_SECONDS:
            host.report(phase=phase, done=done, of=of)
            last[0] = perf_counter()

    return report
