"""Layers with attention in JAX: fused attention where XLA has it, and one product for query, key and value."""

import jax.numpy as jnp
from jax import lax
from jax.nn import dot_product_attention, log_softmax

from stele_worker.frameworks.jax.recipe import dropout as drop


def linear(net, name, x):
    return x @ net[name + ".weight"].astype(x.dtype) + net[name + ".bias"].astype(x.dtype)


def norm(net, name, x, task):
    """Normalise in float32."""
    dtype, x = x.dtype, x.astype(jnp.float32)
    x = x - x.mean(-1, keepdims=True)
    x = x * lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + task.norm_epsilon)
    return (x * net[name + ".weight"] + net[name + ".bias"]).astype(dtype)


def self_attention(net, name, x, task, mask=None, causal=False, cache=None):
    """Return the attention, and the ``cache`` (keys and values, place) with those of x written at its place."""
    q, k, v = split(linear(net, name + ".qkv", x), 3, task)  # (batch, length, heads, size)
    if cache is not None:
        kv, place = cache
        kv = lax.dynamic_update_slice_in_dim(kv, jnp.stack([k, v]), place, 2)
        (k, v), cache = kv, (kv, place)
    x = dot_product_attention(q, k, v, mask=mask, is_causal=causal)
    return linear(net, name + ".out", merge(x)), cache


def cross_attention(net, name, x, memory, task):
    (q,) = split(linear(net, name + ".query", x), 1, task)
    k, v = split(linear(net, name + ".kv", memory), 2, task)
    return linear(net, name + ".out", merge(dot_product_attention(q, k, v)))


def split(x, count, task):
    """Return (batch, length, count * hidden) as ``count`` arrays (batch, length, heads, size)."""
    batch, length, _ = x.shape
    return jnp.moveaxis(x.reshape(batch, length, count, task.heads, -1), 2, 0)


def merge(x):
    return x.reshape(*x.shape[:2], -1)


def feed_forward(net, name, x, activation):
    return linear(net, name + ".dense2", activation(linear(net, name + ".dense1", x)))


def dropout(x, task, keys):
    """Drop numbers out; ``keys`` is an iterator of random keys."""
    return drop(x, task.dropout[0], next(keys))


def cross_entropy(logits, labels, smoothing=0.0):
    """Return the mean over all labels of logits (..., classes), in float32."""
    logarithms = log_softmax(logits.astype(jnp.float32))
    right = jnp.take_along_axis(logarithms, labels[..., None], axis=-1).mean()
    return -(1 - smoothing) * right - smoothing * logarithms.mean()
