"""ResNet-9 in Paddle 3: eager; a view of the batch makes the ghost batches of one fast operation; channels first."""

import numpy
import paddle
from paddle import nn
from paddle.nn.functional import batch_norm, cross_entropy, elu, max_pool2d, relu

from stele_worker.frameworks import paddle as support
from stele_worker.frameworks.paddle import compiled, outputs
from stele_worker.tasks.cifar_fast import (
    AVERAGE_EVERY,
    AVERAGE_KEEPS,
    POOLED,
    RESIDUAL,
    choices,
    layers,
    learning_rates,
    rate_and_decay,
)

LAYOUT = "NCHW"


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
        self.chosen, self.whiten, self.averages = choices(task), None, []
        if self.chosen.whitens:
            self.whiten = nn.Conv2D(3, 27, 3, padding=1, bias_attr=False)
            self.whiten.weight.stop_gradient = True
        for name, inputs, channels in layers(task):
            parent, _, child = name.rpartition(".")
            layer = Layer(task, name, inputs, channels)
            (getattr(self, parent) if parent else self).add_sublayer(child, layer)
        self.linear = nn.Linear(8 * task.width, 10, bias_attr=False)

    def forward(self, x):
        if self.training or not self.chosen.flips:
            return self.logits(x)
        return (self.logits(x.flip([3])) + self.logits(x)) / 2  # activations records the last call of a layer

    def logits(self, x):
        x = self.prep(x if self.whiten is None else self.whiten(x))  # (batch, 64, 32, 32)
        for name in ("layer1", "layer2", "layer3"):  # (batch, 128, 16, 16) to (batch, 512, 4, 4)
            layer = getattr(self, name)
            x = layer(x)
            if name in RESIDUAL:
                x = x + layer.residual2(layer.residual1(x))
        return self.linear(max_pool2d(x, 4, stride=4).flatten(1)) * self.chosen.factor  # (batch, 10)


def network(task):
    return ResNet9(task)


def load(net, weights):
    for name, value in net.state_dict().items():
        value.set_value(neutral(name, weights[name]))  # dense: (in, out)
    return net


def loss(net, task):
    smoothing = choices(task).smoothing

    def compute(x, y):
        logits = net(x)
        even = paddle.logsumexp(logits, -1).mean() - logits.mean()  # cross_entropy would make one-hot labels
        return (1 - smoothing) * cross_entropy(logits, y) + smoothing * even

    return compute


@paddle.no_grad()
def nesterov(values, velocity, rate, task):
    """Move parameters by Nesterov's momentum, with the learning rate inside the velocity. Paddle has it outside."""
    for name, value in values.items():
        factor, decay = rate_and_decay(task, name)
        change = (value.grad + decay * value) * (-factor * rate)
        velocity[name] = task.momentum * velocity[name] + change if name in velocity else change
        value.add_(task.momentum * velocity[name] + change)


@paddle.no_grad()
def update_average(average, net):
    for old, new in zip(average.state_dict().values(), net.state_dict().values()):
        paddle.assign(AVERAGE_KEEPS * old + (1 - AVERAGE_KEEPS) * new, old)


def training_step(net, task):
    compute, rates, velocity, steps = compiled(loss(net, task)), learning_rates(task).tolist(), {}, 0
    values = {name: value for name, value in net.state_dict().items() if not value.stop_gradient}
    if choices(task).average:
        net.averages = [network(task)]
        net.averages[0].set_state_dict(net.state_dict())
    net.train()

    def step(x, y):
        nonlocal steps
        value = compute(x, y)
        value.backward()
        nesterov(values, velocity, rates[min(steps, len(rates) - 1)], task)
        net.clear_gradients(set_to_zero=False)
        steps += 1
        if steps % AVERAGE_EVERY == 1:
            for average in net.averages:
                update_average(average, net)
        return value.detach()

    def state():
        arrays = dict(support.network_state(net), **support.to_arrays(velocity, "velocity."))
        for average in net.averages:
            arrays.update(support.to_arrays(average.state_dict(), "average."))
        return dict(arrays, steps=numpy.array(steps))

    def restore(saved):
        nonlocal steps
        support.restore_network(net, saved)
        velocity.update(
            (name, paddle.to_tensor(array)) for name, array in support.part(saved, "velocity.").items()
        )
        for average in net.averages:
            average.set_state_dict(support.part(saved, "average."))
        steps = int(saved["steps"])

    step.state, step.restore = state, restore
    return step


def evaluated(net):
    return net.averages[0] if net.averages else net


def inference_step(net, task):
    return support.inference_step(None, evaluated(net), task)


def evaluation_step(net, task):
    return support.evaluation_step(None, evaluated(net), task)


def stored(net):
    return net.state_dict()


def neutral(name, array):
    return array.T if array.ndim == 2 else array


def activations(net, task):
    return outputs(net, [name for name, *_ in layers(task)])
