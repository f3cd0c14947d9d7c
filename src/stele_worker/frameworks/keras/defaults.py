"""Keras 3 on its current backend."""

import inspect

import keras
from keras import layers, ops

from stele_worker.defaults import distribution


def table():
    keras.utils.set_random_seed(0)
    dense = build_weights(layers.Dense(1000), (None, 1000))
    convolution = build_weights(layers.Conv2D(300, 3), (None, 8, 8, 300))
    embedding = build_weights(layers.Embedding(1000, 1000), (None,))
    gru = build_weights(layers.GRU(400), (None, 5, 500))
    norm = layers.BatchNormalization()
    model = keras.Sequential([keras.Input((1,)), layers.Dense(1)])
    model.compile(loss="mse")
    return {
        "backend": keras.backend.backend(),
        "dense weight": distribution(dense[0], 1000),
        "dense bias": distribution(dense[1], 1000),
        "convolution weight": distribution(convolution[0], 2700),
        "convolution bias": distribution(convolution[1], 2700),
        "convolution padding": layers.Conv2D(1, 1).padding,
        "embedding": distribution(embedding[0], 1),
        "GRU input weight": distribution(gru[0], 500),
        "GRU hidden weight": distribution(gru[1], 400),
        "GRU biases": len(gru[2].shape),
        "GRU form": "reset after" if layers.GRU(1).reset_after else "reset before",
        "GRU recurrent activation": layers.GRU(1).recurrent_activation.__name__,
        "GRU cuDNN": argument(layers.GRU, "use_cudnn"),
        "batch normalisation epsilon": norm.epsilon,
        "batch normalisation momentum": norm.momentum,
        "pool padding": layers.MaxPooling2D().padding,
        "SGD": optimiser(keras.optimizers.SGD, "learning_rate", "momentum", "nesterov"),
        "Adam": optimiser(keras.optimizers.Adam, "learning_rate", "beta_1", "beta_2", "amsgrad"),
        "Adam epsilon": keras.optimizers.Adam().epsilon,
        "cross-entropy from logits": argument(keras.losses.SparseCategoricalCrossentropy, "from_logits"),
        "image layout": keras.config.image_data_format(),
        "default dtype": keras.config.floatx(),
        "dtype policy": keras.config.dtype_policy().name,
        "epsilon": keras.config.epsilon(),
        "int32 + float32": keras.backend.standardize_dtype(ops.add(ops.zeros(1, "int32"), ops.zeros(1)).dtype),
        "compile": "jit_compile {}, which is {}".format(
            argument(keras.Model.compile, "jit_compile"), model.jit_compile
        ),
        "steps per execution": model.steps_per_execution,
        "flash attention": keras.config.is_flash_attention_enabled()
        if hasattr(keras.config, "is_flash_attention_enabled")
        else None,
    }


def build_weights(layer, shape):
    layer.build(shape)
    return layer.get_weights()


def argument(function, name):
    parameters = inspect.signature(function).parameters
    return parameters[name].default if name in parameters else None


def optimiser(kind, *names):
    return ", ".join("{} {}".format(name, argument(kind, name)) for name in names)
