"""What a worker can be asked. Fields and results of each verb stand in ``stele_worker.protocol``."""

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
    process,
    protocol,
    tasks,
)

configured = {}  # the framework in force, as a module, and the dtype of its arithmetic


def do(request, host):
    """Carry out a request {"verb": ..., fields}. ``host`` is told of progress, and asked to go on."""
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


def configure(host, framework, settings):
    process.keep_to(settings["threads"])
    start = perf_counter()
    module = frameworks.load(framework)
    import_seconds = perf_counter() - start
    module.configure(settings)
    dtype = "bfloat16" if settings["precision"] == "bf16" else "float32"
    configured.update(framework=module, dtype=dtype)
    return {
        "import_seconds": import_seconds,
        "versions": module.versions(),
        "flags": dict(module.flags(), processors=process.processors()),
    }


def train(host, task, scale, seed, form=None, **fields):
    framework, task = subject(task, scale, seed, form)
    return measurement.train(framework, task, host, **fields)


def infer(host, task, scale, seed, form=None, **fields):
    framework, task = subject(task, scale, seed, form)
    return measurement.infer(framework, task, host, **fields)


def parity(host, task, phase, seed, form=None, cause=None):
    framework, task = subject(task, "paper", seed, form)
    if cause is None:
        return agreement.check(framework, task, phase)
    if frameworks.name(framework) != "numpy":
        raise ValueError("a cause, {!r}, is planted into the oracle's recipes alone".format(cause))
    with causes.planted(task.name, cause):
        return agreement.check(framework, task, phase)


def capability(host, name):
    if not configured:
        raise RuntimeError("no framework yet: send 'configure' first")
    return {"numbers": capabilities.show(frameworks.name(configured["framework"]), name)}


def defaults_of(host, framework):
    if configured:
        raise RuntimeError(
            "'configure' has set what 'defaults' is about: ask a worker that was not configured"
        )
    table = defaults.table(framework)  # first, for the framework's module sets what is read at an import
    return {"table": table, "versions": frameworks.load(framework).versions()}


def subject(task, scale, seed, form):
    """The framework in force and the Task asked for, in another form if one is named."""
    if not configured:
        raise RuntimeError("no framework yet: send 'configure' first")
    changes = {"seed": seed, "dtype": configured["dtype"]}
    if form is not None:
        changes["form"] = form
    return configured["framework"], tasks.make(task, scale, **changes)


VERBS = {
    "hello": hello,
    "configure": configure,
    "train": train,
    "infer": infer,
    "parity": parity,
    "capability": capability,
    "defaults": defaults_of,
}
