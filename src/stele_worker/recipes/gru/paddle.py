"""GRU on IMDB in Paddle 3: eager nn.GRU in training, Paddle Inference with oneDNN."""

import paddle
from paddle import nn
from paddle.nn.functional import cross_entropy

from stele_worker.frameworks.paddle import make_training_step, outputs

LAYOUT = None


class Classifier(nn.Layer):
    def __init__(self, task):
        super().__init__()
        self.embedding = nn.Embedding(task.vocabulary, task.embedding, padding_idx=None, sparse=False)
        self.gru = nn.GRU(task.embedding, task.hidden, time_major=False)
        self.dense = nn.Linear(task.hidden, 2)

    def forward(self, x):
        x = self.embedding(x)  # (batch, 150, 125)
        x, _ = self.gru(x)  # (batch, 150, 100)
        return self.dense(x[:, -1])  # (batch, 2)


def network(task):
    return Classifier(task)


NAMES = {
    "gru.weight_ih_l0": "gru.input_weight",
    "gru.weight_hh_l0": "gru.hidden_weight",
    "gru.bias_ih_l0": "gru.input_bias",
    "gru.bias_hh_l0": "gru.hidden_bias",
}


def parameters(net):
    return {NAMES.get(name, name): weight for name, weight in net.named_parameters()}


def load(net, weights):
    for name, parameter in parameters(net).items():
        parameter.set_value(weights[name].T if name == "dense.weight" else weights[name])  # dense: (in, out)
    return net


def loss(net, task):
    def compute(x, y):
        return cross_entropy(net(x), y)

    return compute


def training_step(net, task):
    optimiser = paddle.optimizer.Adam(
        task.learning_rate,
        beta1=task.beta1,
        beta2=task.beta2,
        epsilon=task.epsilon,
        parameters=net.parameters(),
        weight_decay=None,
        lazy_mode=False,  # update every row of the embedding, as the Task's Adam does
    )
    return make_training_step(net, optimiser, loss(net, task))


def stored(net):
    return parameters(net)


def neutral(name, array):
    return array.T if name == "dense.weight" else array


def activations(net, task):
    return outputs(net, ("embedding", "dense"))
