"""Transformer in JAX: one jitted step, weights and optimiser state donated."""

import jax.numpy as jnp
from jax.nn import relu

from stele_suite.tasks.transformer import positions
from stele_worker.attention import EMBEDDINGS
from stele_worker.frameworks.jax.attention import (
    cross_attention,
    cross_entropy,
    dropout,
    feed_forward,
    norm,
    self_attention,
)
from stele_worker.frameworks.jax.recipe import JaxRecipe, adam, keys


def embed(net, task, tokens, masks):
    x = task.hidden**0.5 * net["embedding.weight"][tokens] + positions(task)  # (batch, length, hidden)
    return dropout(x.astype(task.dtype), task, masks)


def encoder_layer(net, name, x, task, masks):
    y, _ = self_attention(net, name + ".attention", x, task)
    x = norm(net, name + ".norm1", x + dropout(y, task, masks), task)
    y = feed_forward(net, name, x, relu)
    return norm(net, name + ".norm2", x + dropout(y, task, masks), task)


def decoder_layer(net, name, x, memory, task, masks):
    y, _ = self_attention(net, name + ".attention", x, task, causal=True)
    x = norm(net, name + ".norm1", x + dropout(y, task, masks), task)
    y = cross_attention(net, name + ".cross", x, memory, task)
    x = norm(net, name + ".cross.norm", x + dropout(y, task, masks), task)
    y = feed_forward(net, name, x, relu)
    return norm(net, name + ".norm2", x + dropout(y, task, masks), task)


class Recipe(JaxRecipe):
    def hidden(self, net, task, source, prefix, training=None):
        masks = keys(training, 2 + 5 * task.layers)
        memory = embed(net, task, source, masks)
        for name in ["encoder.{}".format(number) for number in range(task.layers)]:
            memory = self.record(name, encoder_layer(net, name, memory, task, masks))
        x = embed(net, task, prefix, masks)
        for name in ["decoder.{}".format(number) for number in range(task.layers)]:
            x = self.record(name, decoder_layer(net, name, x, memory, task, masks))
        return x

    def project(self, net, x):
        return (x @ net["embedding.weight"].T.astype(x.dtype)).astype(jnp.float32)  # (..., vocabulary)

    def forward(self, net, task, source, prefix, training=None):
        return self.project(net, self.hidden(net, task, source, prefix, training))

    def predict(self, net, task, source, prefix):
        return self.project(net, self.hidden(net, task, source, prefix)[:, -1])

    def loss(self, task, output, y):
        return cross_entropy(output, y, task.smoothing)

    def optimiser(self, net, task):
        return adam(task)

    def layout(self, name, array):
        return array.T if array.ndim == 2 and name not in EMBEDDINGS else array  # (in, out)
