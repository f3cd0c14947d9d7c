"""Steps of Keras on TensorFlow, as ``recipe`` describes them; of several devices each executes them with its part."""

import keras
import tensorflow as tf

from stele_worker import frameworks
from stele_worker.frameworks.keras.network import one_or_all, training_loss
from stele_worker.frameworks.tensorflow.recipe import (
    all_reduced,
    first_copies,
    for_each_device,
    in_shards,
    inferred_on_all_devices,
)
from stele_worker.ranks import ranks

framework = frameworks.load("keras")


def uses_xla(net, faster_with_xla=False):
    """Return whether XLA compiles a network; of a model of the user, as ``fit`` decides."""
    if framework.mode == "default" and not framework.tuned:
        return net.jit_compile
    recurrent = any(isinstance(layer, keras.layers.RNN) for layer in net.layers)
    chosen = faster_with_xla and framework.mode == "default" and framework.device == "cpu"
    return framework.jit_compile(recurrent) or chosen


def backward(net, loss, xla):
    """Return run(*inputs, y) -> (loss, gradients), which is not compiled. On several devices their sum is right."""
    compute, variables = in_shards(divided(training_loss(net, loss))), net.trainable_variables

    def run(*arrays):
        with tf.GradientTape() as tape:
            value = compute(*arrays)
        # an embedding's gradient consists of slices; Keras' Adam would square slices of the same row separately
        pairs = zip(tape.gradient(value, variables), variables)
        # a variable that the loss does not reach has no gradient: zero
        return value, [
            tf.zeros_like(variable.value) if grad is None else tf.convert_to_tensor(grad) for grad, variable in pairs
        ]

    return for_each_device(run, xla)


def divided(loss):
    """Return a loss divided by the devices, whose gradients Keras' optimiser adds."""
    if framework.native.strategy is None:
        return loss
    return lambda *arrays: loss(*arrays) / ranks.count


def summed_over_devices(function):
    """Return a function that all devices execute, with the sum of what it returns on them."""
    if framework.native.strategy is None:
        return function
    run = all_reduced(function, tf.distribute.ReduceOp.SUM)
    return lambda *arrays: first_copies(run(*arrays))


def make_gradient_function(net, loss, faster_with_xla):
    xla = uses_xla(net, faster_with_xla)
    return framework.compiled(summed_over_devices(backward(net, loss, xla)), xla=xla)


def make_update(net, optimiser, loss, faster_with_xla):
    xla = uses_xla(net, faster_with_xla)
    run = backward(net, loss, xla)

    def update(*arrays):
        value, gradients = run(*arrays)
        optimiser.apply(gradients, net.trainable_variables)
        return value

    return framework.compiled(summed_over_devices(update), xla=xla)


def make_model_step(net, model, faster_with_xla):
    xla = uses_xla(net, faster_with_xla)
    run = inferred_on_all_devices(lambda *inputs: model(one_or_all(inputs), training=False), xla)
    return framework.compiled(run, xla=xla)
