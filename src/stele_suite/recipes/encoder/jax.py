"""BERT-shaped encoder in JAX: one jitted step, weights and optimiser state donated."""

from functools import partial

import jax.numpy as jnp
from jax.nn import gelu

from stele_worker.attention import EMBEDDINGS
from stele_worker.frameworks.jax.attention import cross_entropy, dropout, feed_forward, linear, norm, self_attention
from stele_worker.frameworks.jax.recipe import JaxRecipe, adam, keys


def layer(net, name, x, task, mask, masks):
    y, _ = self_attention(net, name + ".attention", x, task, mask)
    x = norm(net, name + ".norm1", x + dropout(y, task, masks), task)
    y = feed_forward(net, name, x, partial(gelu, approximate=False))
    return norm(net, name + ".norm2", x + dropout(y, task, masks), task)


class Recipe(JaxRecipe):
    def forward(self, net, task, tokens, segments, training=None):
        masks = keys(training, 2 + 2 * task.layers)
        x = net["tokens.weight"][tokens] + net["segments.weight"][segments]  # (batch, length, hidden)
        x = norm(net, "norm", x + net["positions.weight"][: tokens.shape[1]], task)
        x = dropout(x.astype(task.dtype), task, masks)
        mask = (tokens != 0)[:, None, None]  # (batch, heads, queries, keys)
        for name in ["layer.{}".format(number) for number in range(task.layers)]:
            x = self.record(name, layer(net, name, x, task, mask, masks))
        x = jnp.tanh(linear(net, "pooler", x[:, 0]))  # (batch, hidden)
        return linear(net, "classifier", dropout(x, task, masks)).astype(jnp.float32)  # (batch, classes)

    def loss(self, task, output, y):
        return cross_entropy(output, y)

    def optimiser(self, net, task):
        return adam(task)

    def layout(self, name, array):
        return array.T if array.ndim == 2 and name not in EMBEDDINGS else array  # (in, out)
