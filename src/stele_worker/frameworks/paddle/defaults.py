"""PaddlePaddle 3."""

import inspect

import paddle
from paddle import nn

from stele_worker.defaults import distribution
from stele_worker.frameworks.paddle.framework import ONEDNN


def table():
    paddle.seed(0)
    gru, norm = nn.GRU(500, 400), nn.BatchNorm2D(1)
    onednn, threads = "FLAGS_use_" + ONEDNN, "FLAGS_paddle_num_threads"
    flags = paddle.get_flags([onednn, threads])
    return {
        "dense weight": distribution(nn.Linear(1000, 1000).weight.numpy(), 1000),
        "dense bias": distribution(nn.Linear(10, 500000).bias.numpy(), 10),
        "convolution weight": distribution(nn.Conv2D(300, 300, 3).weight.numpy(), 2700),
        "embedding": distribution(nn.Embedding(1000, 1000).weight.numpy(), 1),
        "GRU input weight": distribution(gru.weight_ih_l0.numpy(), 400),
        "GRU hidden weight": distribution(gru.weight_hh_l0.numpy(), 400),
        "GRU biases": 2 if hasattr(gru, "bias_hh_l0") else 1,
        "batch normalisation epsilon": norm._epsilon,
        "batch normalisation momentum": norm._momentum,
        "Momentum": optimiser(paddle.optimizer.Momentum, "learning_rate", "momentum", "use_nesterov"),
        "Adam": optimiser(paddle.optimizer.Adam, "learning_rate", "beta1", "beta2", "epsilon", "lazy_mode"),
        "cross-entropy": inspect.signature(nn.functional.cross_entropy).parameters["reduction"].default,
        "default dtype": paddle.get_default_dtype(),
        "int32 + float32": promote("int32", "float32"),
        "oneDNN": flags[onednn],
        "threads": flags[threads],
        "compiler CINN": paddle.is_compiled_with_cinn(),
        "compile": "eager; paddle.jit.to_static with backend {}".format(
            inspect.signature(paddle.jit.to_static).parameters["backend"].default
        ),
    }


def optimiser(kind, *names):
    parameters = inspect.signature(kind.__init__).parameters
    return ", ".join("{} {}".format(name, parameters[name].default) for name in names if name in parameters)


def promote(first, second):
    try:
        return str((paddle.zeros([1], first) + paddle.zeros([1], second)).dtype)
    except TypeError:
        return "an error"
