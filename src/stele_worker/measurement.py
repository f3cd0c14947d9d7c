"""Measure one launch of one recipe.

An outcome is a dict:
    seconds          duration of every step, including the first
    warmup           number of leading steps that are not counted
    steady           whether the step times had stopped trending after the warm-up
    batch            samples per step
    in_force         what the framework reports about its mode: graphs, traces, compilations; only if it has modes
    host_memory      peak resident memory of the process, in bytes; None if unknown
    device_memory    peak memory on the device, in bytes; None on a CPU
and after training also
    losses           of every step
    accuracy         fraction of the Task's test samples classified correctly after the last step; None if the
                     Task's labels are random
    evaluated        number of test samples
"""

from time import perf_counter

from stele_worker import clock, process

NOT_EVALUATED = {"accuracy": None, "evaluated": 0}
PROGRESS_SECONDS = 1.0  # minimum time between two progress messages, so that they do not disturb the steps


def train(framework, subject, host, data, weights, warmup, turn=None, steps=None):
    """Train for the Task's epochs, time every step, then evaluate. Return an outcome.

    With ``steps``, stop after so many and do not evaluate.
    """
    task, recipe = subject.task, subject.recipe
    arrays = [framework.put(array) for array in subject.samples("train", data)]
    process.reset_peak_memory()
    net = recipe.load(recipe.network(task), subject.weights(weights))
    step = recipe.training_step(net, task)
    batch_rows = subject.rows("train")[:steps]
    batches = make_batches(framework, arrays, take_turns(batch_rows, turn, host))
    report = progress_reporter(host, "train", len(batch_rows))
    seconds, losses = [], []
    for duration, loss in clock.time_steps(step, batches, framework.wait):
        seconds.append(duration)
        losses.append(loss)
        report(len(seconds))
    steady = clock.find_steady_step(seconds, warmup["window"], warmup["tolerance"])
    unsteady = min(warmup["most"], len(seconds) // 2)
    outcome = summarise(framework, task, seconds, unsteady if steady is None else steady, steady is not None)
    outcome["losses"] = [float(framework.fetch(loss)) for loss in losses]
    outcome.update(NOT_EVALUATED if steps else evaluate(framework, subject, net, data, host))
    return outcome


def infer(framework, subject, host, data, weights, warmup, turn=None, steps=None):
    """Warm up until the step times stop trending, then time the Task's test batches. Return an outcome.

    With ``steps``, stop after so many in all, the warm-up included.
    """
    task, recipe = subject.task, subject.recipe
    inputs = [framework.put(array) for array in inputs_of(task, subject.samples("test", data))]
    process.reset_peak_memory()
    net = recipe.load(recipe.network(task), subject.weights(weights))
    step = recipe.inference_step(net, task)
    test_rows = subject.rows("infer")
    seconds, warmup_steps = [], []
    most = min(warmup["most"], warmup["most"] if steps is None else max(steps // 2, 1))

    def is_trending():
        return clock.find_steady_step(seconds, warmup["window"], warmup["tolerance"]) is None

    def batch_rows():
        while is_trending() and len(seconds) < most:
            yield test_rows[len(seconds) % len(test_rows)]
        warmup_steps.append(len(seconds))
        for number in range(len(test_rows) if steps is None else max(steps - len(seconds), 0)):
            yield test_rows[number % len(test_rows)]

    report = progress_reporter(host, "infer", len(test_rows))
    batches = make_batches(framework, inputs, take_turns(batch_rows(), turn, host))
    for duration, _ in clock.time_steps(step, batches, framework.wait):
        seconds.append(duration)
        report(len(seconds) - warmup_steps[0] if warmup_steps else 0)
    steady = clock.find_steady_step(seconds[: warmup_steps[0]], warmup["window"], warmup["tolerance"])
    return summarise(framework, task, seconds, warmup_steps[0], steady is not None)


def summarise(framework, task, seconds, warmup, steady):
    """Return the part of an outcome that training and inference share. Call it before anything else uses memory."""
    outcome = {
        "host_memory": process.peak_memory(),
        "device_memory": framework.peak_memory(),
        "seconds": seconds,
        "warmup": warmup,
        "steady": steady,
        "batch": task.batch,
    }
    if hasattr(framework, "in_force"):
        outcome["in_force"] = framework.in_force()
    return outcome


def evaluate(framework, subject, net, data, host):
    """Return the accuracy on the Task's test samples, and their number."""
    task = subject.task
    if task.data is None:
        return NOT_EVALUATED
    arrays = subject.samples("test", data)
    inputs, target = [framework.put(array) for array in inputs_of(task, arrays)], arrays[-1]
    step, test_rows, correct = subject.recipe.inference_step(net, task), subject.rows("test"), 0
    report = progress_reporter(host, "evaluate", len(test_rows))
    for done, rows in enumerate(test_rows, 1):
        batch = [framework.take(array, rows) for array in inputs]
        correct += subject.correct(framework.fetch(step(*batch)), target[rows])
        report(done)
    return {"accuracy": correct / test_rows.size, "evaluated": test_rows.size}


def inputs_of(task, arrays):
    """Return the inputs among a Task's arrays. The target is the last; only a model that needs none has no target."""
    return arrays if getattr(task, "target", True) is None else arrays[:-1]


def make_batches(framework, arrays, batch_rows):
    """Yield the rows of each array on the device, as a tuple for each step."""
    for rows in batch_rows:
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
