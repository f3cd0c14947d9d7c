"""What a library needs around any Task: one module a framework, found by name, the same names in each.

configure(settings)    set device, threads, precision, determinism and seed, before any array is made
versions() -> dict     of the framework and what computes for it
flags() -> dict        the settings in force, read back from the framework
put(array)             a numpy array onto the device
take(data, rows)       rows of an array on the device, as a new array there
wait(value)            return when ``value`` has been computed
fetch(value)           a value as a numpy array
tracked(value) -> bool whether a gradient could be taken through ``value``; only where values can say
peak_memory() -> int   highest device memory in use so far, in bytes; None where there is no device memory
"""

import importlib


def load(name):
    return importlib.import_module(__name__ + "." + name)


def name(framework):
    """The name that ``load`` found it by."""
    return framework.__name__.rsplit(".", 1)[1]
