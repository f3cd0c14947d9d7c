"""A network of eight convolutions on CIFAR-10, trained to 94 % in eight epochs: 1,971,640 parameters.

A frozen 2x2 convolution that whitens, with its negative, 3-24, and a bias that is trained for three epochs; GELU. Three
groups of 64, 256 and 256 channels: 3x3 convolution, max pool 2, batch normalisation with its scale frozen at 1, GELU;
3x3 convolution, batch normalisation, GELU. Max pool 3, dense 256-10 without a bias, divided by 256. The convolutions
start as the identity on their first channels. Softmax cross-entropy with labels smoothed by 0.2.

Muon moves the filters of the groups: the direction of a Nesterov momentum is made orthogonal by Newton and Schulz's
iteration, and the filters are scaled to a fixed norm. Nesterov's momentum, with the learning rate outside the velocity,
moves the rest. All rates fall linearly to 0. Each image is flipped at random in the first epoch and inverted in every
epoch after it, and moved by up to 2 pixels. The evaluation takes the mean over six views of an image.
Source: Jordan, "94% on CIFAR-10 in 3.29 seconds on a single GPU", 2024, github.com/KellerJordan/cifar10-airbench.
"""

from collections import OrderedDict
from typing import NamedTuple

import numpy

from stele_suite.tasks import augmentation
from stele_suite.tasks.cifar10 import OPEN, example  # noqa: F401
from stele_suite.tasks.initialisers import uniform, zeros
from stele_suite.tasks.whitening import whitening_filters

FRAMEWORKS = ("torch", "jax", "tensorflow", "numpy")
PARITY_SEED, PARITY_STEPS = 0, 20  # the seed and the optimizer steps of the parity check
UNIT = "images"
MEAN, DEVIATION = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)  # of pixels in [0, 1], by channel
MARGIN = 2  # reflected pixels on each side, from which a crop is taken
SCALES = {
    # small learning rates: at those of upstream, so small a network dies
    "parity": {"width": 4, "batch": 16, "train": 32, "epochs": 10, "rate": 0.03},
    "smoke": {"width": 4, "batch": 64, "train": 512, "test": 320, "test_batch": 64, "epochs": 1},
    "gate": {"width": 16, "batch": 128, "train": 6144, "test": 2048, "test_batch": 128, "epochs": 1},
    "quick": {"width": 16, "batch": 128, "train": 12800, "test": 5120, "test_batch": 128, "epochs": 2},
    "cpu": {"width": 16, "batch": 250, "train": 12500, "test": 5000},
    "cpu-full": {},
    "gpu": {},
    "paper": {},
}
TARGETS = {"smoke": 0.05, "cpu": 0.6, "cpu-full": 0.94, "gpu": 0.94}
GROUPS = ("group1", "group2", "group3")


class Task(NamedTuple):
    name: str = "cifar-airbench"
    data: str = "cifar10"
    batch: int = 2000
    epochs: int = 8
    train: int = 50000  # images
    test: int = 10000  # images
    test_batch: int = 500  # images of a step of the evaluation
    width: int = 64  # channels of the first group; the others have four times as many
    smoothing: float = 0.2  # part of each label that is spread over all classes
    epsilon: float = 1e-12  # of batch normalisation
    statistics: float = 0.4  # weight of the batch's statistics in an update of the running statistics
    rate: float = 1.0  # factor on all learning rates
    # of the filters, and of biases and the dense layer for the mean loss; upstream has the rates for the sum over 2,000
    muon_rate: float = 0.24
    muon_momentum: float = 0.6
    bias_rate: float = 0.053 * 2000
    head_rate: float = 0.67 * 2000
    momentum: float = 0.85
    dropout: tuple = ()
    dtype: str = "float32"  # of the arithmetic; parameters are always float32
    seed: int = 0


WHITEN_EPOCHS = 3  # in which the bias of the whitening convolution is trained
WHITENED, WHITENING_EPSILON = 5000, 5e-4  # images from which the filters are made; added to the eigenvalues
DECAY = 2e-6  # of biases and of the dense layer, divided by their learning rate for one sample
# Newton and Schulz's iteration: x becomes (A + B x x' + C (x x')^2) x
COEFFICIENTS, ITERATIONS, SMALLEST_NORM = (3.4445, -4.7750, 2.0315), 3, 1e-7


def convolutions(task):
    """Yield (name, inputs, outputs) of the six convolutions."""
    inputs = 24
    for group, outputs in zip(GROUPS, (task.width, 4 * task.width, 4 * task.width)):
        yield group + ".conv1", inputs, outputs
        yield group + ".conv2", outputs, outputs
        inputs = outputs


def norm_of(convolution):
    """Return ``group1.norm1`` of ``group1.conv1``."""
    return convolution.replace("conv", "norm")


def dirac(array):
    """Return convolution weights (out, in, 3, 3) whose first filters pass the first channels on unchanged."""
    same = min(array.shape[:2])
    array[:same] = 0
    array[numpy.arange(same), numpy.arange(same), 1, 1] = 1
    return array


def weights(task):
    """Return float32 arrays: convolutions (out, in, height, width), dense (out, in), and running statistics.

    The filters whiten.weight are noise here: those for the data come from ``fitted``.
    """
    rng = numpy.random.RandomState(task.seed)
    filters = uniform(rng, 12**-0.5, (12, 3, 2, 2))
    arrays = OrderedDict([("whiten.weight", numpy.concatenate([filters, -filters]))])
    arrays["whiten.bias"] = uniform(rng, 12**-0.5, (24,))
    for name, inputs, outputs in convolutions(task):
        arrays[name + ".weight"] = dirac(uniform(rng, (9 * inputs) ** -0.5, (outputs, inputs, 3, 3)))
        norm = norm_of(name)
        arrays[norm + ".bias"] = zeros((outputs,))
        arrays[norm + ".running_mean"] = zeros((outputs,))
        arrays[norm + ".running_var"] = numpy.ones(outputs, numpy.float32)
    arrays["linear.weight"] = uniform(rng, 3**0.5, (10, 4 * task.width))  # of deviation 1
    return arrays


def fitted(task, arrays, images):
    """Return ``arrays`` with the whitening filters of images float32 (n, 32, 32, 3)."""
    filters = whitening_filters(images[:WHITENED], 2, WHITENING_EPSILON)
    return OrderedDict(arrays, **{"whiten.weight": numpy.concatenate([filters, -filters])})


def redrawn(task, arrays, draw):
    """Return ``arrays`` with the weights of all layers that are trained from draw(shape).

    The convolutions still start as the identity, and the dense layer with deviation 1.
    """
    filters = {name: dirac(numpy.array(draw(array.shape))) for name, array in arrays.items() if is_filter(name)}
    linear = draw(arrays["linear.weight"].shape)
    return OrderedDict(arrays, **dict(filters, **{"linear.weight": linear / linear.std()}))


def learning_rates(task):
    """Return float32 (2, steps): factors on the learning rates of each step, and on that of the whitening bias."""
    steps = task.train // task.batch
    time = numpy.arange(steps * task.epochs) / float(steps)
    limits = task.epochs, min(WHITEN_EPOCHS, task.epochs)
    return numpy.float32([task.rate * numpy.maximum(1 - time / limit, 0) for limit in limits])


def is_filter(name):
    return ".conv" in name


def is_trained(name):
    return name != "whiten.weight" and ".running_" not in name


def rate_and_decay(task, name):
    """Return the learning rate and the weight decay of a parameter that is no filter, for the mean loss."""
    rate = task.head_rate if name.startswith("linear") else task.bias_rate
    return rate, DECAY * 2000 / rate


def augmentation_table(task, epoch):
    """Return the crops and flips of an epoch. The images flipped in one epoch are those not flipped in the next."""
    table = augmentation.crops(numpy.random.RandomState([task.seed, epoch, 1]), task.train, MARGIN)
    first = augmentation.coins(numpy.random.RandomState([task.seed, 0, 2]), task.train)
    return augmentation.flipped(table, first ^ bool(epoch % 2))


def augmentation_plan(task):
    return augmentation.Plan(task.train, MARGIN, 0, alternates=True)


def inputs(raw):
    """Convert uint8 images (n, 32, 32, 3) to float32 with mean 0 and deviation 1 in each channel, same shape."""
    mean, deviation = numpy.float32(MEAN), numpy.float32(DEVIATION)
    return (raw.astype(numpy.float32) / numpy.float32(255) - mean) / deviation
