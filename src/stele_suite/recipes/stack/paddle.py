"""A stack of dense layers in Paddle 3: eager training with recompute of segments, Paddle Inference with oneDNN."""

from paddle.distributed.fleet.utils import recompute
from paddle.nn import Layer, LayerList, Linear
from paddle.nn.functional import mse_loss, relu

from stele_suite.tasks.stack import layer, segments
from stele_worker.frameworks.paddle.recipe import PaddleRecipe, momentum


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

            x = recompute(segment, x, use_reentrant=False) if self.recomputes and self.training else segment(x)
        return x

    def forward(self, x):
        return sum(self.compute(branch, x) for branch in self.branch)


class Recipe(PaddleRecipe):
    def network(self, task):
        return Stack(task)

    def layers(self, task):
        return [layer(branch, number) for branch in range(task.branches) for number in range(task.depth)]

    def loss(self, task, output, y):
        return mse_loss(output, y)

    def optimiser(self, net, task):
        return momentum(net, task)

    def layout(self, name, array):
        return array.T if array.ndim == 2 else array  # dense: (in, out)
