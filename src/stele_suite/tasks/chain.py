"""A chain of 200 operations, each on ``width`` numbers: what a framework needs for an operation, beside computing it.

y = x * a + b, a hundred times, so each operation needs the result of the one before. The loss is the mean squared error
of the last y; SGD with the learning rate outside the velocity. At width 1, nearly all of a step is the framework's
overhead, so a step of inference divided by 200 is the overhead of an operation. The scales "width-N" have other widths:
the overhead is also the intercept of a line through the durations of a step over the width.
Source: Paddle's comparison of dynamic and static graphs, on framework overhead; pytorch/benchmark, on overhead per
operation.
"""

from collections import OrderedDict
from typing import NamedTuple

import numpy

from stele_suite.tasks.initialisers import uniform

FRAMEWORKS = (
    "torch",
    "jax",
    "tensorflow",
    "keras",
    "paddle",
    "paddle1",
    "mxnet_gluon",
    "chainer",
    "tensorflow1",
    "numpy",
)
PARITY_SEED, PARITY_STEPS = 0, 20  # the seed and the optimizer steps of the parity check
UNIT = "operations"  # of the forward pass
FACTOR = {2: 10, 3: 10, 4: 10, 6: 10, 7: 100}  # a hundred products in a row multiply the rounding
WIDTHS = (1, 4096, 16384, 65536)
SCALES = {
    "parity": {"width": 64},
    "smoke": {"train": 8, "test": 8},
    "gate": {"train": 100, "test": 100},
    "quick": {},
    "paper": {},
}
SCALES.update(("width-{}".format(width), {"width": width, "train": 60, "test": 60}) for width in WIDTHS)


class Task(NamedTuple):
    name: str = "chain"
    data: str = None  # generated from the seed
    batch: int = 1
    epochs: int = 1
    train: int = 500  # samples
    test: int = 500  # samples
    links: int = 100  # a product and a sum each
    width: int = 1
    learning_rate: float = 1e-4
    momentum: float = 0.9
    dropout: tuple = ()
    dtype: str = "float32"  # of the arithmetic; parameters are always float32
    seed: int = 0


def units(task):
    """Return the operations of a sample, forward."""
    return 2 * task.links


def weights(task):
    """Return the factor a (width,) near 1, and the summand b (width,) near 0."""
    rng = numpy.random.RandomState(task.seed)
    arrays = OrderedDict()
    arrays["factor"] = 1 + uniform(rng, 0.01, (task.width,))
    arrays["summand"] = uniform(rng, 0.01, (task.width,))
    return arrays


def example(task, samples):
    """Return float32 arrays (samples, width): numbers from -1 to 1, and the targets."""
    rng = numpy.random.RandomState(task.seed + 1)
    shape = (samples, task.width)
    return uniform(rng, 1.0, shape), uniform(rng, 1.0, shape)
