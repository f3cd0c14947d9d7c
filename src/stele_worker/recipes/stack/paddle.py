"""A stack of dense layers in Paddle 3: eager training with recompute of segments, Paddle Inference with oneDNN."""

from paddle import optimizer
from paddle.distributed.fleet.utils import recompute
from paddle.nn import Layer, LayerList, Linear
from paddle.nn.functional import mse_loss, relu

from stele_worker.frameworks.paddle import make_training_step, outputs
from stele_worker.tasks.stack import layer, segments

LAYOUT = None


class Dense(Linear):
    def forward(self, x):
        return relu(super().forward(x))  # (batch, width)


class Stack(Layer):
    def __init__(self, task):
        super().__init__()
        self.segments, self.recomputes = segments(task), task.segment is not None
        stacks = [[Dense(task.width, task.width) for _ in range(task.depth)] for _ in range(task.branches)]
        self.branch = LayerList(map(LayerList, stacks))

    def compute(self, branch, x):
        for numbers in self.segments:

            def segment(x, numbers=tuple(numbers)):
                for number in numbers:
                    x = branch[number](x)
                return x

            x = (
                recompute(segment, x, use_reentrant=False)
                if self.recomputes and self.training
                else segment(x)
            )
        return x

    def forward(self, x):
        return sum(self.compute(branch, x) for branch in self.branch)


def network(task):
    return Stack(task)


def load(net, weights):
    for name, parameter in net.named_parameters():
        parameter.set_value(weights[name].T)
    return net


def loss(net, task):
    def compute(x, y):
        return mse_loss(net(x), y)

    return compute


def training_step(net, task):
    optimiser = optimizer.Momentum(
        task.learning_rate, task.momentum, net.parameters(), use_nesterov=False, weight_decay=None
    )
    return make_training_step(net, optimiser, loss(net, task))


def stored(net):
    return dict(net.named_parameters())


def neutral(name, array):
    return array.T


def activations(net, task):
    return outputs(
        net, [layer(branch, number) for branch in range(task.branches) for number in range(task.depth)]
    )
