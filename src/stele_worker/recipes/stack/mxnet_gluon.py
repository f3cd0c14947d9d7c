"""A stack of dense layers in MXNet's Gluon: hybridized, so one graph per step. Gluon computes no layers again."""

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
from stele_worker.tasks.stack import layer

__all__ = ["LAYOUT", "load", "neutral", "parameters", "stored"]

LAYOUT = None
LOSS = squared_error


def dense(task, name):
    options = {"activation": "relu", "use_bias": True, "flatten": False, "in_units": task.width}
    return nn.Dense(task.width, prefix=name + ".", **options)  # (batch, width)


class Stack(nn.HybridBlock):
    def __init__(self, task):
        super().__init__(prefix="")  # so parameters have neutral names
        with self.name_scope():
            self.branches = nn.HybridSequential(prefix="")
            for branch in range(task.branches):
                stack = nn.HybridSequential(prefix="")
                stack.add(*[dense(task, layer(branch, number)) for number in range(task.depth)])
                self.branches.add(stack)

    def hybrid_forward(self, F, x):
        return F.add_n(*[branch(x) for branch in self.branches])


def network(task):
    return graph(Stack(task))


def body(net):
    return net  # what inference computes


def training_step(net, task):
    return make_training_step(net, sgd(net, task), loss=LOSS)
