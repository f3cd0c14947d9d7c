"""Transformer in NumPy: the oracle, with hand-written gradients, in float64 for every dtype of the Task."""

import numpy

from stele_worker import tasks
from stele_worker.attention.numpy import (
    causal,
    cross_attention,
    dropped,
    embed,
    feed_forward,
    layer,
    make_training_step,
    post_norm,
    project,
    self_attention,
)
from stele_worker.oracle import Gradients, load_weights, relu, softmax_cross_entropy, zero_parameters
from stele_worker.tasks.transformer import positions

LAYOUT = None


def network(task):
    return zero_parameters({name: array.shape for name, array in tasks.weights(task).items()})


def load(net, weights):
    return load_weights(net, weights)


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


def hidden(net, task, source, prefix, random=None, layer_outputs=None):
    """Return (the decoder's last layer, backward); ``layer_outputs`` receives the outputs of layers."""
    outputs = {} if layer_outputs is None else layer_outputs
    memory, embed_source = embed_positions(net, task, source, random)
    x, embed_prefix = embed_positions(net, task, prefix, random)
    encode, decode = [], []
    for name in ["encoder.{}".format(number) for number in range(task.layers)]:
        memory, backward = layer(net, name, memory, task, random, residual=post_norm, activation=relu)
        encode.append(backward)
        outputs[name] = memory
    for name in ["decoder.{}".format(number) for number in range(task.layers)]:
        x, backward = decoder_layer(net, name, x, memory, task, random)
        decode.append(backward)
        outputs[name] = x

    def backward(g, d):
        for layer_backward in reversed(decode):
            g = layer_backward(g, d)
        embed_prefix(g, d)
        g = d.pop("memory")
        for layer_backward in reversed(encode):
            g = layer_backward(g, d)
        embed_source(g, d)

    return x, backward


def gradients(net, task):
    random = numpy.random.RandomState(task.seed)

    def run(source, prefix, y):
        x, hidden_backward = hidden(net, task, source, prefix, random)
        logits, project_backward = project(net, "embedding.weight", x)  # (batch, length, vocabulary)
        loss, cross_entropy = softmax_cross_entropy(logits, y, task.smoothing)
        d = Gradients()
        hidden_backward(project_backward(cross_entropy(), d), d)
        return loss, {name: d[name] for name in net}

    return run


def training_step(net, task):
    return make_training_step(net, task, gradients(net, task))


def inference_step(net, task):
    def step(source, prefix):
        x, _ = hidden(net, task, source, prefix)
        return project(net, "embedding.weight", x[:, -1:])[0][:, 0]  # (batch, vocabulary)

    return step


def stored(net):
    return net


def neutral(name, array):
    return array


def activations(net, task):
    def run(source, prefix):
        layer_outputs = {}
        hidden(net, task, source, prefix, layer_outputs=layer_outputs)
        return layer_outputs

    return run
