"""DenseNet-121 in MXNet's Gluon: NCHW."""

from mxnet import gluon
from mxnet.gluon import nn

from stele_suite.tasks.densenet121 import blocks
from stele_worker.frameworks.mxnet_gluon.recipe import Adam, GluonRecipe, relu


def convolution(name, inputs, outputs, size, stride=1):
    return nn.Conv2D(outputs, size, strides=stride, padding=size // 2, in_channels=inputs, use_bias=False, prefix=name)


def normalisation(task, name, channels):
    # MXNet always updates the running variance by the biased variance, (n - 1) / n of the Task's. Training does not use
    # it, so it computes the same
    return nn.BatchNorm(momentum=1 - task.statistics, epsilon=task.norm_epsilon, in_channels=channels, prefix=name)


class Layer(nn.HybridBlock):
    """Append the channels of a dense layer to its input."""

    def __init__(self, task, name, inputs):
        super().__init__(prefix=name)
        self.blocked = task.growth % 16 == 0
        with self.name_scope():
            self.norm1 = normalisation(task, "norm1.", inputs)
            self.conv1 = convolution("conv1.", inputs, 4 * task.growth, 1)
            self.norm2 = normalisation(task, "norm2.", 4 * task.growth)
            self.conv2 = convolution("conv2.", 4 * task.growth, task.growth, 3)

    def hybrid_forward(self, F, x):
        y = self.conv1(relu(F, self.norm1(x)))
        return self.append(F, x, self.conv2(relu(F, self.norm2(y))))

    def append(self, F, x, y):
        if self.blocked:
            return F.concat(x, y, dim=1)
        # oneDNN cannot divide the gradient into parts whose channels are no multiple of 16, but MXNet itself can
        flat = F.concat(*[F.reshape(part, shape=(0, 0, -1)) for part in (x, y)], dim=1)
        return F.reshape_like(flat, x, lhs_begin=2, lhs_end=3, rhs_begin=2, rhs_end=4)


class Transition(nn.HybridBlock):
    def __init__(self, task, name, inputs, outputs):
        super().__init__(prefix=name)
        with self.name_scope():
            self.norm = normalisation(task, "norm.", inputs)
            self.conv = convolution("conv.", inputs, outputs, 1)
            self.pool = nn.AvgPool2D(pool_size=2, strides=2, padding=0, ceil_mode=False)

    def hybrid_forward(self, F, x):
        return self.pool(self.conv(relu(F, self.norm(x))))


def parts(task):
    """Yield the blocks of the network up to the last normalisation."""
    yield convolution("stem.conv.", 3, 2 * task.growth, 7, 2)
    yield normalisation(task, "stem.norm.", 2 * task.growth)
    yield nn.Activation("relu")  # (batch, 64, 112, 112)
    yield nn.MaxPool2D(pool_size=3, strides=2, padding=1, ceil_mode=False)  # (batch, 64, 56, 56)
    for name, inputs, outputs, layers in blocks(task):
        for number in range(layers):
            yield Layer(task, "{}.{}.".format(name, number), inputs + number * task.growth)
        if layers == 0:
            yield Transition(task, name + ".", inputs, outputs)
    yield normalisation(task, "norm.", outputs)  # (batch, 1024, 7, 7)


class DenseNet121(nn.HybridBlock):
    def __init__(self, task):
        super().__init__(prefix="")  # with the prefixes above, parameters have nearly the Task's names
        with self.name_scope():
            self.features = nn.HybridSequential(prefix="")
            self.features.add(*parts(task), nn.Activation("relu"), nn.GlobalAvgPool2D(), nn.Flatten())
            *_, (_, _, channels, _) = blocks(task)
            self.classifier = nn.Dense(task.labels, in_units=channels, flatten=False, prefix="classifier.")

    def hybrid_forward(self, F, x):  # (batch, 3, 224, 224)
        return self.classifier(self.features(x))  # (batch, 14)


class Recipe(GluonRecipe):
    LAYOUT = "NCHW"

    def network(self, task):
        return DenseNet121(task)

    def losses(self):
        return gluon.loss.SigmoidBinaryCrossEntropyLoss()

    def optimiser(self, net, task):
        return Adam(net, task)
