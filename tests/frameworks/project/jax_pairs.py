"""A user's project in JAX: pairs of functions."""

import jax
import jax.numpy as jnp


def init(key, x):
    first, second = jax.random.split(key)
    return {
        "a": jax.random.normal(first, (x.shape[1], 16)) / 4,
        "b": [jax.random.normal(second, (16, 3)) / 4],
    }


def apply(params, x):
    return jnp.tanh(x @ params["a"]) @ params["b"][0]


pair = (init, apply)


def apply_loss(params, x, labels=None):
    logits = apply(params, x)
    if labels is None:
        return {"logits": logits}
    likely = jax.nn.log_softmax(logits)
    return {"logits": logits, "loss": -jnp.take_along_axis(likely, labels[:, None], 1).mean()}


def with_loss():
    return init, apply_loss


def apply_several(params, x):
    logits = apply(params, x)
    return logits, {"boxes": jnp.tanh(logits), "spectrum": jnp.fft.fft(logits)}


def several():
    return init, apply_several


def apply_told(params, x, train=False):
    return apply(params, x) * (2.0 if train else 1.0)


def told():
    return init, apply_told


def apply_loops(params, x):
    """A scan, whose operations a profiler sees; and a small loop, which XLA compiles into one function."""

    def turn(x, _):
        x = jax.lax.cond(x.sum() > 0, lambda x: x * 1.5, lambda x: x - 0.5, x)
        return jnp.tanh(x @ jnp.ones((10, 10))), x.mean()  # the product

    def write(t, path):
        return path.at[t + 1].set(jnp.tanh(0.9 * path[t]))  # the write

    x, means = jax.lax.scan(turn, x, None, length=50)
    path = jax.lax.fori_loop(0, 499, write, jnp.ones((500,)))  # the loop
    return apply(params, x) + means[:1, None] + path[-1]


def loops():
    return init, apply_loops


def example_inputs():
    return jnp.zeros((6, 10))
