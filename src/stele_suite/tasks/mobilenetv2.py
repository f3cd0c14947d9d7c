"""MobileNetV2 for 1,000 classes: 3,504,872 parameters, 301 million multiply-adds forward per image.

A convolution of stride 2, seventeen inverted residual blocks and a convolution to 1,280 channels; average pool,
dropout 0.2, dense 1280-1000. A block expands its channels by a 1x1 convolution, convolves each channel by itself
(3x3), and projects by a 1x1 convolution without an activation; ReLU6 follows the first two. A block of stride 1 with
as many outputs as inputs adds its input. Images are uniform noise. Batch normalisation as in the task ``resnet50``.
Training: 256 images, mean softmax cross-entropy, SGD with the learning rate outside the velocity, no weight decay.
Inference: logits.
Source: Sandler et al., 2018, table 2; PaddlePaddle's comparison of dynamic and static graphs.
"""

from collections import OrderedDict
from typing import NamedTuple

import numpy

from stele_suite.tasks.initialisers import he_normal, uniform, zeros

FRAMEWORKS = ("torch", "jax", "tensorflow", "keras", "paddle", "paddle1", "numpy")
PARITY_SEED, PARITY_STEPS = 0, 1  # the seed and the optimizer steps of the parity check
UNIT = "images"
# long sums; millions of ReLUs, of which rounding decides a few, which changes gradients by some per cent
FACTOR = {2: 10, 3: 10, 4: 10, 5: 1000, 6: 1000}
SCALES = {
    "parity": {"batch": 2, "image": 96},
    "smoke": {"batch": 2, "image": 96, "train": 8, "test": 8},
    "gate": {"batch": 4, "train": 192, "test": 128},
    "quick": {"batch": 4, "train": 44, "test": 48},
    "paper": {},
}
# (expansion, channels, blocks, stride of the first block)
STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
STEM, HEAD = 32, 1280  # channels of the first and of the last convolution


class Task(NamedTuple):
    name: str = "mobilenetv2"
    data: str = None  # generated from the seed
    batch: int = 256
    epochs: int = 1
    train: int = 5120  # images
    test: int = 5120  # images
    image: int = 224  # pixels
    classes: int = 1000
    epsilon: float = 1e-5  # of batch normalisation
    statistics: float = 0.1  # weight of the batch's statistics in an update of the running statistics
    learning_rate: float = 0.01
    momentum: float = 0.9
    dropout: tuple = (0.2,)
    dtype: str = "float32"  # of the arithmetic; parameters are always float32
    seed: int = 0


def blocks():
    """Yield (name, inputs, width, outputs, stride) of the seventeen blocks, in order; ``width`` is that in between."""
    inputs, number = STEM, 0
    for expansion, outputs, count, first_stride in STAGES:
        for stride in [first_stride] + [1] * (count - 1):
            yield "block{}".format(number), inputs, inputs * expansion, outputs, stride
            inputs, number = outputs, number + 1


def convolutions():
    """Yield (name, shape of the weight) of the 52 convolutions, in order. Each has a batch normalisation."""
    yield "stem", (STEM, 3, 3, 3)
    for name, inputs, width, outputs, _ in blocks():
        if width != inputs:
            yield name + ".expand", (width, inputs, 1, 1)
        yield name + ".depthwise", (width, 1, 3, 3)
        yield name + ".project", (outputs, width, 1, 1)
    yield "head", (HEAD, STAGES[-1][1], 1, 1)


def weights(task):
    """Return float32 arrays: convolutions <name>.conv (out, in, height, width), their <name>.norm, dense (out, in).

    Scales are near 1 and running statistics differ from 0 and 1, so that a normalisation that ignores one of them
    gives a different result.
    """
    rng = numpy.random.RandomState(task.seed)
    arrays = OrderedDict()
    for name, shape in convolutions():
        arrays[name + ".conv.weight"] = he_normal(rng, shape, groups=shape[0] if "depthwise" in name else 1)
        arrays[name + ".norm.weight"] = 1 + uniform(rng, 0.1, shape[:1])
        arrays[name + ".norm.bias"] = uniform(rng, 0.1, shape[:1])
        arrays[name + ".norm.running_mean"] = uniform(rng, 0.1, shape[:1])
        arrays[name + ".norm.running_var"] = 1 + uniform(rng, 0.1, shape[:1])
    arrays["classifier.weight"] = uniform(rng, HEAD**-0.5, (task.classes, HEAD))
    arrays["classifier.bias"] = zeros((task.classes,))
    return arrays


def example(task, samples):
    """Return images float32 (samples, image, image, 3) uniform in [0, 1), labels int32 (samples,)."""
    rng = numpy.random.RandomState(task.seed)
    images = rng.uniform(size=(samples, task.image, task.image, 3)).astype(numpy.float32)
    return images, rng.randint(0, task.classes, samples).astype(numpy.int32)
