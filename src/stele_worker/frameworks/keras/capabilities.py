"""Keras 3: its layers and operations. The backend differentiates them, because Keras has no API for gradients."""

import os

import keras
from keras import layers, ops

BACKEND = keras.backend.backend()
EAGER = "not compiled: Keras is eager on PyTorch unless jit_compile selects torch.compile"


def make_tripling_layer(**options):
    return layers.Dense(1, use_bias=False, kernel_initializer=keras.initializers.Constant(3.0), **options)


def derivative(function, at):
    """Return the derivative of ``function`` at the scalar ``at``; the result can be differentiated again."""
    if BACKEND == "jax":
        import jax

        return jax.grad(function)(at)
    if BACKEND == "torch":
        import torch

        if not (torch.is_tensor(at) and at.requires_grad):
            at = torch.tensor(float(at), requires_grad=True)
        return torch.autograd.grad(function(at), at, create_graph=True)[0]
    import tensorflow as tf

    at = tf.convert_to_tensor(at)
    with tf.GradientTape() as tape:
        tape.watch(at)
        value = function(at)
    return tape.gradient(value, at)


def number(value):
    return ops.convert_to_numpy(value)


def second_derivative():
    return number(derivative(lambda x: derivative(lambda x: ops.power(x, 3.0), x), 2.0))


def gradient_penalty():
    def penalty(w):
        # the input is a constant, but its gradient must stay a function of w
        grad = derivative(lambda x: w * ops.square(x), 1.5)
        return ops.square(ops.abs(grad) - 1.0)

    return number(derivative(penalty, 2.0))


def hooks():
    raise NotImplementedError("Keras layers have no hooks: subclass or wrap the layer")


def shared_parameter():
    layer = make_tripling_layer()
    layer.build((None, 1))
    return number(derivative(lambda w: apply_twice(layer, w), 3.0))


def apply_twice(layer, w):
    """Apply the layer twice, with ``w`` as its only parameter."""
    variables = [ops.reshape(w, (1, 1))]
    if BACKEND == "jax":
        x, _ = layer.stateless_call(variables, [], ops.array([[2.0]]))
        x, _ = layer.stateless_call(variables, [], x)
        return x[0, 0]
    with keras.StatelessScope(state_mapping=list(zip(layer.trainable_variables, variables))):
        return layer(layer(ops.array([[2.0]])))[0, 0]


def predicted_weight():
    layer = make_tripling_layer()
    layer.build((None, 1))

    def predict(a):
        weight = ops.reshape(a * 3.0, (1, 1))
        with keras.StatelessScope(state_mapping=[(layer.trainable_variables[0], weight)]):
            return layer(ops.array([[5.0]]))[0, 0]

    return number(predict(2.0)), number(derivative(predict, 2.0))


class Halvings(layers.Layer):
    def call(self, x):
        state = (ops.zeros((), "int32"), ops.max(x))
        return ops.while_loop(lambda count, x: x > 1, lambda count, x: (count + 1, x / 2), state)[0]


def control_flow():
    if BACKEND == "torch":
        raise NotImplementedError(EAGER)
    model = keras.Sequential([keras.Input((1,)), Halvings()])
    model.compile(jit_compile=BACKEND != "torch")
    return [number(model.predict_on_batch(ops.array([[value]]))) for value in (100.0, 3.0)]


class CountCalls(layers.Layer):
    calls = 0

    def call(self, x):
        CountCalls.calls += 1
        return 3 * x


def dynamic_batch():
    if BACKEND == "torch":
        raise NotImplementedError(EAGER)
    model = keras.Sequential([keras.Input((1,)), CountCalls()])
    model.compile(jit_compile=BACKEND == "jax")
    CountCalls.calls = 0
    for batch in (2, 3, 5):
        model.predict_on_batch(ops.zeros((batch, 1)))
    return CountCalls.calls


def saved_model(folder):
    model = keras.Sequential([keras.Input((1,)), make_tripling_layer()])
    model.compile(jit_compile=BACKEND != "torch")
    path = os.path.join(folder, "net.keras")
    model.save(path)
    return keras.saving.load_model(path).predict_on_batch(ops.array([[2.0]]))
