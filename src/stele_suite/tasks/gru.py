"""GRU on IMDB: embedding 30,000 x 125, GRU 100, last step, dense 100-2; 3,818,302 parameters.

The GRU is the reset-after form with two biases that cuDNN computes. With gates r, z, n:
r = sigmoid(W_r x + b_r + U_r h + c_r), z likewise, n = tanh(W_n x + b_n + r * (U_n h + c_n)),
h' = (1 - z) * n + z * h, from h = 0. Reviews are the last 150 tokens, zero-padded at the end without
a mask, so the last step follows the padding. Mean softmax cross-entropy over two classes; Adam with
epsilon outside the root and both moments bias-corrected.
In the form one-bias, which Lasagne has, c is zero and not trained.
Source: github.com/ilkarman/DeepLearningFrameworks, common/params_lstm.py and notebooks; Kingma and Ba, 2015.
"""

from collections import OrderedDict
from typing import NamedTuple

import numpy

from stele_suite.tasks.initialisers import glorot_uniform, uniform, zeros

FORMS = ("one-bias",)  # in addition to the Task's own form

PARITY_SEED, PARITY_STEPS = (
    0,
    20,
)  # the seed of the weights and the batch, and the optimizer steps, of the parity check
UNIT = "reviews"
SCALES = {
    "parity": {"batch": 16},
    "smoke": {"train": 640, "test": 320, "epochs": 1},
    # launches of one to three seconds
    "study": {"batch": 16, "train": 640, "test": 640, "epochs": 1},
    # about 50 steps a launch
    "gate": {"train": 3072, "test": 2048, "epochs": 1},
    "quick": {"train": 16384, "test": 6400, "epochs": 1},
    "paper": {},
}


class Task(NamedTuple):
    name: str = "gru"
    data: str = "imdb"
    batch: int = 64
    epochs: int = 3
    train: int = 25000  # reviews
    test: int = 25000  # reviews
    vocabulary: int = 30000
    length: int = 150  # tokens
    embedding: int = 125
    hidden: int = 100
    form: str = "two-bias"
    learning_rate: float = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    dropout: tuple = ()
    dtype: str = "float32"  # of the arithmetic; parameters are always float32
    seed: int = 0


def weights(task):
    """Return named float32 arrays: dense and GRU weights (out, in), the three gates of the GRU stacked as r, z, n."""
    rng = numpy.random.RandomState(task.seed)
    arrays = OrderedDict()
    arrays["embedding.weight"] = uniform(rng, 0.05, (30000, 125))
    arrays["gru.input_weight"] = uniform(rng, 0.1, (300, 125))
    arrays["gru.hidden_weight"] = uniform(rng, 0.1, (300, 100))
    arrays["gru.input_bias"] = uniform(rng, 0.1, (300,))
    arrays["gru.hidden_bias"] = uniform(rng, 0.1, (300,))
    arrays["dense.weight"] = glorot_uniform(rng, (2, 100))
    arrays["dense.bias"] = zeros((2,))
    return arrays


def inputs(raw):
    """Return int32 tokens (n, 150) unchanged."""
    return raw


def example(task, samples):
    """Return noise: tokens int32 (samples, 150), labels int32 (samples,)."""
    rng = numpy.random.RandomState(task.seed)
    tokens = rng.randint(0, 30000, (samples, task.length)).astype(numpy.int32)
    return tokens, rng.randint(0, 2, samples).astype(numpy.int32)
