"""GRU on IMDB in ONNX Runtime: the exported graph with its GRU operator, inference only."""

import numpy
from onnx import TensorProto

from stele_worker.frameworks.onnxruntime.graphs import node
from stele_worker.frameworks.onnxruntime.recipe import OnnxRecipe


class Recipe(OnnxRecipe):
    def input(self, task):
        return "tokens", TensorProto.INT32, ("batch", task.length)

    def forward(self, net, task, x):
        x = node(net, "Transpose", x, perm=[1, 0])  # (150, batch): the GRU iterates over the first axis
        x = node(net, "Gather", "embedding.weight", x, axis=0)  # (150, batch, 125)
        h = node(
            net,
            "GRU",
            x,
            "gru.input_weight",
            "gru.hidden_weight",
            node(net, "Concat", "gru.input_bias", "gru.hidden_bias", axis=1),  # once, when the graph is optimised
            outputs=2,  # the second is the last hidden state, (1, batch, 100)
            hidden_size=task.hidden,
            direction="forward",
            activations=["Sigmoid", "Tanh"],
            linear_before_reset=1,
            layout=0,
        )
        h = node(net, "Flatten", h, axis=2)  # (batch, 100)
        # (batch, 2)
        return node(net, "Gemm", h, "dense.weight", "dense.bias", alpha=1.0, beta=1.0, transA=0, transB=1)

    def layout(self, name, array):
        if not name.startswith("gru."):
            return array
        r, z, n = numpy.split(array, 3)
        return numpy.concatenate([z, r, n])[None]  # (1, 300, ...): one direction
