"""Transformer in NumPy: the oracle, with hand-written gradients, in float64 for every dtype of the Task."""

from stele_suite.oracle import adam, relu, softmax_cross_entropy
from stele_suite.tasks.transformer import positions
from stele_worker.frameworks.numpy.attention import (
    causal,
    cross_attention,
    dropped,
    embed,
    feed_forward,
    layer,
    post_norm,
    project,
    self_attention,
)
from stele_worker.frameworks.numpy.recipe import NumpyRecipe


def embed_positions(net, task, tokens, random):
    x, embed_backward = embed(net, "embedding.weight", tokens)  # (batch, length, hidden)
    scale = task.hidden**0.5
    x, drop = dropped(scale * x + positions(task)[: tokens.shape[1]], task, random)
    return x, lambda g, d: embed_backward(scale * drop(g, d), d)


def decoder_layer(net, name, x, memory, task, random):
    mask = causal(x.shape[1])
    x, first = post_norm(
        net,
        name + ".norm1",
        x,
        lambda x: self_attention(net, name + ".attention", x, task, mask),
        task,
        random,
    )
    x, second = post_norm(
        net,
        name + ".cross.norm",
        x,
        lambda x: cross_attention(net, name + ".cross", x, memory, task),
        task,
        random,
    )
    x, third = post_norm(net, name + ".norm2", x, lambda x: feed_forward(net, name, x, relu), task, random)
    return x, lambda g, d: first(second(third(g, d), d), d)


class Recipe(NumpyRecipe):
    def hidden(self, net, task, source, prefix, random=None):
        """Return (the decoder's last layer, backward)."""
        memory, embed_source = embed_positions(net, task, source, random)
        x, embed_prefix = embed_positions(net, task, prefix, random)
        encode, decode = [], []
        for name in ["encoder.{}".format(number) for number in range(task.layers)]:
            memory, backward = layer(net, name, memory, task, random, residual=post_norm, activation=relu)
            encode.append(backward)
            self.record(name, memory)
        for name in ["decoder.{}".format(number) for number in range(task.layers)]:
            x, backward = decoder_layer(net, name, x, memory, task, random)
            decode.append(backward)
            self.record(name, x)

        def backward(g, d):
            for layer_backward in reversed(decode):
                g = layer_backward(g, d)
            embed_prefix(g, d)
            g = d.pop("memory")
            for layer_backward in reversed(encode):
                g = layer_backward(g, d)
            embed_source(g, d)

        return x, backward

    def forward(self, net, task, source, prefix, random=None):
        x, hidden_backward = self.hidden(net, task, source, prefix, random)
        logits, project_backward = project(net, "embedding.weight", x)  # (batch, length, vocabulary)
        return logits, lambda g, d: hidden_backward(project_backward(g, d), d)

    def predict(self, net, task, source, prefix):
        x, _ = self.hidden(net, task, source, prefix)
        return project(net, "embedding.weight", x[:, -1:])[0][:, 0]  # (batch, vocabulary)

    def loss(self, task, output, y):
        return softmax_cross_entropy(output, y, task.smoothing)

    def optimiser(self, net, task):
        return adam(net, learning_rate=task.learning_rate, beta1=task.beta1, beta2=task.beta2, epsilon=task.epsilon)
