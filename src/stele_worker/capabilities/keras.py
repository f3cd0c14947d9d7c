"""Keras 3: its layers and operations, differentiated by its backend, which has no name of its own for that."""

import os

import keras
from keras import layers, ops

BACKEND = keras.backend.backend()
EAGER = "eager on PyTorch, unless jit_compile asks for torch.compile: nothing is compiled"


def tripling(**options):
    return layers.Dense(1, use_bias=False, kernel_initializer=keras.initializers.Constant(3.0), **options)


def differentiated(function, at):
    """d function / d at, at a scalar, as something that can be differentiated again."""
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
    return number(differentiated(lambda x: differentiated(lambda x: ops.power(x, 3.0), x), 2.0))


def gradient_penalty():
    def penalty(w):
        # the input is a constant, but what is differentiated there has to stay a function of w
        slope = differentiated(lambda x: w * ops.square(x), 1.5)
        return ops.square(ops.abs(slope) - 1.0)

    return number(differentiated(penalty, 2.0))


def hooks():
    raise NotImplementedError("layers of Keras have no hooks: one subclasses a layer or wraps it")


def shared_parameter():
    layer = tripling()
    layer.build((None, 1))
    return number(differentiated(lambda w: through(layer, w), 3.0))


def through(layer, w):
    """The layer twice, its one parameter given as ``w``."""
    variables = [ops.reshape(w, (1, 1))]
    if BACKEND == "jax":
        x, _ = layer.stateless_call(variables, [], ops.array([[2.0]]))
        x, _ = layer.stateless_call(variables, [], x)
        return x[0, 0]
    with keras.StatelessScope(state_mapping=list(zip(layer.trainable_variables, variables))):
        return layer(layer(ops.array([[2.0]])))[0, 0]


def predicted_weight():
    layer = tripling()
    layer.build((None, 1))

    def predicted(a):
        weight = ops.reshape(a * 3.0, (1, 1))
        with keras.StatelessScope(state_mapping=[(layer.trainable_variables[0], weight)]):
            return layer(ops.array([[5.0]]))[0, 0]

    return number(predicted(2.0)), number(differentiated(predicted, 2.0))


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


class Counted(layers.Layer):
    calls = 0

    def call(self, x):
        Counted.calls += 1
        return 3 * x


def dynamic_batch():
    if BACKEND == "torch":
        raise NotImplementedError(EAGER)
    model = keras.Sequential([keras.Input((1,)), Counted()])
    model.compile(jit_compile=BACKEND == "jax")
    Counted.calls = 0
    for batch in (2, 3, 5):
        model.predict_on_batch(ops.zeros((batch, 1)))
    return Counted.calls


def saved_model(folder):
    model = keras.Sequential([keras.Input((1,)), tripling()])
    model.compile(jit_compile=BACKEND != "torch")
    path = os.path.join(folder, "net.keras")
    model.save(path)
    return keras.saving.load_model(path).predict_on_batch(ops.array([[2.0]]))
