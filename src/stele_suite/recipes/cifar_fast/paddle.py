"""ResNet-9 in Paddle 3: eager; a view of the batch makes the ghost batches of one fast operation; channels first."""

import paddle
from paddle import nn
from paddle.nn.functional import batch_norm, cross_entropy, elu, max_pool2d, relu

from stele_suite.tasks.cifar_fast import (
    AVERAGE_EVERY,
    AVERAGE_KEEPS,
    POOLED,
    RESIDUAL,
    choices,
    is_trained,
    layers,
    learning_rates,
    rate_and_decay,
)
from stele_worker.frameworks.paddle.recipe import PaddleRecipe


class Norm(nn.Layer):
    """Batch normalisation of the whole batch, or of its ghost batches."""

    def __init__(self, task, channels):
        super().__init__()
        self.task, self.chosen = task, choices(task)
        if self.chosen.trains_scale:
            self.weight = self.create_parameter([channels], default_initializer=nn.initializer.Constant(1.0))
        else:  # no parameter, but with a gradient: without one, that of the bias crashes
            self.weight = paddle.ones([channels])
            self.weight.stop_gradient = False
        self.bias = self.create_parameter([channels], is_bias=True)
        self.register_buffer("running_mean", paddle.zeros([channels]))
        self.register_buffer("running_var", paddle.ones([channels]))

    def forward(self, x):
        running, epsilon = (self.running_mean, self.running_var), self.task.epsilon
        if not self.training:
            return batch_norm(x, *running, self.weight, self.bias, False, epsilon=epsilon)
        channels, ghost = x.shape[1], self.chosen.ghost or x.shape[0]
        groups = x.shape[0] // ghost
        new = paddle.zeros([groups * channels]), paddle.zeros([groups * channels])
        scale, shift = self.weight.tile([groups]), self.bias.tile([groups])
        folded = x.reshape([ghost, groups * channels, *x.shape[2:]])  # image i is in group i modulo groups
        folded = batch_norm(folded, *new, scale, shift, True, momentum=0.0, epsilon=epsilon)
        count = ghost * x.shape[2] * x.shape[3]  # Paddle gives the biased variance
        for value, of_groups, factor in zip(running, new, (1.0, count / (count - 1))):
            of_batch = factor * of_groups.reshape([groups, channels]).mean(0)
            paddle.assign(value + self.task.statistics * (of_batch - value), value)
        return folded.reshape(x.shape)


def celu(x, alpha):
    """Paddle's own celu has no finite gradient where exp(x / alpha) overflows; that of elu is finite."""
    return alpha * elu(x / alpha)


class Layer(nn.Layer):
    """A convolution, its normalisation, the activation, and the pool of some layers."""

    def __init__(self, task, name, inputs, outputs):
        super().__init__()
        self.chosen, self.pooled = choices(task), name in POOLED
        size = 1 if inputs == 27 else 3
        self.conv = nn.Conv2D(inputs, outputs, size, padding=size // 2, bias_attr=False)
        self.norm = Norm(task, outputs)

    def forward(self, x):
        x, alpha = self.conv(x), self.chosen.alpha
        if self.pooled and self.chosen.pool_first:
            x = max_pool2d(x, 2, stride=2)
        x = celu(self.norm(x), alpha) if alpha else relu(self.norm(x))
        return max_pool2d(x, 2, stride=2) if self.pooled and not self.chosen.pool_first else x


class ResNet9(nn.Layer):
    def __init__(self, task):
        super().__init__()
        self.factor, self.whiten, self.average = choices(task).factor, None, None
        if choices(task).whitens:
            self.whiten = nn.Conv2D(3, 27, 3, padding=1, bias_attr=False)
            self.whiten.weight.stop_gradient = True
        for name, inputs, channels in layers(task):
            parent, _, child = name.rpartition(".")
            layer = Layer(task, name, inputs, channels)
            (getattr(self, parent) if parent else self).add_sublayer(child, layer)
        self.linear = nn.Linear(8 * task.width, 10, bias_attr=False)

    def forward(self, x):
        x = self.prep(x if self.whiten is None else self.whiten(x))  # (batch, 64, 32, 32)
        for name in ("layer1", "layer2", "layer3"):  # (batch, 128, 16, 16) to (batch, 512, 4, 4)
            layer = getattr(self, name)
            x = layer(x)
            if name in RESIDUAL:
                x = x + layer.residual2(layer.residual1(x))
        return self.linear(max_pool2d(x, 4, stride=4).flatten(1)) * self.factor  # (batch, 10)


class Nesterov:
    """Nesterov's momentum with the learning rate of a step inside the velocity; Paddle has it outside.

    It also updates the moving average of the network.
    """

    def __init__(self, net, values, task):
        self.net, self.values, self.momentum = net, values, task.momentum
        self.factors = {name: rate_and_decay(task, name) for name in values}
        self.velocity = {name: paddle.zeros_like(value) for name, value in values.items()}
        self.rates, self.count = learning_rates(task).tolist(), 0

    @paddle.no_grad()
    def step(self):
        rate = self.rates[min(self.count, len(self.rates) - 1)]
        for name, value in self.values.items():
            factor, decay = self.factors[name]
            change = (value.grad + decay * value) * (-factor * rate)
            self.velocity[name] = self.momentum * self.velocity[name] + change
            value.add_(self.momentum * self.velocity[name] + change)
        self.count += 1
        if self.net.average is not None and self.count % AVERAGE_EVERY == 1:
            self.update_average(self.net.average.state_dict(), self.net.state_dict())

    def update_average(self, average, values):
        for name, value in average.items():
            paddle.assign(AVERAGE_KEEPS * value + (1 - AVERAGE_KEEPS) * values[name], value)

    def clear_grad(self):
        for value in self.values.values():
            value.clear_gradient(set_to_zero=False)

    def state_dict(self):
        velocity = {value.name + "_velocity": self.velocity[name] for name, value in self.values.items()}
        return dict(velocity, count=paddle.to_tensor(self.count))

    def set_state_dict(self, state):
        for name, value in self.values.items():
            self.velocity[name] = paddle.to_tensor(state[value.name + "_velocity"])
        self.count = int(state["count"])


class Recipe(PaddleRecipe):
    LAYOUT = "NCHW"

    def network(self, task):
        return ResNet9(task)

    def predict(self, net, task, x):
        """Return logits: those of the moving average, and the mean with those of the mirror image."""
        net = net if net.average is None else net.average
        return (net(x.flip([3])) + net(x)) / 2 if choices(task).flips else net(x)

    def layers(self, task):
        return [name for name, *_ in layers(task)]

    def loss(self, task, output, y):
        even = paddle.logsumexp(output, -1).mean() - output.mean()  # cross_entropy would make one-hot labels
        smoothing = choices(task).smoothing
        return (1 - smoothing) * cross_entropy(output, y) + smoothing * even

    def optimiser(self, net, task):
        return Nesterov(net, {name: value for name, value in self.stored(net).items() if is_trained(name)}, task)

    def layout(self, name, array):
        return array.T if array.ndim == 2 else array  # dense: (in, out)

    def is_of_task(self, name):
        return not name.startswith("average.")

    def training_step(self, net, task):
        if choices(task).average:
            net.average = ResNet9(task)
            net.average.set_state_dict(self.stored(net))
            for value in net.average.parameters():
                value.stop_gradient = True
        return super().training_step(net, task)
