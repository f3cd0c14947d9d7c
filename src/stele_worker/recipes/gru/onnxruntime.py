"""GRU on IMDB in ONNX Runtime: the exported graph with its GRU operator, inference only."""

import numpy
from onnx import TensorProto

from stele_worker.frameworks.onnxruntime import constant, constants, graph, node, output

LAYOUT = None


def network(task):
    net = graph("gru", "tokens", TensorProto.INT32, ("batch", task.length))
    x = node(net, "Transpose", "tokens", perm=[1, 0])  # (150, batch): the GRU iterates over the first axis
    x = node(net, "Gather", "embedding.weight", x, axis=0)  # (150, batch, 125)
    h = node(
        net,
        "GRU",
        x,
        "gru.input_weight",
        "gru.hidden_weight",
        "gru.bias",
        outputs=2,  # the second is the last hidden state, (1, batch, 100)
        hidden_size=task.hidden,
        direction="forward",
        activations=["Sigmoid", "Tanh"],
        linear_before_reset=1,
        layout=0,
    )
    h = node(net, "Flatten", h, axis=2)  # (batch, 100)
    x = node(net, "Gemm", h, "dense.weight", "dense.bias", alpha=1.0, beta=1.0, transA=0, transB=1)
    return output(net, x, ("batch", 2))


def reorder_gates(array):
    """Reorder gates from r, z, n to the operator's z, r, n, or back."""
    first, second, last = numpy.split(array, 3)
    return numpy.concatenate([second, first, last])


def load(net, weights):
    gru = {name: reorder_gates(array) for name, array in weights.items() if name.startswith("gru.")}
    constant(net, "embedding.weight", weights["embedding.weight"])
    constant(net, "gru.input_weight", gru["gru.input_weight"][None])  # (1, 300, 125): one direction
    constant(net, "gru.hidden_weight", gru["gru.hidden_weight"][None])
    constant(net, "gru.bias", numpy.concatenate([gru["gru.input_bias"], gru["gru.hidden_bias"]])[None])
    constant(net, "dense.weight", weights["dense.weight"])
    constant(net, "dense.bias", weights["dense.bias"])
    return net


def stored(net):
    arrays = constants(net)
    biases = numpy.split(arrays.pop("gru.bias"), 2, axis=1)
    arrays["gru.input_bias"], arrays["gru.hidden_bias"] = biases
    return arrays


def neutral(name, array):
    return reorder_gates(array[0]) if name.startswith("gru.") else array
