"""VGG-style CNN on CIFAR-10: 3,441,592 parameters, 62.3 million multiply-adds forward per image.

conv 3-50, ReLU, conv 50-50, max pool, ReLU, dropout; conv 50-100, ReLU, conv 100-100, max pool, ReLU,
dropout; dense 6400-512, ReLU, dropout; dense 512-10. Convolutions are 3x3 and keep the image size;
pools are 2x2. Mean softmax cross-entropy; SGD with the learning rate outside the velocity:
v = momentum * v + g; w = w - learning_rate * v. No weight decay, no schedule, no augmentation.
Source: github.com/ilkarman/DeepLearningFrameworks, common/params.py and notebooks.
"""

from collections import OrderedDict
from typing import NamedTuple

import numpy

from stele_suite.tasks.initialisers import glorot_uniform, zeros

# the seed of the weights and the batch, and the optimizer steps, of the parity check. This seed avoids ReLU inputs
# near zero and near-equal values in a pooling window: there, the processor's rounding decides, and the gradients
# change. With seed 0, one ReLU input is 3e-9
PARITY_SEED, PARITY_STEPS = 27, 20
UNIT = "images"
# millions of ReLUs and pooling windows in twenty steps: rounding decides a few, which changes gradients by per cents
FACTOR = {7: 10}
SCALES = {
    "parity": {"batch": 16},
    "smoke": {"train": 640, "test": 320, "epochs": 1},
    # launches of one to three seconds
    "study": {"batch": 4, "train": 160, "test": 160, "epochs": 1},
    # about 50 steps a launch
    "gate": {"train": 3072, "test": 2048, "epochs": 1},
    "quick": {"train": 12288, "test": 6400, "epochs": 1},
    "paper": {},
}


class Task(NamedTuple):
    name: str = "cnn"
    data: str = "cifar10"
    batch: int = 64
    epochs: int = 10
    train: int = 50000  # images
    test: int = 10000  # images
    learning_rate: float = 0.01
    momentum: float = 0.9
    dropout: tuple = (0.25, 0.25, 0.5)
    dtype: str = "float32"  # of the arithmetic; parameters are always float32
    seed: int = 0


def weights(task):
    """Return named float32 arrays: convolutions (out, in, height, width), dense (out, in).

    dense1 reads its 6,400 inputs in the order channel, row, column.
    """
    rng = numpy.random.RandomState(task.seed)
    shapes = [
        ("conv1", (50, 3, 3, 3)),
        ("conv2", (50, 50, 3, 3)),
        ("conv3", (100, 50, 3, 3)),
        ("conv4", (100, 100, 3, 3)),
        ("dense1", (512, 6400)),
        ("dense2", (10, 512)),
    ]
    arrays = OrderedDict()
    for name, shape in shapes:
        arrays[name + ".weight"] = glorot_uniform(rng, shape)
        arrays[name + ".bias"] = zeros(shape[:1])
    return arrays


def inputs(raw):
    """Convert uint8 images (n, 32, 32, 3) to float32 in [0, 1], same shape."""
    return raw.astype(numpy.float32) / numpy.float32(255)


def example(task, samples):
    """Return noise: images float32 (samples, 32, 32, 3) in [0, 1), labels int32 (samples,)."""
    rng = numpy.random.RandomState(task.seed)
    images = rng.uniform(size=(samples, 32, 32, 3)).astype(numpy.float32)
    return images, rng.randint(0, 10, samples).astype(numpy.int32)
