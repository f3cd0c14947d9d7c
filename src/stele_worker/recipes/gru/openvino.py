"""GRU on IMDB in OpenVINO: OpenVINO's operations with GRUSequence, compiled for the batch, inference only."""

import numpy
from openvino import opset13 as ops

LAYOUT = None


def network(task):
    return {}  # constants by name: forward computes the layers from them


def reorder_gates(array):
    """Reorder gates from r, z, n to the operation's z, r, n, or back."""
    first, second, last = numpy.split(array, 3)
    return numpy.concatenate([second, first, last])


def load(net, weights):
    for name, array in weights.items():
        if name in ("gru.input_weight", "gru.hidden_weight"):
            array = reorder_gates(array)[None]  # (1, 300, in): one direction
        net[name] = ops.constant(array)
    # the sums of the two biases of z and of r; separate biases of n, because r multiplies one: (1, 400)
    (r, z, n), (hidden_r, hidden_z, hidden_n) = [
        numpy.split(weights[name], 3) for name in ("gru.input_bias", "gru.hidden_bias")
    ]
    net["gru.bias"] = ops.constant(numpy.concatenate([z + hidden_z, r + hidden_r, n, hidden_n])[None])
    return net


def forward(net, task, x):
    batch = ops.gather(ops.shape_of(x), [0], 0)
    x = ops.gather(net["embedding.weight"], x, 0)  # (batch, 150, 125)
    h = ops.broadcast(numpy.float32(0), ops.concat([batch, [1, task.hidden]], 0))  # (batch, 1, 100)
    lengths = ops.broadcast(task.length, batch)
    gru = ops.gru_sequence(
        x,
        h,
        lengths,
        net["gru.input_weight"],
        net["gru.hidden_weight"],
        net["gru.bias"],
        hidden_size=task.hidden,
        direction="forward",
        activations=["sigmoid", "tanh"],
        linear_before_reset=True,
    )
    h = ops.squeeze(gru.output(1), [1])  # the last state: (batch, 100)
    x = ops.matmul(h, net["dense.weight"], transpose_a=False, transpose_b=True)
    return ops.add(x, net["dense.bias"])  # (batch, 2)


def inputs(task):
    return ops.parameter([-1, task.length], numpy.int32, name="tokens")


def predict(net, task, x):
    return forward(net, task, x)


def stored(net):
    # without the GRU's biases, because the operation has only their sums
    return {
        name: value for name, value in net.items() if not (name.startswith("gru.") and name.endswith("bias"))
    }


def neutral(name, array):
    return reorder_gates(array[0]) if name.startswith("gru.") else array
