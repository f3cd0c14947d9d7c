"""The verbs of a worker. ``stele_worker.protocol`` lists the fields and the result of each verb."""

import os
import platform
from time import perf_counter

import numpy

from stele_worker import (
    agreement,
    capabilities,
    causes,
    defaults,
    frameworks,
    measurement,
    models,
    modes,
    process,
    protocol,
    subjects,
    time_to_accuracy,
)
from stele_worker.models import errors, specs

configuration = {}  # set by configure: the framework's module, and the dtype of its arithmetic


def do(request, host):
    """Carry out a request {"verb": ..., fields} and return its result.

    ``host`` receives progress messages and pauses. Raises ValueError if the verb is unknown.
    """
    verb = request.pop("verb", None)
    if verb not in VERBS:
        raise ValueError("unknown verb {!r}; this worker knows {}".format(verb, ", ".join(sorted(VERBS))))
    return VERBS[verb](host, **request)


def hello(host):
    return {
        "protocol": protocol.VERSION,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "pid": os.getpid(),
    }


def configure(host, framework, settings, model=None):
    process.limit_processors(settings["threads"])
    start = perf_counter()
    module = frameworks.load(framework)
    import_seconds = perf_counter() - start
    module.configure(
        modes.resolve(framework, module, settings)
    )  # before the user's module, which may make arrays
    if model is not None:
        start = perf_counter()
        specs.find(model)
        import_seconds += perf_counter() - start
    dtype = "bfloat16" if settings["precision"] == "bf16" else "float32"
    configuration.update(framework=module, dtype=dtype)
    return {
        "import_seconds": import_seconds,
        "versions": module.versions(),
        "flags": dict(module.flags(), processors=process.processors()),
    }


def train(host, task, scale, seed, form=None, model=None, batch=None, **fields):
    with errors.of_user(model):
        return measurement.train(
            *framework_and_subject(task, scale, seed, form, model, batch), host, **fields
        )


def infer(host, task, scale, seed, form=None, model=None, batch=None, **fields):
    with errors.of_user(model):
        return measurement.infer(
            *framework_and_subject(task, scale, seed, form, model, batch), host, **fields
        )


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

    def make_subject(attempt):
        return subjects.find(
            framework, task, scale, seed + attempt, configuration["dtype"], form=form, **changes
        )

    fields.pop("warmup", None)  # every epoch counts
    if target is None:
        return time_to_accuracy.train(framework, make_subject(0), host, **fields)
    return time_to_accuracy.until_target(make_subject, target, attempts, framework, host, **fields)


def parity(host, task, phase, seed, form=None, model=None, cause=None, **options):
    # parity takes one batch of a user's samples, at every scale
    scale = "parity" if model is None else "paper"
    with errors.of_user(model):
        framework, subject = framework_and_subject(task, scale, seed, form, model)
        if cause is None:
            return agreement.check(framework, subject, phase, **options)
    if frameworks.name(framework) != "numpy":
        raise ValueError("cause {!r} can only be injected into the oracle's recipes".format(cause))
    with causes.inject(task, cause):
        return agreement.check(framework, subject, phase)


def inspect(host, model):
    if configuration:
        raise RuntimeError("'configure' has chosen a framework: send 'inspect' to a new worker")
    return models.inspect(model)


def capability(host, name):
    return {"numbers": capabilities.show(frameworks.name(configured()), name)}


def read_defaults(host, framework):
    if configuration:
        raise RuntimeError("'configure' has changed the defaults: send 'defaults' to a new worker")
    table = defaults.table(framework)  # first, because the framework's module sets variables read at import
    return {"table": table, "versions": frameworks.load(framework).versions()}


def framework_and_subject(task, scale, seed, form, model, batch=None):
    """Return the configured framework and the subject of a request, with ``batch`` samples in a step if it is given."""
    framework = configured()
    return framework, subjects.find(framework, task, scale, seed, configuration["dtype"], form, model, batch)


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
    "capability": capability,
    "defaults": read_defaults,
}
