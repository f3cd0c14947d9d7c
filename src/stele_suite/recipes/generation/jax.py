"""The decoder of JAX, token by token: one lax.scan, which writes keys and values to arrays of the full length."""

import jax.numpy as jnp
from jax import lax
from jax.nn import gelu

from stele_suite.recipes.decoder import jax as decoder
from stele_worker.frameworks.jax.attention import feed_forward, norm, self_attention


def layer(net, name, x, task, mask, cache):
    y, (kv, _) = self_attention(net, name + ".attention", norm(net, name + ".norm1", x, task), task, mask, cache=cache)
    x = x + y
    return x + feed_forward(net, name, norm(net, name + ".norm2", x, task), gelu), kv


class Recipe(decoder.Recipe):
    def predict(self, net, task, tokens):
        batch, length = tokens.shape
        shape = (2, batch, length, task.heads, task.hidden // task.heads)
        caches = [jnp.zeros(shape, task.dtype)] * task.layers

        def one(carry, place):
            caches, _ = carry
            x = net["tokens.weight"][tokens[:, place]] + net["positions.weight"][place]
            x = x[:, None].astype(task.dtype)  # (batch, 1, hidden)
            mask = (jnp.arange(length) <= place)[None, None, None]  # (batch, heads, queries, keys)
            written = []
            for number, kv in enumerate(caches):
                x, kv = layer(net, "layer.{}".format(number), x, task, mask, (kv, place))
                written.append(kv)
            return (written, norm(net, "norm", x, task)), None

        x = jnp.zeros((batch, 1, task.hidden), task.dtype)
        (_, x), _ = lax.scan(one, (caches, x), jnp.arange(length))
        return self.project(net, x[:, -1])

    def activations(self, net, task):
        return None  # the layers are in a loop over the tokens
