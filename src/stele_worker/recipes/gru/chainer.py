"""GRU on IMDB in Chainer: define-by-run, NStepGRU."""

import chainer
import chainer.functions as F
import chainer.links as L

from stele_worker.frameworks.chainer import adam, inference, make_training_step, on_device, outputs

LAYOUT = None


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


def network(task):
    return Classifier(task)


def parameters(net):
    """Return lists of parameters by neutral name: Chainer has one parameter per gate, in the same order."""
    weights, biases = net.gru.ws[0], net.gru.bs[0]
    return {
        "embedding.weight": [net.embedding.W],
        "gru.input_weight": weights[:3],
        "gru.hidden_weight": weights[3:],
        "gru.input_bias": biases[:3],
        "gru.hidden_bias": biases[3:],
        "dense.weight": [net.dense.W],
        "dense.bias": [net.dense.b],
    }


def load(net, weights):
    for name, parts in parameters(net).items():
        for parameter, array in zip(parts, weights[name].reshape((len(parts),) + parts[0].shape)):
            parameter.array[...] = array
    return on_device(net)


def predict(net, x):
    return net(x)


def loss(net, x, y):
    return F.softmax_cross_entropy(net(x), y, reduce="mean")


def training_step(net, task):
    optimiser, correct_epsilon = adam(net, task)
    return make_training_step(net, optimiser, loss, correct_epsilon)


def stored(net):
    return {name: joined(net, parts, "array") for name, parts in parameters(net).items()}


def gradients_of(net):
    return {name: joined(net, parts, "grad") for name, parts in parameters(net).items()}


def joined(net, parts, kind):
    return net.xp.concatenate([getattr(parameter, kind) for parameter in parts])


def neutral(name, array):
    return array  # Chainer has the Task's layouts


def activations(net, task):
    return outputs(net, ("embedding", "dense"), inference(net, predict))
