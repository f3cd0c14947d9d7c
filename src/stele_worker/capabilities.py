"""Capabilities of a framework beyond training these Tasks. Each one computes a number that is known in advance.

``capabilities.py`` of a framework has one function per capability. The host compares the result with the expected
number (``stele.parity.capabilities``). A framework that lacks a capability raises NotImplementedError with the reason.

second_derivative()     d2y/dx2 of y = x ** 3 at x = 2
gradient_penalty()      of f(x) = w * x ** 2 at x = 1.5, w = 2: the gradient of (|df/dx| - 1) ** 2 with respect to w
hooks()                 a layer y = 3 x at x = 2, a hook before it that doubles x, a hook after it that adds 1: y
shared_parameter()      one parameter w = 3 in two layers, y = w (w x) at x = 2: dy/dw
predicted_weight()      a layer with a weight a * z from a different network, a = 2, z = 3, at x = 5: [y, dy/da]
control_flow()          compiled once: how often 100 and 3 can be halved until they are at most 1: [7, 2]
dynamic_batch()         how often a function is traced or compiled when it is called with batches of 2, 3 and 5
saved_model(folder)     y = 3 x, compiled, saved into a folder, loaded for inference, at x = 2: y
"""

import tempfile

import numpy

from stele_worker import frameworks

NAMES = (
    "second_derivative",
    "gradient_penalty",
    "hooks",
    "shared_parameter",
    "predicted_weight",
    "control_flow",
    "dynamic_batch",
    "saved_model",
)


def show(framework, name):
    """Return the numbers that the framework computes for the capability ``name``.

    Raises NotImplementedError if the framework lacks it, and ValueError if there is no such capability.
    """
    if name not in NAMES:
        raise ValueError("unknown capability {!r}; choose from {}".format(name, ", ".join(NAMES)))
    module = frameworks.part(framework, "capabilities")
    if module is None:
        raise NotImplementedError("no capability is implemented for {} yet".format(framework))
    function = getattr(module, name)
    if name != "saved_model":
        return numbers(function())
    with tempfile.TemporaryDirectory() as folder:
        return numbers(function(folder))


def numbers(value):
    return [float(number) for number in numpy.ravel(numpy.asarray(value, numpy.float64))]
