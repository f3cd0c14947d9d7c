"""GPT-2 in NumPy: the oracle, with hand-written gradients, in float64 for every dtype of the Task."""

import numpy

from stele_worker import tasks
from stele_worker.attention.numpy import (
    causal,
    dropped,
    embed,
    layer,
    make_training_step,
    norm,
    pre_norm,
    project,
)
from stele_worker.oracle import Gradients, gelu_tanh, load_weights, softmax_cross_entropy, zero_parameters

LAYOUT = None


def network(task):
    return zero_parameters({name: array.shape for name, array in tasks.weights(task).items()})


def load(net, weights):
    return load_weights(net, weights)


def hidden(net, task, tokens, random=None, layer_outputs=None):
    """Return (the normalised last layer, backward); ``layer_outputs`` receives the outputs of layers."""
    outputs = {} if layer_outputs is None else layer_outputs
    places = numpy.broadcast_to(numpy.arange(tokens.shape[1]), tokens.shape)
    x, embed_tokens = embed(net, "tokens.weight", tokens)  # (batch, length, hidden)
    offset, embed_places = embed(net, "positions.weight", places)
    x, drop = dropped(x + offset, task, random)
    tape, mask = [], causal(tokens.shape[1])
    for name in ["layer.{}".format(number) for number in range(task.layers)]:
        x, backward = layer(net, name, x, task, random, residual=pre_norm, activation=gelu_tanh, mask=mask)
        tape.append(backward)
        outputs[name] = x
    x, normalise = norm(net, "norm", x, task)

    def backward(g, d):
        g = normalise(g, d)
        for layer_backward in reversed(tape):
            g = layer_backward(g, d)
        g = drop(g, d)
        embed_tokens(g, d)
        embed_places(g, d)

    return x, backward


def gradients(net, task):
    random = numpy.random.RandomState(task.seed)

    def run(tokens, y):
        x, hidden_backward = hidden(net, task, tokens, random)
        logits, project_backward = project(net, "tokens.weight", x)  # (batch, length, vocabulary)
        loss, cross_entropy = softmax_cross_entropy(logits, y)
        d = Gradients()
        hidden_backward(project_backward(cross_entropy(), d), d)
        return loss, {name: d[name] for name in net}

    return run


def training_step(net, task):
    return make_training_step(net, task, gradients(net, task))


def inference_step(net, task):
    def step(tokens):
        x, _ = hidden(net, task, tokens)
        return project(net, "tokens.weight", x[:, -1:])[0][:, 0]  # (batch, vocabulary)

    return step


def stored(net):
    return net


def neutral(name, array):
    return array


def activations(net, task):
    def run(tokens):
        layer_outputs = {}
        hidden(net, task, tokens, layer_outputs=layer_outputs)
        return layer_outputs

    return run
