"""Train a Task for a fixed number of epochs, and time them: the phase ``time-to-accuracy``.

An outcome is that of ``stele_worker.measurement``, where a step is an epoch and every epoch counts. It also has
"epochs". docs/protocol.md describes their keys.
"""

import gc
from time import perf_counter
from typing import Any, NamedTuple

from stele_worker import checkpoints, clock, measurement, process
from stele_worker.protocol import TIME_TO_ACCURACY

# seconds between two messages within an epoch: so seldom that they do not change its duration
HEARTBEAT = 10.0


def train(framework, subject, host, data, weights, turn=None, checkpoint=None):
    """Train once and return an outcome. Raises ValueError if the Task has no data set.

    ``checkpoint`` is the path of a file to which the state is saved, and from which a killed training continues.
    """
    task, recipe = subject.task, subject.recipe
    if task.data is None:
        raise ValueError("task {!r} generates its samples, so it has no target accuracy".format(task.name))
    gc.collect()
    process.reset_peak_memory()
    table = subject.table(framework)
    began = perf_counter()
    samples = subject.samples("train", data)
    initial, augment = (
        subject.weights(weights, samples),
        make_augmentation(framework, subject, samples, table),
    )
    data_seconds = perf_counter() - began
    net = recipe.load(recipe.network(task), subject.initial(framework, initial))
    step, epochs, paused = recipe.training_step(net, task), subject.epochs(), 0.0
    saved = checkpoints.Checkpoints(checkpoint, step, framework.versions())
    results = saved.restore()
    done = len(results)
    began = perf_counter()
    evaluate = make_evaluation(framework, subject, net, data)
    for epoch in range(done, len(epochs)):
        paused += pause(host, epoch, turn)
        rows, first = beat(host, epochs[epoch], epoch + 1), epoch == done
        results.append(dict(train_epoch(framework, step, augment, rows, epoch, first), **evaluate()))
        host.report(**progress(results, len(epochs)))
        if len(results) < len(epochs):
            saved.save(results)
    elapsed = data_seconds + perf_counter() - began - paused
    outcome = measurement.summarise(framework, task, [epoch["seconds"] for epoch in results], 0, True)
    timing = {"data_seconds": data_seconds, "elapsed": elapsed, "continued": done > 0, "missed": []}
    learning = {
        "losses": [epoch["losses"] for epoch in results],
        "accuracy": results[-1]["accuracies"],
        "evaluated": subject.rows("test").size,
    }
    return dict(outcome, learning=learning, epochs=dict(columns(results), **timing))


def until_target(make_subject, target, attempts, framework, host, **fields):
    """Train up to ``attempts`` times, until the accuracy after the last epoch reaches the target.

    ``make_subject(attempt)`` returns the subject of an attempt. Returns the outcome of the last one, with the seconds
    of the others in ``missed``.
    """
    missed = []
    for attempt in range(attempts):
        outcome = train(framework, make_subject(attempt), in_attempt(host, attempt), **fields)
        if outcome["learning"]["accuracy"] >= target:
            break
        if attempt < attempts - 1:
            missed.append(outcome["epochs"]["data_seconds"] + sum(outcome["steps"]["seconds"]))
    outcome["epochs"]["missed"] = missed
    return outcome


class Host(NamedTuple):
    """What a training needs of the host."""

    report: Any
    pause: Any


def in_attempt(host, attempt):
    """Return the host with the attempt in the names of phases: another one begins at the first step again.

    A phase that reports no new step would look as if the training hung.
    """
    if attempt == 0:
        return host

    def report(phase, **fields):
        host.report(phase="{}, attempt {}".format(phase, attempt + 1), **fields)

    return Host(report, host.pause)


def train_epoch(framework, step, augment, rows, epoch, first):
    """Return what is kept of the training of an epoch. The ``first`` one of a process also compiles."""
    arrays, seconds, compile_seconds = time_augmentation(framework, augment, epoch, first)
    timing = clock.time_all(step, measurement.make_batches(framework, arrays, rows), framework.wait)
    excess = timing.compile_seconds() if first else 0.0
    losses = [float(framework.fetch(loss)) for loss in timing.results]
    return {
        "losses": sum(losses) / len(losses),
        "seconds": seconds + timing.seconds - excess,
        "training_compile_seconds": compile_seconds + excess,
    }


def make_augmentation(framework, subject, samples, table):
    """Return augment(epoch) -> the arrays of an epoch on the device. Without augmentation all epochs have the same."""
    if subject.on_host():
        return lambda epoch: [framework.put(array) for array in subject.augmented(samples, epoch)]
    arrays, layout = [framework.put(array) for array in samples], subject.recipe.LAYOUT
    framework.wait(arrays)
    if table is None:
        return lambda epoch: arrays
    images, *others = arrays
    return lambda epoch: [framework.take_pixels(images, table(epoch), layout), *others]


def time_augmentation(framework, augment, epoch, first):
    """Return the arrays of an epoch, the seconds of their augmentation, and those of a ``first`` call, which compiles.

    The augmentation is a pure function, so the first call is repeated.
    """
    calls = []
    for _ in range(2 if first else 1):
        began = perf_counter()
        arrays = augment(epoch)
        framework.wait(arrays)
        calls.append(perf_counter() - began)
    return arrays, calls[-1], sum(calls[:-1])


def make_evaluation(framework, subject, net, data):
    """Return evaluate(), which returns what is kept of the evaluation after an epoch. Its first call also compiles."""
    arrays = subject.samples("test", data)
    inputs = [framework.put(array) for array in measurement.inputs_of(subject.task, arrays)]
    framework.wait(inputs)
    recipe, rows, calls = subject.recipe, subject.rows("test"), []
    step = getattr(recipe, "evaluation_step", recipe.inference_step)(net, subject.task)

    def evaluate():
        began = perf_counter()
        timing = clock.time_all(step, measurement.make_batches(framework, inputs, rows), framework.wait)
        pairs = zip(timing.results, rows)
        right = sum(subject.correct(framework.fetch(output), arrays[-1][of]) for output, of in pairs)
        seconds, excess = perf_counter() - began, 0.0 if calls else timing.compile_seconds()
        calls.append(seconds)
        return {
            "accuracies": right / rows.size,
            "evaluation_seconds": seconds - excess,
            "evaluation_compile_seconds": excess,
        }

    return evaluate


def columns(results):
    """Return what an outcome says about its epochs: a number for each, and the seconds of all compilations."""
    names = ("training_compile_seconds", "evaluation_compile_seconds")
    epochs = {name: [epoch[name] for epoch in results] for name in ("accuracies", "evaluation_seconds")}
    return dict(epochs, compile_seconds=sum(epoch[name] for epoch in results for name in names))


def progress(results, of):
    """Return the message after an epoch: how far the training is, loss, accuracy, and the seconds that remain."""
    past = sum(epoch["seconds"] + epoch["evaluation_seconds"] for epoch in results)
    return {
        "phase": TIME_TO_ACCURACY,
        "done": len(results),
        "of": of,
        "loss": results[-1]["losses"],
        "accuracy": results[-1]["accuracies"],
        "remaining": past / len(results) * (of - len(results)),
    }


def pause(host, number, turn):
    """Pause before every ``turn`` epochs, while another worker runs. Return for how many seconds."""
    began = perf_counter()
    if turn and number % turn == 0:
        host.pause(number)
    return perf_counter() - began


def beat(host, rows, epoch):
    """Yield the rows of each step of an epoch; tell the host every HEARTBEAT seconds how many steps are done."""
    last = perf_counter()
    for number, each in enumerate(rows):
        if perf_counter() - last >= HEARTBEAT:
            host.report(phase="epoch {}".format(epoch), done=number, of=len(rows))
            last = perf_counter()
        yield each
