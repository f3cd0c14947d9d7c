"""ResNet-9 on CIFAR-10, trained to 94 %: 6,573,120 parameters, 379 million multiply-adds forward per image.

prep 3-64; layer1 64-128, pool, and a residual of two; layer2 128-256, pool; layer3 256-512, pool, and a residual of
two. Each is a 3x3 convolution without a bias, a batch normalisation and a ReLU. Max pool 4, dense 512-10 without a
bias, times 1/8. Softmax cross-entropy; Nesterov momentum with the learning rate inside the velocity:
g = g + decay * w; v = momentum * v - rate * g; w = w + momentum * v - rate * g. Each image is cropped at random from
itself with 4 reflected pixels around it, flipped at random, and a square of 8 x 8 is cut out.

A trick changes one thing, as in ``Choices``; ``tricks`` lists those that are on. All random choices and the whitening
filters are made in NumPy, so that every framework sees the same bytes; in the open division, the framework makes the
random choices.
Source: Page, "How to train your ResNet", 2018 and 2019, github.com/davidcpage/cifar10-fast.
"""

from collections import OrderedDict
from typing import NamedTuple, Optional

import numpy

from stele_suite.tasks import augmentation
from stele_suite.tasks.cifar10 import OPEN, example  # noqa: F401
from stele_suite.tasks.initialisers import uniform, zeros
from stele_suite.tasks.whitening import whitening_filters

FRAMEWORKS = ("torch", "jax", "tensorflow", "keras", "paddle", "numpy")
# the seed and the optimizer steps of the parity check. Of the seeds 3 to 43, this one keeps most distance between the
# values of each pooling window: weights that differ by 1e-6 give losses that differ by less than 1e-4
PARITY_SEED, PARITY_STEPS = 15, 20
UNIT = "images"
FACTOR = {7: 10}  # in twenty steps, rounding decides a few of many pooling windows, which changes gradients
MEAN, DEVIATION = (125.31, 122.95, 113.87), (62.99, 62.09, 66.70)  # of the training images, by channel
MARGIN = 4  # reflected pixels on each side, from which a crop is taken
DEVICE = "device-augmentation"  # augment on the device; without it NumPy does, on the host
# the tricks in the order of the article, and the epochs that reach 94.1 % with each. The article adds "ema" and
# "schedule" in one step
EPOCHS = OrderedDict(
    (
        ("baseline", 24),
        (DEVICE, 24),
        ("pool-first", 25),
        ("label-smoothing", 23),
        ("celu", 20),
        ("ghost-norm", 18),
        ("frozen-scale", 17),
        ("whitening", 14),
        ("ema", 14),
        ("schedule", 13),
        ("flip", 10),
    )
)
ALL = tuple(EPOCHS)[1:]
SCALES = {
    # small learning rates: at those of the article, rounding decides which pixel is the largest of a pool
    "parity": {"width": 4, "batch": 16, "ghost": 8, "train": 64, "epochs": 5, "rate": 0.03},
    "smoke": {"width": 4, "batch": 64, "train": 512, "test": 320, "test_batch": 64, "epochs": 1},
    "gate": {"width": 16, "batch": 128, "train": 6144, "test": 2048, "test_batch": 128, "epochs": 1},
    "quick": {"width": 16, "batch": 128, "train": 12800, "test": 5120, "test_batch": 128, "epochs": 2},
    "cpu": {"width": 8, "batch": 128, "train": 12800, "test": 5000, "epochs": 4},
    "cpu-full": {},
    "gpu": {},
    "paper": {},
}
TARGETS = {"smoke": 0.05, "cpu": 0.6, "cpu-full": 0.94, "gpu": 0.94}
# fewer than with all the data, because the network is small and the target is lower
CPU_EPOCHS = OrderedDict(zip(EPOCHS, (10, 10, 10, 9, 8, 7, 6, 5, 5, 4, 4)))
TRICKS = {"smoke": OrderedDict.fromkeys(EPOCHS, 1), "cpu": CPU_EPOCHS, "cpu-full": EPOCHS, "gpu": EPOCHS}


class Task(NamedTuple):
    name: str = "cifar-fast"
    data: str = "cifar10"
    tricks: tuple = ALL
    batch: int = 512
    epochs: int = 10
    train: int = 50000  # images
    test: int = 10000  # images
    test_batch: int = 500  # images of a step of the evaluation
    width: int = 64  # channels of the first layer
    ghost: int = 32  # images that are normalised together, with the trick "ghost-norm"
    epsilon: float = 1e-5  # of batch normalisation
    statistics: float = 0.1  # weight of the batch's statistics in an update of the running statistics
    rate: float = 1.0  # factor on the learning rates of the article
    momentum: float = 0.9
    decay: float = 5e-4  # of weights
    dropout: tuple = ()
    dtype: str = "float32"  # of the arithmetic; parameters are always float32
    seed: int = 0


class Choices(NamedTuple):
    """What the tricks of a Task select."""

    pool_first: bool  # pool before the normalisation
    smoothing: float  # part of each label that is spread over all classes
    alpha: Optional[float]  # of CELU; None: ReLU
    ghost: Optional[int]  # images that are normalised together; None: the batch
    trains_scale: bool  # the scale of the normalisation is a parameter
    factor: float  # on the logits
    bias_rate: int  # factor on the learning rate of biases; their decay is divided by it
    whitens: bool  # a frozen 3x3 convolution, and a 1x1 convolution in place of that of prep
    average: bool  # evaluate a moving average of weights and statistics
    flips: bool  # evaluate the mean over an image and its mirror image
    cutout: int  # pixels; 0: none
    peak: float  # the largest learning rate


AVERAGE_EVERY = 5  # steps between two updates of the moving average; the first is after the first step
AVERAGE_KEEPS = 0.99**AVERAGE_EVERY  # its share that an update keeps
WHITENED, WHITENING_EPSILON = 10000, 1e-2  # images from which the filters are made; added to the eigenvalues


def choices(task):
    def on(trick):
        return trick in task.tricks

    return Choices(
        pool_first=on("pool-first"),
        smoothing=0.2 if on("label-smoothing") else 0.0,
        alpha=None if not on("celu") else 0.3 if on("frozen-scale") else 0.075,
        ghost=task.ghost if on("ghost-norm") else None,
        trains_scale=not on("frozen-scale"),
        factor=1 / 16 if on("frozen-scale") else 1 / 8,
        bias_rate=64 if on("frozen-scale") else 1,
        whitens=on("whitening"),
        average=on("ema"),
        flips=on("flip"),
        cutout=0 if on("flip") else 5 if on("whitening") else 8,
        peak=1.0 if on("whitening") else 0.6 if on("ghost-norm") else 0.4,
    )


def layers(task):
    """Yield (name, inputs, outputs) of the eight convolutions."""
    width = task.width
    yield "prep", 27 if choices(task).whitens else 3, width
    yield "layer1", width, 2 * width
    yield "layer1.residual1", 2 * width, 2 * width
    yield "layer1.residual2", 2 * width, 2 * width
    yield "layer2", 2 * width, 4 * width
    yield "layer3", 4 * width, 8 * width
    yield "layer3.residual1", 8 * width, 8 * width
    yield "layer3.residual2", 8 * width, 8 * width


POOLED = ("layer1", "layer2", "layer3")
RESIDUAL = ("layer1", "layer3")


def weights(task):
    """Return float32 arrays: convolutions <name>.conv (out, in, height, width), their <name>.norm, dense (out, in).

    The scale of a normalisation is there only if it is trained. The filters whiten.weight are noise here: those for
    the data come from ``fitted``.
    """
    rng, chosen = numpy.random.RandomState(task.seed), choices(task)
    arrays = OrderedDict()
    if chosen.whitens:
        arrays["whiten.weight"] = uniform(rng, 27**-0.5, (27, 3, 3, 3))
    for name, inputs, outputs in layers(task):
        size = 1 if inputs == 27 else 3
        limit = (inputs * size * size) ** -0.5
        arrays[name + ".conv.weight"] = uniform(rng, limit, (outputs, inputs, size, size))
        if chosen.trains_scale:
            arrays[name + ".norm.weight"] = numpy.ones(outputs, numpy.float32)
        arrays[name + ".norm.bias"] = zeros((outputs,))
        arrays[name + ".norm.running_mean"] = zeros((outputs,))
        arrays[name + ".norm.running_var"] = numpy.ones(outputs, numpy.float32)
    limit = (8 * task.width) ** -0.5
    arrays["linear.weight"] = uniform(rng, limit, (10, 8 * task.width))
    return arrays


def fitted(task, arrays, images):
    """Return ``arrays`` with the whitening filters of images float32 (n, 32, 32, 3)."""
    if not choices(task).whitens:
        return arrays
    filters = whitening_filters(images[:WHITENED], 3, WHITENING_EPSILON)
    return OrderedDict(arrays, **{"whiten.weight": filters})


def redrawn(task, arrays, draw):
    """Return ``arrays`` with the weights of all layers that are trained from draw(shape)."""
    layer_weights = [name for name in arrays if is_trained(name) and arrays[name].ndim > 1]
    return OrderedDict(arrays, **{name: draw(arrays[name].shape) for name in layer_weights})


def learning_rates(task):
    """Return the learning rate of each step, float32 (epochs * steps of an epoch,)."""
    steps, epochs, chosen = task.train // task.batch, task.epochs, choices(task)
    warmup = epochs / 5.0 if chosen.smoothing else epochs * 5 / 24.0
    knots, values = (0, warmup, epochs), (0, 1, 0)
    if "schedule" in task.tricks:
        knots, values = (0, warmup, epochs - min(2.0, epochs / 5.0)), (0, 1, 0.1)
    time = numpy.arange(1, steps * epochs + 1) / float(steps)
    return (task.rate * chosen.peak * numpy.interp(time, knots, values)).astype(numpy.float32)


def rate_and_decay(task, name):
    """Return the factor on the learning rate of a parameter, and its decay."""
    factor = choices(task).bias_rate if name.endswith("norm.bias") else 1
    return factor, task.decay / factor


def is_trained(name):
    return not name.startswith("whiten") and ".running_" not in name


def augmentation_table(task, epoch):
    """Return the crops, flips and squares cut out of an epoch."""
    rng, size = numpy.random.RandomState([task.seed, epoch, 1]), choices(task).cutout
    table = augmentation.crops(rng, task.train, MARGIN)
    table = augmentation.flipped(table, augmentation.coins(rng, task.train))
    return augmentation.cut(table, rng, size) if size else table


def augmentation_plan(task):
    return augmentation.Plan(task.train, MARGIN, choices(task).cutout, alternates=False)


def on_host(task):
    """Return whether NumPy augments, on the host."""
    return DEVICE not in task.tricks


def augment(task, arrays, epoch):
    """Return the images (n, 32, 32, 3) and the labels of an epoch."""
    images, labels = arrays
    return augmentation.apply(augmentation_table(task, epoch), images), labels


def inputs(raw):
    """Convert uint8 images (n, 32, 32, 3) to float32 with mean 0 and deviation 1 in each channel, same shape."""
    mean, deviation = numpy.float32(MEAN), numpy.float32(DEVIATION)
    return (raw.astype(numpy.float32) - mean) / deviation
