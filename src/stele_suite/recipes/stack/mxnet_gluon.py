"""A stack of dense layers in MXNet's Gluon: hybridized, so one graph per step. Gluon computes no layers again."""

from mxnet import gluon
from mxnet.gluon import nn

from stele_suite.tasks.stack import layer
from stele_worker.frameworks.mxnet_gluon.recipe import GluonRecipe, sgd


def dense(task, name):
    options = {"activation": "relu", "use_bias": True, "flatten": False, "in_units": task.width}
    return nn.Dense(task.width, prefix=name + ".", **options)  # (batch, width)


class Stack(nn.HybridBlock):
    def __init__(self, task):
        super().__init__(prefix="")  # so parameters have the Task's names
        with self.name_scope():
            self.branches = nn.HybridSequential(prefix="")
            for branch in range(task.branches):
                stack = nn.HybridSequential(prefix="")
                stack.add(*[dense(task, layer(branch, number)) for number in range(task.depth)])
                self.branches.add(stack)

    def hybrid_forward(self, F, x):
        return F.add_n(*[branch(x) for branch in self.branches])


class Recipe(GluonRecipe):
    def network(self, task):
        return Stack(task)

    def losses(self):
        return gluon.loss.L2Loss(weight=2.0)  # Gluon takes half of the square

    def optimiser(self, net, task):
        return sgd(net, task)
