"""One launch's measurement of one recipe.

An outcome is a dict:
    seconds          duration of every step, the first included
    warmup           how many leading steps are not counted
    steady           whether the steps had stopped trending by then
    batch            samples per step
    host_memory      peak resident memory of the process, bytes; None where unknown
    device_memory    peak memory on the device, bytes; None on a CPU
and after training
    losses           of every step
    accuracy         fraction of the Task's test samples, after the last step; None where labels mean nothing
    evaluated        number of test samples
"""

from time import perf_counter

import numpy

from stele_worker import clock, frameworks, process, recipes, tasks

PROGRESS_SECONDS = 1.0  # between two progress messages: rare enough not to disturb the steps


def train(framework, task, host, data, weights, warmup, turn=None):
    """Train for the Task's epochs, timing every step, then evaluate."""
    recipe = recipes.load(task.name, frameworks.name(framework))
    x, y = [framework.put(array) for array in samples(task, data, "train", recipe.LAYOUT)]
    process.forget_peak_memory()
    net = recipe.load(recipe.network(task), initial(task, weights))
    step = recipe.training_step(net, task)
    rows = [rows for epoch in range(task.epochs) for rows in tasks.batch_order(task, epoch)]
    batches = ((framework.take(x, row), framework.take(y, row)) for row in in_turns(rows, turn, host))
    report = reporter(host, "train", len(rows))
    seconds, losses = [], []
    for duration, loss in clock.steps(step, batches, framework.wait):
        seconds.append(duration)
        losses.append(loss)
        report(len(seconds))
    steady = clock.steady_from(seconds, warmup["window"], warmup["tolerance"])
    unsteady = min(warmup["most"], len(seconds) // 2)
    outcome = summary(framework, task, seconds, unsteady if steady is None else steady, steady is not None)
    outcome["losses"] = [float(framework.fetch(loss)) for loss in losses]
    outcome.update(evaluation(framework, recipe, net, task, data, host))
    return outcome


def infer(framework, task, host, data, weights, warmup, turn=None):
    """Warm up until steps stop trending, then time the Task's test batches."""
    recipe = recipes.load(task.name, frameworks.name(framework))
    x = framework.put(samples(task, data, "test", recipe.LAYOUT)[0])
    process.forget_peak_memory()
    step = recipe.inference_step(recipe.load(recipe.network(task), initial(task, weights)), task)
    counted = whole_batches(task)
    seconds, warm = [], []

    def trending():
        return clock.steady_from(seconds, warmup["window"], warmup["tolerance"]) is None

    def rows():
        while trending() and len(seconds) < warmup["most"]:
            yield counted[len(seconds) % len(counted)]
        warm.append(len(seconds))
        for row in counted:
            yield row

    report = reporter(host, "infer", len(counted))
    batches = ((framework.take(x, row),) for row in in_turns(rows(), turn, host))
    for duration, _ in clock.steps(step, batches, framework.wait):
        seconds.append(duration)
        report(len(seconds) - warm[0] if warm else 0)
    steady = clock.steady_from(seconds[: warm[0]], warmup["window"], warmup["tolerance"])
    return summary(framework, task, seconds, warm[0], steady is not None)


def summary(framework, task, seconds, warmup, steady):
    """What training and inference have in common. Memory first: what follows may need more of it."""
    return {
        "host_memory": process.peak_memory(),
        "device_memory": framework.peak_memory(),
        "seconds": seconds,
        "warmup": warmup,
        "steady": steady,
        "batch": task.batch,
    }


def evaluation(framework, recipe, net, task, data, host):
    """Accuracy on the Task's test samples."""
    if task.data is None:
        return {"accuracy": None, "evaluated": 0}
    x, y = samples(task, data, "test", recipe.LAYOUT)
    x, step, right, rows = framework.put(x), recipe.inference_step(net, task), 0, whole_batches(task)
    report = reporter(host, "evaluate", len(rows))
    for done, row in enumerate(rows, 1):
        right += int((framework.fetch(step(framework.take(x, row))).argmax(1) == y[row]).sum())
        report(done)
    return {"accuracy": right / rows.size, "evaluated": rows.size}


def samples(task, data, part, layout):
    """The Task's share of a data set's ``part``, "train" or "test": inputs as the network takes them, labels int32."""
    module = tasks.load(task.name)
    size = getattr(task, part)
    if task.data is None:
        x, y = module.example(size, task.seed)
    else:
        x = numpy.load(data[part + "_x"], mmap_mode="r")
        y = numpy.load(data[part + "_y"], mmap_mode="r")
        rows = tasks.subset(size, len(x))
        x, y = module.inputs(x[rows]), y[rows]
    return arranged(x, layout), numpy.ascontiguousarray(y, numpy.int32)


def arranged(x, layout):
    """Images (n, height, width, channel) in a recipe's layout."""
    return numpy.ascontiguousarray(x.transpose(0, 3, 1, 2) if layout == "NCHW" else x)


def initial(task, path):
    """The weights to start from: the file's, or the Task's seeded ones."""
    if path is None:
        return tasks.weights(task)
    with numpy.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def whole_batches(task):
    """Rows of the test set, in order, for each whole batch: int64 of shape (batches, batch)."""
    count = task.test // task.batch
    return numpy.arange(count * task.batch).reshape(count, task.batch)


def in_turns(rows, turn, host):
    """``rows``, one by one; before the first and after each ``turn`` of them another worker may have its turn."""
    for done, row in enumerate(rows):
        if turn and done % turn == 0:
            host.pause(done)
        yield row


def reporter(host, phase, of):
    """report(done) tells the host how far it is, but seldom."""
    last = [perf_counter()]

    def report(done):
        if perf_counter() - last[0] >= PROGRESS_SECONDS:
            host.tell(phase=phase, done=done, of=of)
            last[0] = perf_counter()

    return report
