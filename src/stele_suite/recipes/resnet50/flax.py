"""ResNet-50 v1.5 in Flax: modules of nnx, one jitted step, channels last, the optimiser of optax."""

import jax.numpy as jnp
import optax
from flax import nnx

from stele_suite.tasks.resnet50 import blocks
from stele_worker.frameworks.flax.recipe import FlaxRecipe


def convolution(task, inputs, outputs, size, stride, rngs):
    options = {"strides": stride, "padding": size // 2, "use_bias": False, "dtype": task.dtype}
    return nnx.Conv(inputs, outputs, (size, size), rngs=rngs, **options)


def normalisation(task, channels, rngs):
    # Flax updates the running variance by the biased variance, (n - 1) / n of the Task's; n is at least 392 at a
    # batch of 8. Training does not use the running variance, so it computes the same
    options = {"momentum": 1 - task.statistics, "epsilon": task.epsilon, "dtype": task.dtype}
    return nnx.BatchNorm(channels, rngs=rngs, **options)


class Bottleneck(nnx.Module):
    def __init__(self, task, inputs, width, stride, rngs):
        outputs = 4 * width
        self.conv1 = convolution(task, inputs, width, 1, 1, rngs)
        self.bn1 = normalisation(task, width, rngs)
        self.conv2 = convolution(task, width, width, 3, stride, rngs)
        self.bn2 = normalisation(task, width, rngs)
        self.conv3 = convolution(task, width, outputs, 1, 1, rngs)
        self.bn3 = normalisation(task, outputs, rngs)
        self.downsample = nnx.List()
        if inputs != outputs:
            self.downsample.append(convolution(task, inputs, outputs, 1, stride, rngs))
            self.downsample.append(normalisation(task, outputs, rngs))

    def __call__(self, x):
        shortcut = x
        for part in self.downsample:
            shortcut = part(shortcut)
        x = nnx.relu(self.bn1(self.conv1(x)))
        x = nnx.relu(self.bn2(self.conv2(x)))
        return nnx.relu(self.bn3(self.conv3(x)) + shortcut)


class ResNet50(nnx.Module):
    def __init__(self, task, rngs):
        self.conv1 = convolution(task, 3, 64, 7, 2, rngs)
        self.bn1 = normalisation(task, 64, rngs)
        for stage in range(1, 5):
            rows = [row[1:] for row in blocks() if row[0].startswith("layer{}.".format(stage))]
            setattr(self, "layer{}".format(stage), nnx.List([Bottleneck(task, *row, rngs) for row in rows]))
        self.fc = nnx.Linear(task.features, task.classes, dtype=task.dtype, rngs=rngs)

    def features(self, x, record):
        x = nnx.relu(self.bn1(self.conv1(x)))  # (batch, 112, 112, 64)
        x = nnx.max_pool(x, (3, 3), (2, 2), ((1, 1), (1, 1)))  # (batch, 56, 56, 64)
        for stage, layer in enumerate((self.layer1, self.layer2, self.layer3, self.layer4), 1):
            for number, block in enumerate(layer):
                x = record("layer{}.{}".format(stage, number), block(x))
        return x.astype(jnp.float32).mean((1, 2))  # (batch, 2048), from (batch, 7, 7, 2048)

    def __call__(self, x, record):
        return self.fc(self.features(x, record))  # (batch, 1000)


class Recipe(FlaxRecipe):
    LAYOUT = "NHWC"

    def network(self, task):
        return self.build(lambda rngs: ResNet50(task, rngs), task)

    def predict(self, net, task, x):
        return net.features(x, self.record)

    def loss(self, task, output, y):
        return optax.softmax_cross_entropy_with_integer_labels(output, y).mean()

    def optimiser(self, net, task):
        return optax.sgd(task.learning_rate, task.momentum)

    def layout(self, name, array):
        if array.ndim == 4:
            return array.transpose(2, 3, 1, 0)  # (height, width, in, out)
        return array.T if array.ndim == 2 else array
