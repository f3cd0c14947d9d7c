"""stele.data.synthetic: equal on every machine, with the shapes of the real data, and learnable."""

import dataclasses

import numpy
import pytest

from stele.data import cache, cifar10, imdb, synthetic

CIFAR10 = dataclasses.replace(cifar10.SOURCE, train=2000, test=500)
IMDB = dataclasses.replace(imdb.SOURCE, train=2000, test=500)


@pytest.fixture(scope="module")
def images():
    return synthetic.cifar10(CIFAR10)


@pytest.fixture(scope="module")
def texts():
    return synthetic.imdb(IMDB)


def test_synthetic_data_is_equal_on_every_machine(images, texts):
    assert cache.fingerprint(images) == "0f6259cdbd290a8d"
    assert cache.fingerprint(texts) == "66500fcd73d82659"


def test_images_have_the_shapes_of_the_real_ones(images):
    assert images["train_x"].shape == (2000, 32, 32, 3)
    assert images["train_x"].dtype == numpy.uint8
    assert images["test_y"].dtype == numpy.int32
    assert numpy.bincount(images["train_y"]).tolist() == pytest.approx([200] * 10, abs=20)


def test_reviews_have_the_shapes_of_the_real_ones(texts):
    x, y = texts["train_x"], texts["train_y"]
    assert x.shape == (2000, 150)
    assert x.dtype == y.dtype == numpy.int32
    assert x.min() >= 0 and x.max() < 30000
    assert y.mean() == 0.5
    ends = x != 0
    assert (ends[:, :-1] >= ends[:, 1:]).all(), "padding is only at the end"
    assert set(x[~ends.all(axis=1), 0]) == {1}


def test_the_classes_of_images_can_be_learned_but_not_perfectly(images):
    """The nearest mean image is no perfect classifier: pictures are shifted, and one label in ten is random."""
    means = numpy.stack([images["train_x"][images["train_y"] == k].mean(axis=0) for k in range(10)])
    distances = ((images["test_x"][:, None] - means) ** 2).sum(axis=(2, 3, 4))
    accuracy = (distances.argmin(axis=1) == images["test_y"]).mean()
    assert 0.5 < accuracy < 0.95


def test_the_tone_of_reviews_can_be_learned_but_not_perfectly(texts):
    """The classifier counts words that are more frequent in positive reviews."""
    counts = numpy.zeros((2, 30000))
    for tone in (0, 1):
        numpy.add.at(counts[tone], texts["train_x"][texts["train_y"] == tone].ravel(), 1)
    score = numpy.log1p(counts[1]) - numpy.log1p(counts[0])
    accuracy = ((score[texts["test_x"]].sum(axis=1) > 0) == texts["test_y"]).mean()
    assert 0.8 < accuracy <= 1
