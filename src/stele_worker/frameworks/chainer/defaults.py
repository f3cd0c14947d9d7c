"""Chainer."""

import inspect

import chainer
import chainer.functions as F
import chainer.links as L
import numpy

from stele_worker.defaults import distribution


def table():
    numpy.random.seed(0)
    dense, convolution = L.Linear(1000, 1000), L.Convolution2D(300, 300, 3)
    gru, norm, config = L.NStepGRU(1, 500, 700, 0), L.BatchNormalization(1), chainer.config
    return {
        "dense weight": distribution(dense.W.array, 1000),
        "dense bias": distribution(dense.b.array, 1000),
        "convolution weight": distribution(convolution.W.array, 2700),
        "convolution bias": distribution(convolution.b.array, 2700),
        "convolution padding": str(convolution.pad),
        "embedding": distribution(L.EmbedID(1000, 1000).W.array, 1),
        "GRU input weight": distribution(gru.ws[0][0].array, 500),
        "GRU hidden weight": distribution(gru.ws[0][3].array, 700),
        "batch normalisation epsilon": norm.eps,
        "batch normalisation momentum": norm.decay,
        "pool past the edge": inspect.signature(F.max_pooling_2d).parameters["cover_all"].default,
        "SGD": hyperparameters(chainer.optimizers.MomentumSGD()),
        "Adam": hyperparameters(chainer.optimizers.Adam()),
        "cross-entropy": inspect.signature(F.softmax_cross_entropy).parameters["reduce"].default,
        "default dtype": numpy.dtype(config.dtype).name,
        "cuDNN autotune": config.autotune,
        "deterministic": config.cudnn_deterministic,
        "iDeep": config.use_ideep,
        "type check": config.type_check,
    }


def hyperparameters(optimiser):
    values = optimiser.hyperparam.get_dict()
    return ", ".join("{} {}".format(name, values[name]) for name in sorted(values))
