"""TensorFlow without Keras: tf.nn, tf.function, tf.config."""

import inspect

import tensorflow as tf


def table():
    return {
        "TF32": tf.config.experimental.tensor_float_32_execution_enabled(),
        "inter-op threads": tf.config.threading.get_inter_op_parallelism_threads() or "chosen by TensorFlow",
        "intra-op threads": tf.config.threading.get_intra_op_parallelism_threads() or "chosen by TensorFlow",
        "deterministic": determinism(),
        "eager": tf.executing_eagerly(),
        "compile": "tf.function, jit_compile {}".format(argument(tf.function, "jit_compile")),
        "retrace at new shapes": not argument(tf.function, "reduce_retracing"),
        "autograph": argument(tf.function, "autograph"),
        "oneDNN": onednn(),
        "default dtype": tf.constant(0.5).dtype.name,
        "default integer": tf.constant(1).dtype.name,
        "int32 + float32": promote(tf.int32, tf.float32),
        "float16 + bfloat16": promote(tf.float16, tf.bfloat16),
        "1 / 2 of int32": (tf.ones(1, tf.int32) / 2).dtype.name,
        "convolution layout": argument(tf.nn.conv2d, "data_format") or "NHWC",
        "convolution padding": "has to be said",
        "pool layout": argument(tf.nn.max_pool2d, "data_format"),
        "batch normalisation epsilon": argument(tf.compat.v1.nn.fused_batch_norm, "epsilon"),
        "glorot_uniform": type(tf.initializers.GlorotUniform()).__name__,
        "soft device placement": tf.config.get_soft_device_placement(),
    }


def argument(function, name):
    return inspect.signature(function).parameters[name].default


def promote(first, second):
    try:
        return (tf.zeros(1, first) + tf.zeros(1, second)).dtype.name
    except (TypeError, ValueError, tf.errors.InvalidArgumentError):
        return "an error"


def determinism():
    from tensorflow.python.framework import config

    return config.is_op_determinism_enabled()


def onednn():
    from tensorflow.python.util import _pywrap_util_port

    return _pywrap_util_port.IsMklEnabled()
