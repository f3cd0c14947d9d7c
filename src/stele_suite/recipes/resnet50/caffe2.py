"""ResNet-50 v1.5 in Caffe2: one net per step, channels first, on oneDNN's operators."""

from caffe2.python import brew

from stele_suite.tasks.resnet50 import blocks
from stele_worker.frameworks.caffe2.recipe import Caffe2Recipe, cross_entropy, sgd


def convolution(model, x, name, inputs, outputs, size, stride):
    window = {"kernel": size, "stride": stride, "pad": size // 2}
    is_first = int(x == "x")
    return brew.conv(model, x, name, inputs, outputs, no_bias=True, no_gradient_to_input=is_first, **window)


def normalisation(model, task, x, name, channels):
    # in training oneDNN updates the running variance by the biased variance, the Task by the unbiased
    momentum = 1 - task.statistics  # weight of the old running statistics in an update
    return brew.spatial_bn(model, x, name, channels, epsilon=task.epsilon, momentum=momentum)


def bottleneck(model, task, x, name, inputs, width, stride):
    outputs, shortcut = 4 * width, x
    if inputs != outputs:
        shortcut = convolution(model, x, name + ".downsample.0", inputs, outputs, 1, stride)
        shortcut = normalisation(model, task, shortcut, name + ".downsample.1", outputs)
    x = convolution(model, x, name + ".conv1", inputs, width, 1, 1)
    x = normalisation(model, task, x, name + ".bn1", width)
    x = brew.relu(model, x, x)
    x = convolution(model, x, name + ".conv2", width, width, 3, stride)
    x = normalisation(model, task, x, name + ".bn2", width)
    x = brew.relu(model, x, x)
    x = convolution(model, x, name + ".conv3", width, outputs, 1, 1)
    x = normalisation(model, task, x, name + ".bn3", outputs)
    x = brew.sum(model, [x, shortcut], x)
    return brew.relu(model, x, x)


class Recipe(Caffe2Recipe):
    LAYOUT = "NCHW"

    def features(self, model, task, x):
        x = convolution(model, x, "conv1", 3, 64, 7, 2)  # (batch, 64, 112, 112)
        x = normalisation(model, task, x, "bn1", 64)
        x = brew.relu(model, x, x)
        x = brew.max_pool(model, x, "pool1", kernel=3, stride=2, pad=1)  # (batch, 64, 56, 56)
        for name, inputs, width, stride in blocks():
            x = bottleneck(model, task, x, name, inputs, width, stride)
        x = brew.average_pool(model, x, "average", kernel=7, stride=1, pad=0)  # from (batch, 2048, 7, 7)
        return model.net.Flatten(x, "features", axis=1)  # (batch, 2048)

    def forward(self, model, task, x):
        return brew.fc(model, self.features(model, task, x), "fc", task.features, task.classes)  # (batch, 1000)

    def predict(self, model, task, x):
        return self.features(model, task, x)

    def loss(self, task, output, y):
        return cross_entropy(output, y)

    def optimiser(self, model, task):
        return sgd(model, task)
