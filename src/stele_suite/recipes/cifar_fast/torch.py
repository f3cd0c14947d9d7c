"""ResNet-9 in PyTorch: eager, fused optimiser; a view of the batch makes the ghost batches of one fast operation."""

from functools import partial

import torch
from torch import nn
from torch.nn.functional import batch_norm, celu, cross_entropy, max_pool2d, relu
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

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
from stele_worker.frameworks.torch.recipe import TorchRecipe, image_format, make_training_step


class ChannelsFirst(torch.autograd.Function):
    """A copy with channels first for the view of ghost batches, whose gradient has the format of the input again.

    Given a gradient with channels first, the pool would make two copies of its larger one.
    """

    @staticmethod
    def forward(context, x):
        last = x.is_contiguous(memory_format=torch.channels_last)
        context.format = torch.channels_last if last else torch.contiguous_format
        return x.contiguous()

    @staticmethod
    def backward(context, gradient):
        return gradient.contiguous(memory_format=context.format)


class Norm(nn.Module):
    """Batch normalisation of the whole batch, or of its ghost batches, and the activation.

    The activation is in place: no gradient needs its input. It comes before the view, so that all that it reads has
    channels first.
    """

    def __init__(self, task, channels):
        super().__init__()
        alpha = choices(task).alpha
        self.activate = partial(celu, alpha=alpha, inplace=True) if alpha else partial(relu, inplace=True)
        self.task, self.ghost = task, choices(task).ghost
        scale = nn.Parameter(torch.ones(channels)) if choices(task).trains_scale else None
        self.register_parameter("weight", scale)
        # CUDA's batch normalisation has no gradient of a shift without a scale
        self.register_buffer("ones", torch.ones(channels), persistent=False)
        self.bias = nn.Parameter(torch.zeros(channels))
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))

    def forward(self, x):
        running, epsilon, rate = (
            (self.running_mean, self.running_var),
            self.task.epsilon,
            self.task.statistics,
        )
        scale = self.ones if self.weight is None else self.weight
        if not self.training or not self.ghost:
            return self.activate(batch_norm(x, *running, scale, self.bias, self.training, rate, epsilon))
        groups, channels = len(x) // self.ghost, x.shape[1]
        new = [torch.zeros(groups * channels, device=x.device) for _ in running]
        # image i is in group i modulo groups
        folded = ChannelsFirst.apply(x).view(self.ghost, groups * channels, *x.shape[2:])
        folded = batch_norm(folded, *new, scale.repeat(groups), self.bias.repeat(groups), True, 1.0, epsilon)
        for statistic, of_groups in zip(running, new):
            statistic.lerp_(of_groups.view(groups, channels).mean(0), rate)
        return self.activate(folded).view(x.shape)


class Layer(nn.Module):
    """A convolution, its normalisation with the activation, and the pool of some layers."""

    def __init__(self, task, name, inputs, outputs):
        super().__init__()
        self.chosen, self.pooled = choices(task), name in POOLED
        size = 1 if inputs == 27 else 3
        self.conv = nn.Conv2d(inputs, outputs, size, padding=size // 2, bias=False)
        self.norm = Norm(task, outputs)

    def forward(self, x):
        x = self.conv(x)
        if self.pooled and self.chosen.pool_first:
            x = max_pool2d(x, 2)
        x = self.norm(x)
        return max_pool2d(x, 2) if self.pooled and not self.chosen.pool_first else x


class ResNet9(nn.Module):
    def __init__(self, task):
        super().__init__()
        self.factor, self.averages = choices(task).factor, []
        self.whiten = nn.Conv2d(3, 27, 3, padding=1, bias=False) if choices(task).whitens else nn.Identity()
        self.whiten.requires_grad_(False)
        for name, inputs, channels in layers(task):
            parent, _, child = name.rpartition(".")
            self.get_submodule(parent).add_module(child, Layer(task, name, inputs, channels))
        self.linear = nn.Linear(8 * task.width, 10, bias=False)

    def forward(self, x):
        x = self.prep(self.whiten(x))  # (batch, 64, 32, 32)
        for name in ("layer1", "layer2", "layer3"):  # (batch, 128, 16, 16) to (batch, 512, 4, 4)
            layer = self.get_submodule(name)
            x = layer(x)
            if name in RESIDUAL:
                x = x + layer.residual2(layer.residual1(x))
        return self.linear(max_pool2d(x, 4).flatten(1)) * self.factor  # (batch, 10)


class Nesterov(torch.optim.SGD):
    """The learning rate of a step is inside the velocity: so it scales the gradients and the decay."""

    def __init__(self, net, task):
        groups = {}
        for name, value in net.named_parameters():
            if is_trained(name):
                groups.setdefault(rate_and_decay(task, name), []).append(value)
        groups = [{"params": values, "lr": factor, "decay": decay} for (factor, decay), values in groups.items()]
        super().__init__(groups, lr=1.0, momentum=task.momentum, nesterov=True, fused=True)
        self.rates, self.count = learning_rates(task).tolist(), 0

    @torch.no_grad()
    def step(self):
        rate = self.rates[min(self.count, len(self.rates) - 1)]
        self.count += 1
        for group in self.param_groups:
            group["weight_decay"] = group["decay"] * rate
            for value in group["params"]:
                value.grad.mul_(rate)
        super().step()


def make_average(net):
    average = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(AVERAGE_KEEPS), use_buffers=True).eval()
    average.update_parameters(net)  # the first call copies
    return average


class Recipe(TorchRecipe):
    LAYOUT = "NCHW"

    def network(self, task):
        net, form = ResNet9(task), image_format(task)
        if not choices(task).ghost:
            return net.to(memory_format=form)
        for name in POOLED:  # the other convolutions do not gain more than the copies to the ghost batches cost
            net.get_submodule(name).conv.to(memory_format=form)
        return net

    def forward(self, net, task, x):
        if not net.training or not choices(task).ghost:
            x = x.contiguous(memory_format=image_format(task))
        return super().forward(net, task, x)

    def predict(self, net, task, x):
        """Return logits: those of the moving average, and the mean with those of the mirror image."""
        net = net.averages[0] if net.averages else net
        x = x.contiguous(memory_format=image_format(task))
        logits = self.forward(net, task, x)
        if choices(task).flips:
            logits = (logits + self.forward(net, task, x.flip(3))) / 2
        return logits

    def layers(self, task):
        return [name for name, *_ in layers(task)]

    def loss(self, task, output, y):
        return cross_entropy(output, y, label_smoothing=choices(task).smoothing)

    def optimiser(self, net, task):
        return Nesterov(net, task)

    def training_step(self, net, task):
        optimiser = self.optimiser(net, task)
        update = make_training_step(net, optimiser, self.loss_function(net, task))
        net.averages = [make_average(net)] if choices(task).average else []

        def step(*arrays):
            value = update(*arrays)
            if optimiser.count % AVERAGE_EVERY == 1:
                for average in net.averages:
                    average.update_parameters(net)
            return value

        def state():
            tensors = {name: value for average in net.averages for name, value in average.state_dict().items()}
            averages = {"average." + name: value.cpu().numpy() for name, value in tensors.items()}
            return dict(update.state(), **averages)

        def restore(saved):
            update.restore(saved)
            tensors = {name: torch.from_numpy(array) for name, array in saved.items()}
            for average in net.averages:
                average.load_state_dict({name: tensors["average." + name] for name in average.state_dict()})

        step.state, step.restore = state, restore
        return step
