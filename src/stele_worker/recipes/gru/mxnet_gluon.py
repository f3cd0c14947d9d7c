"""GRU on IMDB in MXNet's Gluon: rnn.GRU, time before batch."""

from mxnet.gluon import nn, rnn

from stele_worker.frameworks.mxnet_gluon import (
    adam,
    graph,
    load,
    make_training_step,
    neutral,
    parameters,
    stored,
)

__all__ = ["LAYOUT", "load", "neutral", "parameters", "stored"]

LAYOUT = None


class Classifier(nn.HybridBlock):
    def __init__(self, task):
        super().__init__(prefix="")  # with the prefixes below, parameters have neutral names
        with self.name_scope():
            # with a sparse gradient, Adam would update only the rows in the batch
            self.embedding = nn.Embedding(
                task.vocabulary, task.embedding, sparse_grad=False, prefix="embedding."
            )
            self.gru = rnn.GRU(
                task.hidden,
                num_layers=1,
                layout="TNC",
                bidirectional=False,
                input_size=task.embedding,
                prefix="gru.",
            )
            self.dense = nn.Dense(2, in_units=task.hidden, use_bias=True, flatten=False, prefix="dense.")

    def hybrid_forward(self, F, x):
        x = self.embedding(F.transpose(x))  # (150, batch, 125)
        x = self.gru(x)  # (150, batch, 100)
        last = F.slice_axis(x, axis=0, begin=-1, end=None)  # the gradient of SequenceLast crashes
        return self.dense(F.squeeze(last, axis=0))  # (batch, 2)


def network(task):
    return graph(Classifier(task))


def body(net):
    return net  # what inference computes


def training_step(net, task):
    return make_training_step(net, *adam(net, task))
