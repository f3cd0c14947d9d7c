"""Networks of images in JAX: layers in the layout (batch, height, width, channel), and parameters by name."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from stele_worker.images import norm_epsilon


def network(task):
    return {"weights": {}, "running": {}}  # a recipe computes the layers from them


def load(net, weights):
    for name, array in weights.items():
        if array.ndim == 4:
            array = array.transpose(2, 3, 1, 0)  # (height, width, in / groups, out)
        kind = "running" if ".running_" in name else "weights"
        net[kind][name] = jnp.array(array.T if array.ndim == 2 else array)
    return net


def stored(net):
    return {**net["weights"], **net["running"]}


def neutral(name, array):
    return array.transpose(3, 2, 0, 1) if array.ndim == 4 else array.T


def convolution(net, name, x, stride=1):
    kernel = net["weights"][name + ".weight"].astype(x.dtype)
    edge, groups = kernel.shape[0] // 2, x.shape[-1] // kernel.shape[2]
    padding, layout = ((edge, edge), (edge, edge)), ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(
        x, kernel, (stride, stride), padding, dimension_numbers=layout, feature_group_count=groups
    )


def normalisation(net, name, x, task, new_running):
    """Normalise in float32. ``new_running`` is None in inference; in training it receives the running statistics."""
    dtype, x = x.dtype, x.astype(jnp.float32)
    names = name + ".running_mean", name + ".running_var"
    mean, variance = net["running"][names[0]], net["running"][names[1]]
    if new_running is not None:
        mean = x.mean((0, 1, 2))
        variance = jnp.square(x).mean((0, 1, 2)) - jnp.square(mean)  # one pass over x for both
        count = x.size // x.shape[-1]
        for running, new in zip(names, (mean, variance * count / (count - 1))):
            new_running[running] = (1 - task.statistics) * net["running"][running] + task.statistics * new
    scale = net["weights"][name + ".weight"] * lax.rsqrt(variance + norm_epsilon(task))
    return ((x - mean) * scale + net["weights"][name + ".bias"]).astype(dtype)


def pool(x):
    window, strides, padding = (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (1, 1), (0, 0))
    return lax.reduce_window(x, -jnp.inf, lax.max, window, strides, padding)


@partial(jax.custom_vjp, nondiff_argnums=(1,))
def pool_blocks(x, size):
    """Return the largest of each block of ``size`` x ``size``, without what is left over at the edges.

    On a CPU, the gradient of lax.reduce_window takes 1/6 of a step of the CNN, so it has another one.
    """
    window = (1, size, size, 1)
    return lax.reduce_window(x, -jnp.inf, lax.max, window, window, "VALID")


def pool_blocks_and_keep(x, size):
    y = pool_blocks(x, size)
    return y, (x, y)


def gradient_of_pool_blocks(size, kept, gradient):
    """Divide the gradient of each block among those of its pixels that are the largest."""
    x, y = kept
    batch, height, width, channels = y.shape
    blocks = x[:, : height * size, : width * size].reshape(batch, height, size, width, size, channels)
    largest = blocks == y[:, :, None, :, None]
    # on a CPU, a sum of integers is faster than one of floats
    share = gradient / largest.sum((2, 4)).astype(gradient.dtype)
    of_pixels = jnp.where(largest, share[:, :, None, :, None], 0).reshape(
        batch, height * size, width * size, channels
    )
    edges = [(0, whole - pooled) for whole, pooled in zip(x.shape, of_pixels.shape)]
    return (jnp.pad(of_pixels, edges),)


pool_blocks.defvjp(pool_blocks_and_keep, gradient_of_pool_blocks)


def dense(net, name, x):
    """Return float32 logits."""
    kernel, bias = net["weights"][name + ".weight"], net["weights"][name + ".bias"]
    return (x @ kernel.astype(x.dtype) + bias.astype(x.dtype)).astype(jnp.float32)
