"""MXNet 1 with its declarative API: symbols, and the Module that computes them.

Everything that does not concern symbols comes from Gluon.
"""

import os

import mxnet as mx

from stele_worker.frameworks.mxnet_gluon import framework as of_gluon


class Framework(of_gluon.Framework):
    MODES = ()
    PARALLEL = STATISTICS = None

    def flags(self):
        shared = {name: value for name, value in super().flags().items() if name != "hybridize"}
        return dict(shared, subgraph_backend=os.environ.get("MXNET_SUBGRAPH_BACKEND", "default"))

    def in_force(self):
        return None

    def put(self, array):
        return mx.nd.array(array, ctx=self.device, dtype="float32")  # labels must have the dtype of the logits
