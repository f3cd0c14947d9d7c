"""GPT-2 small, a decoder that predicts the next token: 124.4 million parameters.

Twelve layers, 768 wide, twelve heads, dense 768-3072-768 with GELU by its approximation with tanh, layer
normalisation before each sublayer and after the last (epsilon 1e-5). Positions are learned; the embedding of tokens is
also the output layer, which has no bias. Dropout 0.1 on embeddings and before each residual sum; none on the
probabilities of attention, because the fused attention of some frameworks has none.
Training: 8 sequences of 512 tokens, mean softmax cross-entropy over all tokens, Adam with epsilon outside the root.
Inference: a prompt in one pass (prefill); the logits of the token after it. The task ``generation`` computes the same
token by token. Tokens are random, so there is no accuracy.
Source: Radford et al., 2019; openai/gpt-2, src/model.py.
"""

from collections import OrderedDict
from typing import NamedTuple

import numpy

from stele_suite.tasks import blocks
from stele_suite.tasks.initialisers import uniform

FRAMEWORKS = ("torch", "jax", "tensorflow", "keras", "paddle", "numpy")
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
    name: str = "decoder"
    data: str = None  # generated from the seed
    batch: int = 8  # sequences
    epochs: int = 1
    train: int = 400  # sequences
    test: int = 400  # sequences
    vocabulary: int = 50257
    positions: int = 1024
    length: int = 512  # tokens
    layers: int = 12
    hidden: int = 768
    heads: int = 12
    inner: int = 3072
    norm_epsilon: float = 1e-5
    learning_rate: float = 1e-4
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
    arrays["tokens.weight"] = uniform(rng, 0.05, (task.vocabulary, task.hidden))
    arrays["positions.weight"] = uniform(rng, 0.05, (task.positions, task.hidden))
    for number in range(task.layers):
        arrays.update(blocks.layer(rng, "layer.{}".format(number), task))
    arrays.update(blocks.norm(rng, "norm", task.hidden))
    return arrays


def example(task, samples):
    """Return int32 arrays (samples, length): the tokens without the last, and without the first."""
    rng = numpy.random.RandomState(task.seed)
    tokens = rng.randint(0, task.vocabulary, (samples, task.length + 1)).astype(numpy.int32)
    return tokens[:, :-1], tokens[:, 1:]
