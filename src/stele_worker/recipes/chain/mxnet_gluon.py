"""A chain of operations in MXNet's Gluon: hybridized, so one graph per step."""

from mxnet.gluon import nn

from stele_worker.frameworks.mxnet_gluon import (
    graph,
    load,
    make_training_step,
    neutral,
    parameters,
    sgd,
    squared_error,
    stored,
)

__all__ = ["LAYOUT", "load", "neutral", "parameters", "stored"]

LAYOUT = None
LOSS = squared_error


class Chain(nn.HybridBlock):
    def __init__(self, task):
        super().__init__(prefix="")  # so parameters have neutral names
        self.links = task.links
        with self.name_scope():
            self.factor = self.params.get("factor", shape=(task.width,))
            self.summand = self.params.get("summand", shape=(task.width,))

    def hybrid_forward(self, F, x, factor, summand):
        factor, summand = F.expand_dims(factor, axis=0), F.expand_dims(summand, axis=0)
        for _ in range(self.links):
            x = F.broadcast_add(F.broadcast_mul(x, factor), summand)  # (batch, width)
        return x


def network(task):
    return graph(Chain(task))


def body(net):
    return net  # what inference computes


def training_step(net, task):
    return make_training_step(net, sgd(net, task), loss=LOSS)
