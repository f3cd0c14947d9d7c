"""DenseNet-121 for the fourteen findings of ChestX-ray14: 6,968,206 parameters, 2.8 billion multiply-adds per image.

A convolution of stride 2 and a max pool; four dense blocks of 6, 12, 24 and 16 layers with a transition between each
two; batch normalisation, ReLU, average pool, dense 1024-14. A dense layer normalises its input, convolves it to 128
channels (1x1), normalises again and convolves to 32 channels (3x3), which are appended to its input. ReLU follows each
normalisation. A transition halves the channels (1x1) and averages windows of 2x2. Initial weights and batch
normalisation are those of torchvision: He normal by the inputs, epsilon 1e-5, statistics as in the task ``resnet50``.
Training: 64 images, mean of the binary cross-entropies of all labels, from logits; Adam with epsilon outside the root.
Inference: logits. Images are noise with a wave for each finding that they have; the score is the mean area under the
ROC curve (AUC). The labels of the parity check are random.
Source: Huang et al., 2017; pytorch/vision, models/densenet.py; ilkarman/DeepLearningFrameworks, DenseNet-121.
"""

from collections import OrderedDict
from typing import NamedTuple

import numpy

from stele_suite.tasks import scores
from stele_suite.tasks.initialisers import he_normal, uniform, zeros

FRAMEWORKS = ("torch", "jax", "tensorflow", "keras", "paddle", "mxnet_gluon", "chainer", "numpy")
PARITY_SEED, PARITY_STEPS = 24, 20  # the seed and the optimizer steps of the parity check
UNIT = "images"
# rounding decides a few of the many ReLUs; the first step of Adam is the sign of a gradient, which may be near 0
FACTOR = {5: 1000, 6: 4000, 7: 100}
SMALL = {"growth": 8, "image": 64, "batch": 4}
SCALES = {
    "parity": SMALL,
    "smoke": dict(SMALL, train=16, test=16),
    "gate": {"batch": 4, "train": 192, "test": 128},
    "quick": {"batch": 4, "train": 44, "test": 48},
    "paper": {},
}
BLOCKS = (6, 12, 24, 16)  # layers of the dense blocks
SCORE, score = "AUC", scores.mean_auc
RARE, FREQUENT = 0.02, 0.18  # the share of images with the rarest and with the most frequent finding
STRONGEST = 0.3  # amplitude of a wave; that of the noise is 0.5
FREQUENCIES = tuple((down, right) for down in range(4) for right in range(4))[1:15]  # periods in an image


class Task(NamedTuple):
    name: str = "densenet121"
    data: str = None  # generated from the seed
    batch: int = 64
    epochs: int = 1
    train: int = 5120  # images
    test: int = 5120  # images
    image: int = 224  # pixels
    growth: int = 32  # channels that a dense layer appends
    labels: int = 14
    norm_epsilon: float = 1e-5
    statistics: float = 0.1  # weight of the batch's statistics in an update of the running statistics
    learning_rate: float = 1e-4
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    dropout: tuple = ()
    dtype: str = "float32"  # of the arithmetic; parameters are always float32
    seed: int = 0


def blocks(task):
    """Yield (name, inputs, outputs, layers) of the dense blocks and the transitions, which have 0 layers, in order."""
    inputs = 2 * task.growth
    for number, layers in enumerate(BLOCKS, 1):
        outputs = inputs + layers * task.growth
        yield "block{}".format(number), inputs, outputs, layers
        if number < len(BLOCKS):
            yield "transition{}".format(number), outputs, outputs // 2, 0
        inputs = outputs // 2


def layers(task):
    """Yield (name, inputs) of the dense layers and the transitions, in order."""
    for name, inputs, _, count in blocks(task):
        if count == 0:
            yield name, inputs
        for number in range(count):
            yield "{}.{}".format(name, number), inputs + number * task.growth


def operations(task):
    """Yield (name, shape) of the weights of the 120 convolutions and the 121 batch normalisations, in order."""
    growth, wide = task.growth, 4 * task.growth
    yield "stem.conv", (2 * growth, 3, 7, 7)
    yield "stem.norm", (2 * growth,)
    for name, inputs in layers(task):
        if name.startswith("transition"):
            yield name + ".norm", (inputs,)
            yield name + ".conv", (inputs // 2, inputs, 1, 1)
            continue
        yield name + ".norm1", (inputs,)
        yield name + ".conv1", (wide, inputs, 1, 1)
        yield name + ".norm2", (wide,)
        yield name + ".conv2", (growth, wide, 3, 3)
    yield "norm", (inputs + growth,)


def weights(task):
    """Return float32 arrays: convolutions (out, in, height, width), batch normalisations, dense (out, in).

    Scales are near 1 and running statistics differ from 0 and 1, so that a normalisation that ignores one of them
    gives a different result.
    """
    rng = numpy.random.RandomState(task.seed)
    arrays = OrderedDict()
    for name, shape in operations(task):
        if len(shape) == 4:
            arrays[name + ".weight"] = he_normal(rng, shape, inputs=True)
            continue
        arrays[name + ".weight"] = 1 + uniform(rng, 0.1, shape)
        arrays[name + ".bias"] = uniform(rng, 0.1, shape)
        arrays[name + ".running_mean"] = uniform(rng, 0.1, shape)
        arrays[name + ".running_var"] = 1 + uniform(rng, 0.1, shape)
    arrays["classifier.weight"] = uniform(rng, shape[0] ** -0.5, (task.labels, shape[0]))
    arrays["classifier.bias"] = zeros((task.labels,))
    return arrays


def example(task, samples):
    """Return images float32 (samples, image, image, 3) uniform in [0, 1), labels 0 or 1, float32 (samples, labels)."""
    rng = numpy.random.RandomState(task.seed)
    images = rng.uniform(size=(samples, task.image, task.image, 3)).astype(numpy.float32)
    return images, rng.randint(0, 2, (samples, task.labels)).astype(numpy.float32)


def waves(task):
    """Return what each finding adds to an image, from -1 to 1: float32 (labels, image, image, 1)."""
    place = 2 * numpy.pi * numpy.arange(task.image) / task.image
    angles = (down * place[:, None] + right * place for down, right in FREQUENCIES)
    return numpy.stack([numpy.cos(angle) for angle in angles])[..., None].astype(numpy.float32)


def samples(task, part):
    """Return images float32 (samples, image, image, 3) and labels 0 or 1, float32 (samples, labels), of a part.

    An image is noise uniform in [0, 1), and a wave of random strength for each finding that it has.
    """
    count = getattr(task, part)
    rng = numpy.random.RandomState([task.seed, ("train", "test").index(part)])
    labels = rng.uniform(size=(count, task.labels)) < numpy.linspace(RARE, FREQUENT, task.labels)
    strengths = (STRONGEST * labels * rng.uniform(size=labels.shape)).astype(numpy.float32)
    images, of_findings = numpy.empty((count, task.image, task.image, 3), numpy.float32), waves(task)
    for image, of_image in zip(images, strengths):  # one at a time: numpy draws float64, twice the memory
        image[:] = rng.uniform(size=image.shape)
        image += numpy.tensordot(of_image, of_findings, 1)
    return images, labels.astype(numpy.float32)
