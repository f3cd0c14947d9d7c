"""GRU on IMDB in MXNet's Gluon: rnn.GRU, time before batch."""

from mxnet import gluon
from mxnet.gluon import nn, rnn

from stele_worker.frameworks.mxnet_gluon.recipe import Adam, GluonRecipe


class Classifier(nn.HybridBlock):
    def __init__(self, task):
        super().__init__(prefix="")  # with the prefixes below, parameters have the Task's names
        with self.name_scope():
            # with a sparse gradient, Adam would update only the rows in the batch
            self.embedding = nn.Embedding(task.vocabulary, task.embedding, sparse_grad=False, prefix="embedding.")
            self.gru = rnn.GRU(task.hidden, layout="TNC", input_size=task.embedding, prefix="gru.")
            self.dense = nn.Dense(2, in_units=task.hidden, use_bias=True, flatten=False, prefix="dense.")

    def hybrid_forward(self, F, x):
        x = self.embedding(F.transpose(x))  # (150, batch, 125)
        x = self.gru(x)  # (150, batch, 100)
        last = F.slice_axis(x, axis=0, begin=-1, end=None)  # the gradient of SequenceLast crashes
        return self.dense(F.squeeze(last, axis=0))  # (batch, 2)


class Recipe(GluonRecipe):
    def network(self, task):
        return Classifier(task)

    def losses(self):
        return gluon.loss.SoftmaxCrossEntropyLoss()

    def optimiser(self, net, task):
        return Adam(net, task)
