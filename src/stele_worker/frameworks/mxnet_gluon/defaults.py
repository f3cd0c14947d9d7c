"""MXNet 1 with Gluon."""

import inspect
import os

import mxnet as mx
from mxnet.gluon import nn, rnn

from stele_worker.defaults import distribution


def table():
    mx.random.seed(0)
    gru, norm = rnn.GRU(400, input_size=500), nn.BatchNorm()
    pool = inspect.signature(nn.MaxPool2D.__init__).parameters
    return {
        "dense weight": distribution(initialise(nn.Dense(1000, in_units=1000)).weight.data().asnumpy(), 1000),
        "dense bias": distribution(initialise(nn.Dense(1000, in_units=1000)).bias.data().asnumpy(), 1000),
        "convolution weight": distribution(
            initialise(nn.Conv2D(300, 3, in_channels=300)).weight.data().asnumpy(), 2700
        ),
        "embedding": distribution(initialise(nn.Embedding(1000, 1000)).weight.data().asnumpy(), 1),
        "GRU input weight": distribution(initialise(gru).l0_i2h_weight.data().asnumpy(), 500),
        "GRU biases": 2,
        "GRU layout": gru._layout,
        "batch normalisation epsilon": norm._kwargs["eps"],
        "batch normalisation momentum": norm._kwargs["momentum"],
        "pool past the edge": pool["ceil_mode"].default,
        "SGD": optimiser(mx.optimizer.SGD),
        "Adam": optimiser(mx.optimizer.Adam),
        "Adam lazy": inspect.signature(mx.optimizer.Adam.__init__).parameters["lazy_update"].default,
        "weight decay": inspect.signature(mx.optimizer.Optimizer.__init__).parameters["wd"].default,
        "default dtype": str(mx.nd.zeros(1).dtype.__name__),
        "from numpy float64": str(mx.nd.array([1.0]).dtype.__name__),
        "cuDNN autotune": os.environ.get("MXNET_CUDNN_AUTOTUNE_DEFAULT", "1"),
        "oneDNN": mx.runtime.Features().is_enabled("MKLDNN"),
    }


def initialise(block):
    block.initialize()
    return block


def optimiser(kind):
    parameters = inspect.signature(kind.__init__).parameters
    names = ("learning_rate", "momentum", "beta1", "beta2", "epsilon")
    return ", ".join("{} {}".format(name, parameters[name].default) for name in names if name in parameters)
