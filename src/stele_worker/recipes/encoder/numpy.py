"""BERT-shaped encoder in NumPy: the oracle, with hand-written gradients, in float64 for every dtype of the Task."""

import numpy

from stele_worker import tasks
from stele_worker.attention.numpy import (
    dropped,
    embed,
    layer,
    linear,
    make_training_step,
    norm,
    post_norm,
)
from stele_worker.oracle import Gradients, gelu, load_weights, softmax_cross_entropy, tanh, zero_parameters

LAYOUT = None


def network(task):
    return zero_parameters({name: array.shape for name, array in tasks.weights(task).items()})


def load(net, weights):
    return load_weights(net, weights)


def embed_all(net, task, tokens, segments, random):
    places = numpy.broadcast_to(numpy.arange(tokens.shape[1]), tokens.shape)
    parts = [("tokens.weight", tokens), ("positions.weight", places), ("segments.weight", segments)]
    values, backwards = zip(*[embed(net, name, numbers) for name, numbers in parts])
    x, normalise = norm(net, "norm", sum(values), task)
    x, drop = dropped(x, task, random)

    def backward(g, d):
        g = normalise(drop(g, d), d)
        for embed_backward in backwards:
            embed_backward(g, d)

    return x, backward


def forward(net, task, tokens, segments, random=None, layer_outputs=None):
    """Return (logits, backward); ``layer_outputs`` receives the outputs of layers."""
    outputs = {} if layer_outputs is None else layer_outputs
    mask = (tokens != 0)[:, None, None]  # (batch, heads, queries, keys)
    x, embed_backward = embed_all(net, task, tokens, segments, random)  # (batch, length, hidden)
    tape = []
    for name in ["layer.{}".format(number) for number in range(task.layers)]:
        x, backward = layer(net, name, x, task, random, residual=post_norm, activation=gelu, mask=mask)
        tape.append(backward)
        outputs[name] = x
    shape = x.shape
    x, pool = linear(net, "pooler", x[:, 0])  # (batch, hidden)
    x, activate = tanh(x)
    x, drop = dropped(x, task, random)
    x, classify = linear(net, "classifier", x)  # (batch, classes)

    def backward(g, d):
        first = pool(activate(drop(classify(g, d), d)), d)
        g = numpy.zeros(shape)
        g[:, 0] = first
        for layer_backward in reversed(tape):
            g = layer_backward(g, d)
        embed_backward(g, d)

    return x, backward


def gradients(net, task):
    random = numpy.random.RandomState(task.seed)

    def run(tokens, segments, y):
        logits, backward = forward(net, task, tokens, segments, random)
        loss, cross_entropy = softmax_cross_entropy(logits, y)
        d = Gradients()
        backward(cross_entropy(), d)
        return loss, {name: d[name] for name in net}

    return run


def training_step(net, task):
    return make_training_step(net, task, gradients(net, task))


def inference_step(net, task):
    return lambda tokens, segments: forward(net, task, tokens, segments)[0]


def stored(net):
    return net


def neutral(name, array):
    return array


def activations(net, task):
    def run(tokens, segments):
        layer_outputs = {}
        forward(net, task, tokens, segments, layer_outputs=layer_outputs)
        return layer_outputs

    return run
