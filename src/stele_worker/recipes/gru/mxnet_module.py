"""GRU on IMDB in MXNet's symbols: a Module with the fused cell, time before batch."""

import mxnet as mx
import numpy

from stele_worker.frameworks.mxnet_module import (
    arrays,
    bind_for_training,
    cross_entropy,
    put,
    with_softmax_output,
)

LAYOUT = None


def network(task):
    x = mx.sym.transpose(mx.sym.var("x"))  # (150, batch)
    weight = mx.sym.var("embedding.weight")
    # with a sparse gradient, Adam would update only the rows in the batch
    x = mx.sym.Embedding(
        x, weight, input_dim=task.vocabulary, output_dim=task.embedding, sparse_grad=False
    )  # (150, batch, 125)
    cell = mx.rnn.FusedRNNCell(task.hidden, num_layers=1, mode="gru", bidirectional=False, prefix="gru_")
    x, _ = cell.unroll(task.length, x, layout="TNC", merge_outputs=True)  # (150, batch, 100)
    x = mx.sym.slice_axis(x, axis=0, begin=-1, end=None)  # the gradient of SequenceLast crashes
    x = mx.sym.squeeze(x, axis=0)  # (batch, 100)
    weight, bias = mx.sym.var("dense.weight"), mx.sym.var("dense.bias")
    x = mx.sym.FullyConnected(x, weight, bias, num_hidden=2, no_bias=False, flatten=False)  # (batch, 2)
    return {"logits": x, "arrays": ({}, {}), "module": None}


GRU = ("gru.input_weight", "gru.hidden_weight", "gru.input_bias", "gru.hidden_bias")


def load(net, weights):
    parameters, _ = net["arrays"]
    parameters.update({name: put(array) for name, array in weights.items() if name not in GRU})
    parameters["gru_parameters"] = put(numpy.concatenate([weights[name].ravel() for name in GRU]))
    return net


SIZES = (300 * 125, 300 * 100, 300, 300)


def split_parameters(values):
    """Return parameters or gradients by name; MXNet has those of the GRU in one vector."""
    ends = numpy.cumsum(SIZES)
    fused = values["gru_parameters"]
    parts = {name: fused[end - size : end] for name, size, end in zip(GRU, SIZES, ends)}
    unfused = {name: value for name, value in values.items() if name != "gru_parameters"}
    return dict(unfused, **parts)


OUTPUT = "logits"  # the symbol that inference computes


def named(gradients):
    return split_parameters(gradients)


def training_step(net, task):
    module = optimiser = None

    def step(x, y):
        nonlocal module, optimiser
        if module is None:
            optimiser = mx.optimizer.Adam(
                learning_rate=task.learning_rate,
                beta1=task.beta1,
                beta2=task.beta2,
                lazy_update=False,
                wd=0.0,
                rescale_grad=1 / len(x),
            )
            module = bind_for_training(net, with_softmax_output(net["logits"]), optimiser, x, y)
        module.forward_backward(mx.io.DataBatch([x], [y]))
        # MXNet adds epsilon before it corrects the second moment, the Task adds it after: so correct
        # epsilon by the same factor
        optimiser.epsilon = task.epsilon * (1 - task.beta2 ** (optimiser.num_update + 1)) ** 0.5
        module.update()
        return cross_entropy(module.get_outputs()[0], y)

    return step


def stored(net):
    return split_parameters(arrays(net)[0])


def neutral(name, array):
    return array.reshape(300, -1) if name in ("gru.input_weight", "gru.hidden_weight") else array
