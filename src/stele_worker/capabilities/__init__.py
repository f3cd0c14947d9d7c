"""What a framework can do beyond training these Tasks, each shown by a number that is known beforehand.

One module a framework, found by name, with a function for each capability that the framework has; what it returns is
held against what ``stele.capabilities`` expects. A function that raises NotImplementedError says why there is none.

second_derivative()     d2y/dx2 of y = x ** 3 at x = 2
gradient_penalty()      of f(x) = w * x ** 2 at x = 1.5, w = 2: the gradient of (|df/dx| - 1) ** 2 with respect to w
hooks()                 a layer y = 3 x at x = 2, a hook before it that doubles x, one behind it that adds 1: y
shared_parameter()      one parameter w = 3 in two layers, y = w (w x) at x = 2: dy/dw
predicted_weight()      a layer whose weight a * z another network predicts, a = 2, z = 3, at x = 5: [y, dy/da]
control_flow()          compiled once: how often 100 and 3 can be halved until they are at most 1: [7, 2]
dynamic_batch()         how often a function is traced or compiled that is called with batches of 2, 3 and 5
saved_model(folder)     y = 3 x, compiled, saved into a folder, loaded for inference, at x = 2: y
"""

import importlib
import tempfile

import numpy

NAMES = (
    "second_derivative", "gradient_penalty", "hooks", "shared_parameter", "predicted_weight", "control_flow",
    "dynamic_batch", "saved_model",
)  # fmt: skip


def show(framework, name):
    """What the framework's function for a capability returns, as a list of numbers."""
    if name not in NAMES:
        raise ValueError("unknown capability {!r}; known are {}".format(name, ", ".join(NAMES)))
    try:
        module = importlib.import_module("{}.{}".format(__name__, framework))
    except ImportError:
        raise NotImplementedError("nobody has asked {} yet".format(framework)) from None
    function = getattr(module, name)
    if name != "saved_model":
        return numbers(function())
    with tempfile.TemporaryDirectory() as folder:
        return numbers(function(folder))


def numbers(value):
    return [float(number) for number in numpy.ravel(numpy.asarray(value, numpy.float64))]
