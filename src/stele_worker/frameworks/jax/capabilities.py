"""JAX: transformations of functions. Layers are functions, so composition replaces hooks."""

import os

import jax
import jax.numpy as jnp
from jax import export, lax


def second_derivative():
    return jax.grad(jax.grad(lambda x: x**3))(2.0)


def gradient_penalty():
    def penalty(w):
        return (abs(jax.grad(lambda x: w * x**2)(1.5)) - 1) ** 2

    return jax.grad(penalty)(2.0)


def hooks():
    raise NotImplementedError("JAX has functions, not layers: compose functions in place of hooks")


def shared_parameter():
    return jax.grad(lambda w: w * (w * 2.0))(3.0)


def predicted_weight():
    return jax.value_and_grad(lambda a: (a * 3.0) * 5.0)(2.0)


def control_flow():
    @jax.jit
    def halvings(x):
        return lax.while_loop(lambda state: state[1] > 1, lambda state: (state[0] + 1, state[1] / 2), (0, x))[0]

    return [halvings(value) for value in (100.0, 3.0)]


def dynamic_batch():
    traces = []

    @jax.jit
    def run(x):
        traces.append(x.shape)
        return 3 * x

    for batch in (2, 3, 5):
        run(jnp.zeros((batch, 1)))
    return len(traces)


def saved_model(folder):
    (batch,) = export.symbolic_shape("batch")
    shape = jax.ShapeDtypeStruct((batch, 1), jnp.float32)
    path = os.path.join(folder, "net.bin")
    with open(path, "wb") as file:
        file.write(export.export(jax.jit(lambda x: 3 * x))(shape).serialize())
    with open(path, "rb") as file:
        return export.deserialize(bytearray(file.read())).call(jnp.array([[2.0]], jnp.float32))
