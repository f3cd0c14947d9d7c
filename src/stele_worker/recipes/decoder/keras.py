"""GPT-2 in Keras 3: functional; Keras' documented loop, compiled where that is faster."""

import keras

from stele_worker.attention.keras import (
    Embedding,
    Positions,
    dropout,
    feed_forward,
    load,
    named,
    neutral,
    norm,
    plain,
    self_attention,
    stored,
)
from stele_worker.frameworks.keras import (
    adam,
    cross_entropy,
    faster_with_xla,
    make_training_step,
    outputs,
    set_policy,
)

__all__ = ["LAYOUT", "load", "named", "neutral", "stored"]

LAYOUT = None


def gelu(x):
    return keras.activations.gelu(x, approximate=True)


def layer(x, name, task):
    y = self_attention(norm(x, name + ".norm1", task), name + ".attention", task, causal=True)
    x = x + dropout(y, task)
    y = feed_forward(norm(x, name + ".norm2", task), name, task, gelu)
    return keras.layers.Add(name=plain(name))([x, dropout(y, task)])


def network(task):
    set_policy(task)
    tokens = keras.Input((task.length,), dtype="int32")
    embedding = Embedding(task.vocabulary, task.hidden, name="tokens")
    x = dropout(
        Positions(task.positions, name="positions")(embedding(tokens)), task
    )  # (batch, length, hidden)
    for number in range(task.layers):
        x = layer(x, "layer.{}".format(number), task)
    logits = embedding(norm(x, "norm", task), reverse=True)  # (batch, length, vocabulary)
    return faster_with_xla(keras.Model(tokens, logits))


def output(net):
    """Return the logits of the last position, for the inference."""
    return net.get_layer("tokens")(net.get_layer("norm").output[:, -1], reverse=True)


def training_step(net, task):
    return make_training_step(net, adam(task), cross_entropy())


def activations(net, task):
    names = ["layer.{}".format(number) for number in range(task.layers)]
    return outputs(net, {plain(name): name for name in names})
