"""GRU on IMDB in OpenVINO: OpenVINO's operations with GRUSequence, compiled for the batch, inference only."""

import numpy
from openvino import opset13 as ops

from stele_worker.frameworks.openvino.recipe import OpenvinoRecipe


def joined_bias(net):
    """Return the sums of the two biases of z and of r, and the two biases of n, because r multiplies one: (1, 400).

    OpenVINO computes it when it compiles.
    """
    z, r, n = ops.split(net["gru.input_bias"], 1, 3).outputs()
    hidden_z, hidden_r, hidden_n = ops.split(net["gru.hidden_bias"], 1, 3).outputs()
    return ops.concat([ops.add(z, hidden_z), ops.add(r, hidden_r), n, hidden_n], 1)


class Recipe(OpenvinoRecipe):
    def input(self, task):
        return ops.parameter([-1, task.length], numpy.int32, name="tokens")

    def forward(self, net, task, x):
        batch = ops.gather(ops.shape_of(x), [0], 0)
        x = ops.gather(net["embedding.weight"], x, 0)  # (batch, 150, 125)
        h = ops.broadcast(numpy.float32(0), ops.concat([batch, [1, task.hidden]], 0))  # (batch, 1, 100)
        gru = ops.gru_sequence(
            x,
            h,
            ops.broadcast(task.length, batch),
            net["gru.input_weight"],
            net["gru.hidden_weight"],
            joined_bias(net),
            hidden_size=task.hidden,
            direction="forward",
            activations=["sigmoid", "tanh"],
            linear_before_reset=True,
        )
        h = ops.squeeze(gru.output(1), [1])  # the last state: (batch, 100)
        x = ops.matmul(h, net["dense.weight"], transpose_a=False, transpose_b=True)
        return ops.add(x, net["dense.bias"])  # (batch, 2)

    def layout(self, name, array):
        if not name.startswith("gru."):
            return array
        r, z, n = numpy.split(array, 3)
        return numpy.concatenate([z, r, n])[None]  # (1, 300, ...): one direction
