"""Float64 array operations and their gradients, for the NumPy recipes. Independent of Tasks and parameter names.

Every operation returns (value, backward). ``backward(g)`` maps the gradient of a loss with respect to the value
to the gradients with respect to the operation's arrays, in the order of the arguments. Images are
(batch, height, width, channel), convolution weights (out, in, height, width), dense weights (out, in), sequences
(batch, length, hidden).
"""

from stele_suite.oracle.activations import celu, dropout, gelu, gelu_tanh, relu, relu6, tanh
from stele_suite.oracle.images import (
    average_pool,
    average_windows,
    batch_norm,
    channels_first,
    convolution,
    depthwise_convolution,
    ghost_batch_norm,
    max_pool,
    normalise,
    pad,
)
from stele_suite.oracle.networks import Gradients, load_weights, zero_parameters
from stele_suite.oracle.sequences import attention, dense, embedding, layer_norm
from stele_suite.oracle.training import (
    adam,
    mean_squared_error,
    muon,
    nesterov,
    newton_schulz,
    outer_nesterov,
    sgd,
    sigmoid_cross_entropy,
    softmax_cross_entropy,
)

__all__ = [
    "Gradients",
    "adam",
    "attention",
    "average_pool",
    "average_windows",
    "batch_norm",
    "celu",
    "channels_first",
    "convolution",
    "dense",
    "depthwise_convolution",
    "dropout",
    "embedding",
    "gelu",
    "gelu_tanh",
    "ghost_batch_norm",
    "layer_norm",
    "load_weights",
    "max_pool",
    "mean_squared_error",
    "muon",
    "nesterov",
    "newton_schulz",
    "normalise",
    "outer_nesterov",
    "pad",
    "relu",
    "relu6",
    "sgd",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
    "tanh",
    "zero_parameters",
]
