"""Transformer in Keras 3: functional; Keras' documented loop, compiled where that is faster."""

import keras
from keras import ops

from stele_worker.attention.keras import (
    Embedding,
    cross_attention,
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
from stele_worker.frameworks.keras import adam, faster_with_xla, make_training_step, outputs, set_policy
from stele_worker.tasks.transformer import positions

__all__ = ["LAYOUT", "load", "named", "neutral", "stored"]

LAYOUT = None


def encoder_layer(x, name, task):
    x = norm(x + dropout(self_attention(x, name + ".attention", task), task), name + ".norm1", task)
    return norm(x + dropout(feed_forward(x, name, task, "relu"), task), name + ".norm2", task)


def decoder_layer(x, memory, name, task):
    y = self_attention(x, name + ".attention", task, causal=True)
    x = norm(x + dropout(y, task), name + ".norm1", task)
    y = cross_attention(x, memory, name + ".cross", task)
    x = norm(x + dropout(y, task), name + ".cross.norm", task)
    return norm(x + dropout(feed_forward(x, name, task, "relu"), task), name + ".norm2", task)


def network(task):
    set_policy(task)
    source, prefix = [keras.Input((task.length,), dtype="int32") for _ in range(2)]
    embedding = Embedding(task.vocabulary, task.hidden, name="embedding")
    places = ops.convert_to_tensor(positions(task))  # a NumPy array would be copied in each step

    def embed(tokens):
        return dropout(task.hidden**0.5 * embedding(tokens) + places, task)  # (batch, length, hidden)

    memory = embed(source)
    for number in range(task.layers):
        memory = encoder_layer(memory, "encoder.{}".format(number), task)
    x = embed(prefix)
    for number in range(task.layers):
        x = decoder_layer(x, memory, "decoder.{}".format(number), task)
    logits = embedding(x, reverse=True)  # (batch, length, vocabulary)
    return faster_with_xla(keras.Model([source, prefix], logits))


def output(net):
    """Return the logits of the last position, for the inference."""
    last = max(int(layer.name.split("_")[1]) for layer in net.layers if layer.name.startswith("decoder_"))
    x = net.get_layer("decoder_{}_norm2".format(last)).output
    return net.get_layer("embedding")(x[:, -1], reverse=True)


def loss(task):
    """Return the mean cross-entropy, with labels smoothed over the vocabulary."""

    def compute(labels, logits):
        logarithms = ops.log_softmax(logits)
        right = ops.mean(ops.take_along_axis(logarithms, labels[..., None], axis=-1))
        return -(1 - task.smoothing) * right - task.smoothing * ops.mean(logarithms)

    return compute


def training_step(net, task):
    return make_training_step(net, adam(task), loss(task))


def activations(net, task):
    names = ["{}.{}".format(part, number) for part in ("encoder", "decoder") for number in range(task.layers)]
    return outputs(net, {plain(name) + "_norm2": name for name in names})
