"""GRU on IMDB in OpenVINO: its own operations with GRUSequence, compiled for the batch, inference only."""

import numpy
import openvino
from openvino import opset13 as ops

from stele_worker.frameworks.openvino import compiled

LAYOUT = None


def network(task):
    return {}  # of constants, by name: the layers are a function of them, forward


def reordered(array):
    """Gates r, z, n in the order of the operation, z, r, n, and back."""
    first, second, last = numpy.split(array, 3)
    return numpy.concatenate([second, first, last])


def load(net, weights):
    for name, array in weights.items():
        if name in ("gru.input_weight", "gru.hidden_weight"):
            array = reordered(array)[None]  # (1, 300, in): one direction
        net[name] = ops.constant(array)
    # the two biases of z and of r as their sum, those of n apart, for r comes between them: (1, 400)
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


def inference_step(net, task):
    x = ops.parameter([-1, task.length], numpy.int32, name="tokens")
    return compiled(openvino.Model([forward(net, task, x)], [x], "gru"))


def stored(net):
    # but for the GRU's biases, of which the operation takes no more than the sums
    return {
        name: value for name, value in net.items() if not (name.startswith("gru.") and name.endswith("bias"))
    }


def neutral(name, array):
    return reordered(array[0]) if name.startswith("gru.") else array
