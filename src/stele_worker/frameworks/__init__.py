"""Framework support that does not depend on a Task: one module per framework, with the same names in each.

configure(settings)    set device, threads, precision, determinism and seed, before any array is created
versions() -> dict     of the framework and the libraries that compute for it
flags() -> dict        the active settings, read back from the framework
put(array)             copy a numpy array to the device
take(data, rows)       copy rows of an array on the device to a new array there
take_pixels(images, table, layout)  return augmented images: see ``stele_worker.tasks.augmentation``
draw_integers(samples, limit, seed), draw_weight(shape, seed)    the framework's own random numbers and initial weights,
                       for the open division; only if it has recipes for a Task with one
wait(value)            return when ``value`` has been computed
fetch(value)           return a value as a numpy array
tracked(value) -> bool whether a gradient could be taken through ``value``; only if the framework can say
profile(run) -> {operation: (seconds, calls)} during run(); only if the framework has a profiler
ANNOTATIONS            how operations in a profile begin that are Python code of the framework; only if there are some
kernels(run) -> {operation: text} the implementations that were selected; only if oneDNN does not report them
forget_peak_memory()   start again to find the peak of the device's memory; only if the framework can
peak_memory() -> int   peak device memory in bytes; None if there is no device memory

A framework that trains on several devices also has

PARALLEL               "processes" or "sharded": see ``stele_worker.ranks``
STATISTICS             whose samples batch normalisation uses: "own", those of each device, or "all"
step.communication()   of a training step: an object with ``exchanges``, ``alone`` and ``meet``, see
                       ``frameworks.torch.Communication``; only if a step can leave its communication out
copies(value)          the parts, or the copies, of a value on the devices of this process; only if it has several
on_each_device(read, net)    read(net) of each device of this process; only if ``copies`` cannot find all copies of a
                       parameter from one of them
"""

import importlib
import os
import sys
import traceback

from stele_worker.protocol import SetupError

tuned = True  # whether Stele sets what makes a framework fast: not for a model of the user. Some read it at import
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def load(name):
    """Return a framework's module. Raises SetupError if this interpreter lacks a package that the module imports."""
    try:
        return importlib.import_module(__name__ + "." + name)
    except ModuleNotFoundError as error:
        raise missing_package(error) or error from None


def missing_package(error):
    """Return the SetupError of a package that a module of Stele imports; None if a package of the release lacks one.

    A missing part of a package is not a missing package: the release may have dropped it.
    """
    frames = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    [*_, last] = [path for path in frames if not path.startswith("<frozen")]
    if not error.name or "." in error.name or not last.startswith(PACKAGE + os.sep):
        return None
    message = "The interpreter {} lacks the package {}. Install it there, or name another environment."
    return SetupError(message.format(sys.executable, error.name))


def name(framework):
    """Return the name under which ``load`` finds the framework's module."""
    return framework.__name__.rsplit(".", 1)[1]
