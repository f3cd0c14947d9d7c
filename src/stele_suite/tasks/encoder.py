"""An encoder of the shape of BERT base, which ERNIE shares, as a classifier of two classes: 109.5 million parameters.

Twelve layers, 768 wide, twelve heads, dense 768-3072-768 with GELU by the error function, layer normalisation after
each residual sum (epsilon 1e-12). Embeddings of tokens, positions and two kinds of segments are summed, normalised
and dropped out. Token 0 pads the end of a sequence; no position attends to it. The first position goes through a
dense layer with tanh and one of two classes. Dropout 0.1 on embeddings, before each residual sum and before the
classes; none on the probabilities of attention, because the fused attention of some frameworks has none.
Training: 50 sequences of 256 tokens, mean softmax cross-entropy, Adam with epsilon outside the root.
Tokens are random, so there is no accuracy.
Source: Devlin et al., 2018, BERT base; PaddlePaddle's comparison of dynamic and static graphs, ERNIE.
"""

from collections import OrderedDict
from typing import NamedTuple

import numpy

from stele_suite.tasks import blocks
from stele_suite.tasks.initialisers import uniform

FRAMEWORKS = ("torch", "jax", "tensorflow", "keras", "paddle", "paddle1", "numpy")
PARITY_SEED, PARITY_STEPS = 0, 20  # the seed and the optimizer steps of the parity check
UNIT = "tokens"
FACTOR = {6: 100}  # Adam divides the gradient of a key's bias, which is rounding, by its size
SMALL = {"hidden": 64, "heads": 2, "inner": 256, "vocabulary": 500}
SCALES = {
    "parity": dict(SMALL, hidden=128, inner=512, batch=4, length=32),
    "smoke": dict(SMALL, batch=2, length=16, train=8, test=8),
    "gate": {"hidden": 256, "heads": 4, "inner": 1024, "batch": 4, "length": 64, "train": 192, "test": 128},
    "quick": {"hidden": 256, "heads": 4, "inner": 1024, "batch": 4, "length": 64, "train": 48, "test": 48},
    "paper": {},
}


class Task(NamedTuple):
    name: str = "encoder"
    data: str = None  # generated from the seed
    batch: int = 50  # sequences
    epochs: int = 1
    train: int = 2500  # sequences
    test: int = 2500  # sequences
    vocabulary: int = 30522
    positions: int = 512
    segments: int = 2
    length: int = 256  # tokens
    layers: int = 12
    hidden: int = 768
    heads: int = 12
    inner: int = 3072
    classes: int = 2
    norm_epsilon: float = 1e-12
    learning_rate: float = 5e-5
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-6  # large, because the bias of a key has no gradient but for rounding
    dropout: tuple = (0.1,)
    dtype: str = "float32"  # of the arithmetic; parameters are always float32
    seed: int = 0


def units(task):
    """Return the tokens of a sample."""
    return task.length


def weights(task):
    """Return named float32 arrays: embeddings (number, hidden), dense layers (out, in)."""
    rng = numpy.random.RandomState(task.seed)
    arrays = OrderedDict()
    for name, size in (
        ("tokens", task.vocabulary),
        ("positions", task.positions),
        ("segments", task.segments),
    ):
        arrays[name + ".weight"] = uniform(rng, 0.05, (size, task.hidden))
    arrays.update(blocks.norm(rng, "norm", task.hidden))
    for number in range(task.layers):
        arrays.update(blocks.layer(rng, "layer.{}".format(number), task))
    arrays.update(blocks.dense(rng, "pooler", task.hidden, task.hidden))
    arrays.update(blocks.dense(rng, "classifier", task.classes, task.hidden, limit=0.02))
    return arrays


def example(task, samples):
    """Return int32 arrays: tokens and segments (samples, length), and labels (samples,).

    A sequence ends with padding, at most a quarter of it. Its second half is the second segment.
    """
    rng = numpy.random.RandomState(task.seed)
    shape = (samples, task.length)
    tokens, places = rng.randint(1, task.vocabulary, shape), numpy.arange(task.length)
    ends = rng.randint(task.length - task.length // 4, task.length + 1, (samples, 1))
    tokens = numpy.where(places < ends, tokens, 0).astype(numpy.int32)
    segments = numpy.broadcast_to(places >= task.length // 2, shape).astype(numpy.int32)
    return tokens, segments, rng.randint(0, task.classes, samples).astype(numpy.int32)
