"""What a worker can be asked. Fields and results of each verb stand in ``stele_worker.protocol``."""

import os
import platform
from time import perf_counter

import numpy

from stele_worker import agreement, frameworks, measurement, process, protocol, tasks

configured = {}  # the framework in force, as a module, and the dtype of its arithmetic


def do(request, tell):
    """Carry out a request {"verb": ..., fields}; ``tell(**fields)`` reports progress."""
    verb = request.pop("verb", None)
    if verb not in VERBS:
        raise ValueError("unknown verb {!r}; this worker knows {}".format(verb, ", ".join(sorted(VERBS))))
    return VERBS[verb](tell, **request)


def hello(tell):
    return {
        "protocol": protocol.VERSION,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "pid": os.getpid(),
    }


def configure(tell, framework, settings):
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


def train(tell, task, scale, seed, form=None, **fields):
    framework, task = subject(task, scale, seed, form)
    return measurement.train(framework, task, tell, **fields)


def infer(tell, task, scale, seed, form=None, **fields):
    framework, task = subject(task, scale, seed, form)
    return measurement.infer(framework, task, tell, **fields)


def parity(tell, task, phase, seed, form=None):
    framework, task = subject(task, "paper", seed, form)
    return agreement.check(framework, task, phase)


def subject(task, scale, seed, form):
    """The framework in force and the Task asked for, in another form if one is named."""
    if not configured:
        raise RuntimeError("no framework yet: send 'configure' first")
    changes = {"seed": seed, "dtype": configured["dtype"]}
    if form is not None:
        changes["form"] = form
    return configured["framework"], tasks.make(task, scale, **changes)


VERBS = {"hello": hello, "configure": configure, "train": train, "infer": infer, "parity": parity}
