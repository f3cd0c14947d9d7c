"""GRU on IMDB in PyTorch: eager nn.GRU, fused optimiser."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from stele_worker.frameworks.torch import autocast, make_training_step, on_device, outputs

LAYOUT = None


class Classifier(nn.Module):
    def __init__(self, task):
        super().__init__()
        self.embedding = nn.Embedding(task.vocabulary, task.embedding)
        self.gru = nn.GRU(task.embedding, task.hidden, batch_first=True)
        self.dense = nn.Linear(task.hidden, 2)

    def forward(self, x):
        x = self.embedding(x)  # (batch, 150, 125)
        x, _ = self.gru(x)  # (batch, 150, 100)
        return self.dense(x[:, -1])  # (batch, 2)


def network(task):
    return Classifier(task)


NAMES = {
    "gru.input_weight": "gru.weight_ih_l0",
    "gru.hidden_weight": "gru.weight_hh_l0",
    "gru.input_bias": "gru.bias_ih_l0",
    "gru.hidden_bias": "gru.bias_hh_l0",
}


def load(net, weights):
    net.load_state_dict({NAMES.get(name, name): torch.from_numpy(array) for name, array in weights.items()})
    return on_device(net)


def predict(net, task, x):
    with autocast(task):
        return net(x).float()


def loss(net, task):
    return lambda x, y: cross_entropy(predict(net, task, x), y)


def training_step(net, task):
    optimiser = torch.optim.Adam(
        net.parameters(), lr=task.learning_rate, betas=(task.beta1, task.beta2), eps=task.epsilon, fused=True
    )
    return make_training_step(net, optimiser, loss(net, task))


def stored(net):
    task_names = {torch_name: task_name for task_name, torch_name in NAMES.items()}
    return {task_names.get(name, name): weight for name, weight in net.named_parameters()}


def neutral(name, array):
    return array  # PyTorch has the Task's layouts


def activations(net, task):
    return outputs(net, ("embedding", "dense"), lambda x: predict(net, task, x))
