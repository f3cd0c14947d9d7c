"""A stack of dense layers, of some depth: how much memory does a layer need, and what does recomputation bring?

x = relu(x @ w + b), ``depth`` times, in each of ``branches`` that start from the same input; their sum is the output.
The loss is the mean squared error; SGD with the learning rate outside the velocity. The output of a layer has batch x
width numbers, eight times as many as its weights, so peak memory over the depth shows which outputs a framework keeps.
With ``segment``, a training step keeps only the input of each segment of so many layers, and computes the rest again in
the backward pass. Two branches have as many layers as the scale "sequence", so the ratio of their steps shows whether
independent layers run at the same time.
Source: Paddle's comparison of dynamic and static graphs, on planning of memory; Chen et al., Training Deep Nets with
Sublinear Memory Cost, 2016.
"""

from collections import OrderedDict
from typing import NamedTuple

import numpy

from stele_suite.tasks.initialisers import uniform, zeros

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
# the modes that can compute segments again, of frameworks in which not all can
RECOMPUTING = {
    "paddle1": ("program",),
    "mxnet_gluon": (),
    "chainer": ("define-by-run", "as-shipped", "ideep"),
}
PARITY_SEED, PARITY_STEPS = 0, 20  # the seed and the optimizer steps of the parity check
UNIT = "layers"  # of the forward pass
DEPTHS = (8, 16, 32, 64)
SEGMENT = 8  # layers, about the root of the largest depth
SCALES = {
    "parity": {"width": 8, "batch": 16, "train": 16, "test": 16, "depth": 4, "branches": 2, "segment": 2},
    "smoke": {"width": 32, "batch": 64, "train": 512, "test": 512},
    "gate": {"train": 2048 * 24, "test": 2048 * 24},
    "quick": {"train": 2048 * 24, "test": 2048 * 24},
    "paper": {},
    "sequence": {"width": 128, "batch": 64, "train": 64 * 60, "test": 64 * 60, "depth": 32},
    "branches": {"width": 128, "batch": 64, "train": 64 * 60, "test": 64 * 60, "branches": 2},
}
for _depth in DEPTHS:
    SCALES["depth-{}".format(_depth)] = {"depth": _depth, "train": 2048 * 6, "test": 2048 * 6}
    SCALES["depth-{}-recomputed".format(_depth)] = dict(SCALES["depth-{}".format(_depth)], segment=SEGMENT)


class Task(NamedTuple):
    name: str = "stack"
    data: str = None  # generated from the seed
    batch: int = 2048
    epochs: int = 1
    train: int = 2048 * 60  # samples
    test: int = 2048 * 60  # samples
    depth: int = 16  # layers of a branch
    branches: int = 1
    segment: int = None  # layers whose outputs are computed again in the backward pass; None for none
    width: int = 256
    learning_rate: float = 1e-2
    momentum: float = 0.9
    dropout: tuple = ()
    dtype: str = "float32"  # of the arithmetic; parameters are always float32
    seed: int = 0


def units(task):
    """Return the layers of a sample, forward."""
    return task.depth * task.branches


def segments(task):
    """Return the numbers of the layers of a branch in segments: [[0, 1], [2, 3]] with two layers in each."""
    length = task.segment or task.depth
    return [list(range(first, min(first + length, task.depth))) for first in range(0, task.depth, length)]


def layer(branch, number):
    """Return the name of a layer."""
    return "branch.{}.{}".format(branch, number)


def weights(task):
    """Return a (width, width) weight and a (width,) bias of each layer. Signals keep their size over the depth."""
    rng = numpy.random.RandomState(task.seed)
    arrays = OrderedDict()
    for branch in range(task.branches):
        for number in range(task.depth):
            name = layer(branch, number)
            arrays[name + ".weight"] = uniform(rng, (6.0 / task.width) ** 0.5, (task.width, task.width))
            arrays[name + ".bias"] = zeros((task.width,))
    return arrays


def example(task, samples):
    """Return float32 arrays (samples, width): numbers from -1 to 1, and the targets."""
    rng = numpy.random.RandomState(task.seed + 1)
    shape = (samples, task.width)
    return uniform(rng, 1.0, shape), uniform(rng, 1.0, shape)
