"""Transformer-base, an encoder and a decoder for translation: 49.2 million parameters with a vocabulary of 10,000.

Six layers each, 512 wide, eight heads, dense 512-2048-512 with ReLU, layer normalisation after each residual sum
(epsilon 1e-5). One embedding, multiplied by sqrt(512), is that of the source, of the target and of the output layer,
which has no bias. Sinusoidal positions. Dropout 0.1 on embeddings and before each residual sum; none on the
probabilities of attention, because the fused attention of some frameworks has none.
Training: 64 pairs of 64 tokens, 4,096 tokens of the target; mean cross-entropy over all tokens, with labels smoothed
by 0.1 over the vocabulary; Adam with a constant learning rate, epsilon outside the root. Sentences of a batch have
the same length, so nothing is padded. Inference: the logits of the token after the prefix of the target.
Tokens are random, so there is no accuracy.
Source: Vaswani et al., 2017, base model; PaddlePaddle models, Transformer-base on IWSLT14 with 4,096 tokens a batch.
"""

from collections import OrderedDict
from typing import NamedTuple

import numpy

from stele_suite.tasks import blocks
from stele_suite.tasks.initialisers import uniform

FRAMEWORKS = ("torch", "jax", "tensorflow", "keras", "paddle", "paddle1", "numpy")
PARITY_SEED, PARITY_STEPS = 0, 20  # the seed and the optimizer steps of the parity check
UNIT = "tokens"  # of the target
# Adam divides the gradient of a key's bias, which is rounding, by its size. Rounding also decides a few of the many
# ReLUs in twenty steps
FACTOR = {6: 100, 7: 10}
SMALL = {"hidden": 64, "heads": 2, "inner": 256, "vocabulary": 500}
SCALES = {
    "parity": dict(SMALL, hidden=128, inner=512, batch=4, length=24),
    "smoke": dict(SMALL, batch=2, length=16, train=8, test=8),
    "gate": {"hidden": 256, "heads": 4, "inner": 1024, "batch": 4, "train": 192, "test": 128},
    "quick": {"hidden": 256, "heads": 4, "inner": 1024, "batch": 4, "train": 48, "test": 48},
    "paper": {},
}


class Task(NamedTuple):
    name: str = "transformer"
    data: str = None  # generated from the seed
    batch: int = 64  # pairs of sentences
    epochs: int = 1
    train: int = 3200  # pairs of sentences
    test: int = 3200  # pairs of sentences
    vocabulary: int = 10000
    length: int = 64  # tokens, of the source and of the target
    layers: int = 6  # of the encoder, and as many of the decoder
    hidden: int = 512
    heads: int = 8
    inner: int = 2048
    norm_epsilon: float = 1e-5
    smoothing: float = 0.1
    learning_rate: float = 1e-4
    beta1: float = 0.9
    beta2: float = 0.98
    epsilon: float = 1e-6  # large, because the bias of a key has no gradient but for rounding
    dropout: tuple = (0.1,)
    dtype: str = "float32"  # of the arithmetic; parameters are always float32
    seed: int = 0


def units(task):
    """Return the tokens of a sample."""
    return task.length


def weights(task):
    """Return named float32 arrays: the embedding (token, hidden), dense layers (out, in)."""
    rng = numpy.random.RandomState(task.seed)
    arrays = OrderedDict()
    arrays["embedding.weight"] = uniform(rng, (3.0 / task.hidden) ** 0.5, (task.vocabulary, task.hidden))
    for number in range(task.layers):
        arrays.update(blocks.layer(rng, "encoder.{}".format(number), task))
    for number in range(task.layers):
        name = "decoder.{}".format(number)
        arrays.update(blocks.layer(rng, name, task))
        arrays.update(blocks.cross_attention(rng, name + ".cross", task.hidden))
        arrays.update(blocks.norm(rng, name + ".cross.norm", task.hidden))
    return arrays


def positions(task):
    """Return the sinusoidal encoding, float32 (length, hidden): sine in even columns, cosine in odd ones."""
    rates = 10000.0 ** (-numpy.arange(0, task.hidden, 2) / float(task.hidden))
    angles = numpy.arange(task.length)[:, None] * rates
    return numpy.stack([numpy.sin(angles), numpy.cos(angles)], 2).reshape(task.length, -1).astype(numpy.float32)


def example(task, samples):
    """Return int32 arrays (samples, length): the source, the target without its last token, and without its first."""
    rng = numpy.random.RandomState(task.seed)
    source = rng.randint(0, task.vocabulary, (samples, task.length)).astype(numpy.int32)
    target = rng.randint(0, task.vocabulary, (samples, task.length + 1)).astype(numpy.int32)
    return source, target[:, :-1], target[:, 1:]
