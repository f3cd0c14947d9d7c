"""Read the parameters of functions and classes."""

import inspect


def required(function):
    """Return the names of the parameters without defaults; [] if Python cannot read the signature."""
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [each.name for each in parameters(function) if each.default is each.empty and each.kind not in variable]


def parameters(function):
    """Return the parameters of a function, or of the constructor of a class."""
    skipped = 1 if isinstance(function, type) else 0
    try:
        return list(inspect.signature(function.__init__ if skipped else function).parameters.values())[skipped:]
    except (TypeError, ValueError):  # written in C
        return []
