"""BERT-shaped encoder in Keras 3: functional; Keras' documented loop, compiled where that is faster."""

import keras
from keras import layers

from stele_worker.attention.keras import (
    Embedding,
    Positions,
    dropout,
    feed_forward,
    linear,
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
    return keras.activations.gelu(x, approximate=False)


def layer(x, name, task, mask):
    x = norm(x + dropout(self_attention(x, name + ".attention", task, mask), task), name + ".norm1", task)
    return norm(x + dropout(feed_forward(x, name, task, gelu), task), name + ".norm2", task)


def network(task):
    set_policy(task)
    tokens, segments = [keras.Input((task.length,), dtype="int32") for _ in range(2)]
    x = Embedding(task.vocabulary, task.hidden, name="tokens")(tokens)
    x = layers.Add()([x, Embedding(task.segments, task.hidden, name="segments")(segments)])
    x = Positions(task.positions, name="positions")(x)
    x = dropout(norm(x, "norm", task), task)  # (batch, length, hidden)
    mask = (tokens != 0)[:, None, None]  # (batch, heads, queries, keys)
    for number in range(task.layers):
        x = layer(x, "layer.{}".format(number), task, mask)
    x = dropout(linear(x[:, 0], "pooler", task.hidden, "tanh"), task)  # (batch, hidden)
    logits = linear(x, "classifier", task.classes, dtype="float32")
    return faster_with_xla(keras.Model([tokens, segments], logits))


def output(net):
    return net.outputs[0]  # of the inference


def training_step(net, task):
    return make_training_step(net, adam(task), cross_entropy())


def activations(net, task):
    names = ["layer.{}".format(number) for number in range(task.layers)]
    return outputs(net, {plain(name) + "_norm2": name for name in names})
