"""GPT-2 in JAX: one jitted step, weights and optimiser state donated."""

import jax.numpy as jnp
from jax.nn import gelu

from stele_worker.attention import EMBEDDINGS
from stele_worker.frameworks.jax.attention import cross_entropy, dropout, feed_forward, norm, self_attention
from stele_worker.frameworks.jax.recipe import JaxRecipe, adam, keys


def layer(net, name, x, task, masks):
    y, _ = self_attention(net, name + ".attention", norm(net, name + ".norm1", x, task), task, causal=True)
    x = x + dropout(y, task, masks)
    y = feed_forward(net, name, norm(net, name + ".norm2", x, task), gelu)
    return x + dropout(y, task, masks)


class Recipe(JaxRecipe):
    def hidden(self, net, task, tokens, training=None):
        masks = keys(training, 1 + 2 * task.layers)
        x = net["tokens.weight"][tokens] + net["positions.weight"][: tokens.shape[1]]  # (batch, length, hidden)
        x = dropout(x.astype(task.dtype), task, masks)
        for name in ["layer.{}".format(number) for number in range(task.layers)]:
            x = self.record(name, layer(net, name, x, task, masks))
        return norm(net, "norm", x, task)

    def project(self, net, x):
        return (x @ net["tokens.weight"].T.astype(x.dtype)).astype(jnp.float32)  # (..., vocabulary)

    def forward(self, net, task, tokens, training=None):
        return self.project(net, self.hidden(net, task, tokens, training))

    def predict(self, net, task, tokens):
        return self.project(net, self.hidden(net, task, tokens)[:, -1])

    def loss(self, task, output, y):
        return cross_entropy(output, y)

    def optimiser(self, net, task):
        return adam(task)

    def layout(self, name, array):
        return array.T if array.ndim == 2 and name not in EMBEDDINGS else array  # (in, out)
