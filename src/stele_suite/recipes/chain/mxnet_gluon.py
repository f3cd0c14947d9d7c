"""A chain of operations in MXNet's Gluon: hybridized, so one graph per step."""

from mxnet import gluon
from mxnet.gluon import nn

from stele_worker.frameworks.mxnet_gluon.recipe import GluonRecipe, sgd


class Chain(nn.HybridBlock):
    def __init__(self, task):
        super().__init__(prefix="")  # so parameters have the Task's names
        self.links = task.links
        with self.name_scope():
            self.factor = self.params.get("factor", shape=(task.width,))
            self.summand = self.params.get("summand", shape=(task.width,))

    def hybrid_forward(self, F, x, factor, summand):
        factor, summand = F.expand_dims(factor, axis=0), F.expand_dims(summand, axis=0)
        for _ in range(self.links):
            x = F.broadcast_add(F.broadcast_mul(x, factor), summand)  # (batch, width)
        return x


class Recipe(GluonRecipe):
    def network(self, task):
        return Chain(task)

    def losses(self):
        return gluon.loss.L2Loss(weight=2.0)  # Gluon takes half of the square

    def optimiser(self, net, task):
        return sgd(net, task)
