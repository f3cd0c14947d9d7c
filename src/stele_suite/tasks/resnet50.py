"""ResNet-50 v1.5: 2,048 features per image after the average pool; training adds dense 2048-1000.

v1.5 puts the stride of a down-sampling block in its 3x3 convolution, as torchvision and MLPerf do.
4.1 billion multiply-adds forward per image, 25,557,032 parameters. Images are uniform noise, as published.
Batch normalisation: epsilon 1e-5; training normalises by the batch's biased variance and updates the running
statistics by 0.1 (the variance unbiased). Training: mean softmax cross-entropy, SGD with the
learning rate outside the velocity, no weight decay.
Source: He et al., 2015; pytorch/vision, models/resnet.py; ilkarman/DeepLearningFrameworks, ResNet-50 inference.
"""

from collections import OrderedDict
from typing import NamedTuple

import numpy

from stele_suite.tasks.initialisers import he_normal, uniform, zeros

PARITY_SEED, PARITY_STEPS = 0, 1  # the seed and the optimizer steps of the parity check
UNIT = "images"
PRETRAINED = True  # its weights can be read from a file
# long sums; millions of ReLUs in one step, of which rounding decides a few, which changes gradients by some per cent
FACTOR = {2: 10, 3: 10, 4: 10, 5: 1000, 6: 1000}
SCALES = {
    "parity": {"batch": 2},
    "smoke": {"batch": 2, "train": 8, "test": 8},
    # about 50 steps a launch
    "gate": {"batch": 4, "train": 192, "test": 128},
    "quick": {"batch": 4, "train": 44, "test": 48},
    "paper": {},
    "batch-128": {"batch": 128},  # that of Paddle's comparison of dynamic and static graphs
}

# (blocks, width, stride of the first block); a block has 4 * width output channels
STAGES = ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2))


class Task(NamedTuple):
    name: str = "resnet50"
    data: str = None  # generated from the seed
    batch: int = 32
    epochs: int = 1
    train: int = 1280  # images
    test: int = 1280  # images
    image: int = 224  # pixels
    features: int = 2048
    classes: int = 1000
    epsilon: float = 1e-5  # of batch normalisation
    statistics: float = 0.1  # weight of the batch's statistics in an update of the running statistics
    learning_rate: float = 0.01
    momentum: float = 0.9
    dropout: tuple = ()
    dtype: str = "float32"  # of the arithmetic; parameters are always float32
    seed: int = 0


def blocks():
    """Yield (name, inputs, width, stride) of the sixteen bottleneck blocks, in order."""
    inputs = 64
    for stage, (count, width, stride) in enumerate(STAGES, 1):
        for block in range(count):
            yield "layer{}.{}".format(stage, block), inputs, width, stride if block == 0 else 1
            inputs = 4 * width


def convolutions():
    """Yield (name, name of its batch normalisation, shape) of the 53 convolutions, in torchvision's order."""
    yield "conv1", "bn1", (64, 3, 7, 7)
    for name, inputs, width, _ in blocks():
        yield name + ".conv1", name + ".bn1", (width, inputs, 1, 1)
        yield name + ".conv2", name + ".bn2", (width, width, 3, 3)
        yield name + ".conv3", name + ".bn3", (4 * width, width, 1, 1)
        if name.endswith(".0"):
            yield name + ".downsample.0", name + ".downsample.1", (4 * width, inputs, 1, 1)


def weights(task):
    """Return float32 arrays by torchvision's names: convolutions (out, in, height, width), dense (out, in).

    Scales are near 1 and running statistics differ from 0 and 1, so that a normalisation that ignores one of
    them gives a different result. The last scale of a block is small, which keeps sixteen residual sums bounded.
    """
    rng = numpy.random.RandomState(task.seed)
    arrays = OrderedDict()
    for convolution, norm, shape in convolutions():
        arrays[convolution + ".weight"] = he_normal(rng, shape)
        centre = 0.2 if norm.endswith("bn3") else 1.0
        arrays[norm + ".weight"] = centre * (1 + uniform(rng, 0.1, shape[:1]))
        arrays[norm + ".bias"] = uniform(rng, 0.1, shape[:1])
        arrays[norm + ".running_mean"] = uniform(rng, 0.1, shape[:1])
        arrays[norm + ".running_var"] = 1 + uniform(rng, 0.1, shape[:1])
    arrays["fc.weight"] = uniform(rng, task.features**-0.5, (task.classes, task.features))
    arrays["fc.bias"] = zeros((task.classes,))
    return arrays


def example(task, samples):
    """Return images float32 (samples, 224, 224, 3) uniform in [0, 1), labels int32 (samples,)."""
    rng = numpy.random.RandomState(task.seed)
    images = rng.uniform(size=(samples, task.image, task.image, 3)).astype(numpy.float32)
    return images, rng.randint(0, 1000, samples).astype(numpy.int32)
