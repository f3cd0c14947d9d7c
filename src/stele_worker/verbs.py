"""The verbs of a worker. ``stele_worker.protocol`` lists the fields and the result of each verb."""

import os
import platform

import numpy

from stele_worker import (
    agreement,
    capabilities,
    causes,
    clock,
    defaults,
    frameworks,
    measurement,
    process,
    protocol,
    subjects,
    time_to_accuracy,
)
from stele_worker.models import errors, reads, sources
from stele_worker.ranks import ranks

configuration = {}  # set by configure: the framework, and the dtype of its arithmetic


def do(request, host):
    """Carry out a request {"verb": ..., fields} and return its result.

    ``host`` receives progress messages and pauses. Raises ValueError if the verb is unknown.
    """
    verb = request.pop("verb", None)
    if verb not in VERBS:
        raise ValueError("unknown verb {!r}; this worker knows {}".format(verb, ", ".join(sorted(VERBS))))
    ranks.host = host
    try:
        return VERBS[verb](host, **request)
    except Exception as error:
        ended = ranks.describe_ended()
        if ended is None:
            raise
        raise RuntimeError("{}: {}".format(ended, error)) from error


def hello(host):
    return {
        "protocol": protocol.VERSION,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "pid": os.getpid(),
    }


def configure(host, framework, settings, model=None):
    devices, request = settings.get("devices", 1), {"framework": framework, "settings": settings}
    limited = settings["device"] == "cpu"  # the threads that give work to a GPU need processors of their own
    if limited:
        process.limit_processors(settings["threads"] * devices)
    frameworks.tuned = settings.get("tuned", True)
    together = settings.get("together", False)
    since_start, since_import = clock.stopwatch(), clock.stopwatch(together)
    loaded = frameworks.load(framework)
    import_seconds = since_import()
    ranks.configure(loaded, settings)
    ranks.start(dict(request, verb="configure"))
    if limited and ranks.processes > 1:
        process.limit_processors(settings["threads"], ranks.number())
    loaded.configure(loaded.resolve(settings))  # before the user's module, which may make arrays
    if model is not None:
        reads.watch(model["folder"])
        since_import = clock.stopwatch(together)
        sources.find(model)
        import_seconds += since_import()
    dtype = "bfloat16" if settings["precision"] == "bf16" else "float32"
    configuration.update(framework=loaded, dtype=dtype, scaling=settings.get("scaling", "weak"))
    ranks.results({})  # all ranks are ready
    return {
        "import_seconds": import_seconds,
        "start_seconds": since_start(),
        "versions": loaded.versions(),
        "flags": dict(loaded.flags(), processors=process.processors()),
    }


def train(host, task, scale, seed, form=None, model=None, batch=None, **fields):
    with errors.of_user(model):
        subject = framework_and_subject(task, scale, seed, form, model, batch, scaling=configuration["scaling"])
        return ranks.combined(measurement.train(*subject, host, **fields))


def infer(host, task, scale, seed, form=None, model=None, batch=None, **fields):
    ranks.only_training("infer")
    with errors.of_user(model):
        return measurement.infer(*framework_and_subject(task, scale, seed, form, model, batch), host, **fields)


def reach_target(
    host,
    task,
    scale,
    seed,
    form=None,
    target=None,
    attempts=1,
    epochs=None,
    tricks=None,
    division=None,
    **fields,
):
    changes = {
        "epochs": epochs,
        "tricks": None if tricks is None else tuple(tricks),
        "division": division,
    }
    changes = {name: value for name, value in changes.items() if value is not None}
    framework = configured()
    ranks.only_training(protocol.TIME_TO_ACCURACY)

    def make_subject(attempt):
        return subjects.find(framework, task, scale, seed + attempt, configuration["dtype"], form=form, **changes)

    fields.pop("warmup", None)  # every epoch counts
    if target is None:
        return time_to_accuracy.train(framework, make_subject(0), host, **fields)
    return time_to_accuracy.until_target(make_subject, target, attempts, framework, host, **fields)


def parity(host, task, phase, seed, form=None, model=None, cause=None, **options):
    # parity takes one batch of a user's samples, at every scale
    scale = "parity" if model is None else "paper"
    if model is not None:
        reads.watch(model["folder"])
        reads.watch_libraries()
    if cause is None:
        with errors.of_user(model):
            return agreement.check(*framework_and_subject(task, scale, seed, form, model), phase, **options)
    with causes.inject(task, cause):
        framework, subject = framework_and_subject(task, scale, seed, form, model)
        if framework.name != "numpy":
            raise ValueError("cause {!r} can only be injected into the oracle's recipes".format(cause))
        return agreement.check(framework, subject, phase)


def inspect(host, model):
    if configuration:
        raise RuntimeError("'configure' has chosen a framework: send 'inspect' to a new worker")
    from stele_worker.models import inspection

    reads.watch(model["folder"])
    reads.watch_libraries()
    return dict(inspection.inspect(model), **reads.of_process(model["folder"]))


def what_was_read(host, folder):
    return reads.of_process(folder)


def capability(host, name):
    return {"numbers": capabilities.show(configured().name, name)}


def read_defaults(host, framework):
    if configuration:
        raise RuntimeError("'configure' has changed the defaults: send 'defaults' to a new worker")
    table = defaults.table(framework)  # first, because the framework's module sets variables read at import
    return {"table": table, "versions": frameworks.load(framework).versions()}


def framework_and_subject(task, scale, seed, form, model, batch=None, scaling="strong"):
    """Return the configured framework and the subject of a request.

    ``batch`` is the number of samples of a step, if it is given. ``scaling`` says whether it grows with the devices.
    """
    framework, dtype = configured(), configuration["dtype"]
    subject = subjects.find(framework, task, scale, seed, dtype, form, model, batch)
    changes = ranks.scaled(subject.task, scaling, model)
    if changes:
        subject = subjects.find(framework, task, scale, seed, dtype, form, model, **changes)
    return framework, subject


def configured():
    """Return the framework that ``configure`` chose."""
    if not configuration:
        raise RuntimeError("no framework is configured: send 'configure' first")
    return configuration["framework"]


VERBS = {
    "hello": hello,
    "configure": configure,
    "train": train,
    "infer": infer,
    protocol.TIME_TO_ACCURACY: reach_target,
    "parity": parity,
    "inspect": inspect,
    "reads": what_was_read,
    "capability": capability,
    "defaults": read_defaults,
}
