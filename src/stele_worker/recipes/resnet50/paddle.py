"""ResNet-50 v1.5 in Paddle 3: eager training, Paddle Inference with oneDNN, channels first."""

import paddle
from paddle import nn
from paddle.nn.functional import cross_entropy, relu

from stele_worker.frameworks.paddle import make_training_step, outputs
from stele_worker.tasks.resnet50 import blocks

LAYOUT = "NCHW"


def convolution(inputs, outputs, size, stride):
    return nn.Conv2D(inputs, outputs, size, stride=stride, padding=size // 2, bias_attr=False)


def normalisation(task, channels):
    # Paddle always updates the running variance by the biased variance, (n - 1) / n of the Task's; n is at
    # least 392 at a batch of 8. Training does not use the running variance, so it computes the same
    return nn.BatchNorm2D(channels, momentum=1 - task.statistics, epsilon=task.epsilon)


class Bottleneck(nn.Layer):
    def __init__(self, task, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.conv1 = convolution(inputs, width, 1, 1)
        self.bn1 = normalisation(task, width)
        self.conv2 = convolution(width, width, 3, stride)
        self.bn2 = normalisation(task, width)
        self.conv3 = convolution(width, outputs, 1, 1)
        self.bn3 = normalisation(task, outputs)
        self.downsample = None
        if inputs != outputs:
            self.downsample = nn.Sequential(
                convolution(inputs, outputs, 1, stride), normalisation(task, outputs)
            )

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        x = relu(self.bn1(self.conv1(x)))
        x = relu(self.bn2(self.conv2(x)))
        return relu(self.bn3(self.conv3(x)) + shortcut)


class ResNet50(nn.Layer):
    def __init__(self, task):
        super().__init__()
        self.conv1 = convolution(3, 64, 7, 2)
        self.bn1 = normalisation(task, 64)
        self.pool = nn.MaxPool2D(3, stride=2, padding=1)
        for stage in range(1, 5):
            rows = [row[1:] for row in blocks() if row[0].startswith("layer{}.".format(stage))]
            setattr(self, "layer{}".format(stage), nn.Sequential(*[Bottleneck(task, *row) for row in rows]))
        self.fc = nn.Linear(task.features, task.classes)

    def forward(self, x):  # the features, because Paddle saves forward for inference
        x = self.pool(relu(self.bn1(self.conv1(x))))  # (batch, 64, 56, 56), from (batch, 3, 224, 224)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))  # (batch, 2048, 7, 7)
        return x.mean((2, 3))  # (batch, 2048)

    def logits(self, x):
        return self.fc(self(x))  # (batch, 1000)


def network(task):
    return ResNet50(task)


def parameters(net):
    """Return parameters and running statistics by neutral name."""
    return {
        name.replace("._mean", ".running_mean").replace("._variance", ".running_var"): value
        for name, value in net.state_dict().items()
    }


def load(net, weights):
    for name, value in parameters(net).items():
        value.set_value(weights[name].T if name == "fc.weight" else weights[name])  # dense: (in, out)
    return net


def loss(net, task):
    def compute(x, y):
        return cross_entropy(net.logits(x), y)

    return compute


def training_step(net, task):
    optimiser = paddle.optimizer.Momentum(
        task.learning_rate, task.momentum, net.parameters(), use_nesterov=False, weight_decay=None
    )
    return make_training_step(net, optimiser, loss(net, task))


def stored(net):
    return parameters(net)


def neutral(name, array):
    return array.T if name == "fc.weight" else array


def activations(net, task):
    return outputs(net, ["pool"] + [name for name, *_ in blocks()])
