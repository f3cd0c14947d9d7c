"""GRU on IMDB in Chainer: define-by-run, NStepGRU."""

import chainer
import chainer.functions as F
import chainer.links as L

from stele_worker.frameworks.chainer.recipe import ChainerRecipe, adam


class Classifier(chainer.Chain):
    def __init__(self, task):
        super().__init__()
        with self.init_scope():
            self.embedding = L.EmbedID(task.vocabulary, task.embedding, ignore_label=None)
            self.gru = L.NStepGRU(1, task.embedding, task.hidden, dropout=0)
            self.dense = L.Linear(task.hidden, 2, nobias=False)

    def forward(self, x):
        x = self.embedding(x)  # (batch, 150, 125)
        h, _ = self.gru(None, F.separate(x, axis=0))  # (1, batch, 100), from a list of sequences
        return self.dense(h[0])  # (batch, 2)


class Recipe(ChainerRecipe):
    def network(self, task):
        return Classifier(task)

    def layers(self, task):
        return ("embedding", "dense")

    def loss(self, task, output, y):
        return F.softmax_cross_entropy(output, y)

    def optimiser(self, net, task):
        return adam(net, task)

    def parameters(self, net):
        weights, biases = net.gru.ws[0], net.gru.bs[0]  # one for each gate, in the Task's order
        return {
            "embedding.weight": [net.embedding.W],
            "gru.input_weight": weights[:3],
            "gru.hidden_weight": weights[3:],
            "gru.input_bias": biases[:3],
            "gru.hidden_bias": biases[3:],
            "dense.weight": [net.dense.W],
            "dense.bias": [net.dense.b],
        }
