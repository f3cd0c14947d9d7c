"""Each trick of cifar-fast, and each part of cifar-airbench, in a framework beside the oracle.

STELE_CHECK names the framework. For keras, KERAS_BACKEND names the backend.
"""

import os

import numpy
import pytest

from stele_suite import tasks
from stele_suite.oracle import newton_schulz
from stele_suite.tasks import cifar_airbench, cifar_fast
from stele_worker import frameworks, recipes, time_to_accuracy
from stele_worker.subjects import TaskSubject
from tests.frameworks import contract

NAME = os.environ["STELE_CHECK"]
pytestmark = pytest.mark.filterwarnings("default")  # Paddle warns when it finds no ccache
STEPS = 20
NETWORKS = [name for name in ("cifar-fast", "cifar-airbench") if NAME in tasks.load(name).FRAMEWORKS]


@pytest.fixture(scope="session")
def framework():
    return contract.configure(NAME)


@pytest.fixture(scope="session")
def oracle():
    return frameworks.load("numpy")


def subject(name, framework, **changes):
    return TaskSubject(tasks.make(name, "parity", **changes), recipes.load(name, framework))


def train(framework, one):
    """Return the losses of 20 steps, and then the logits of the evaluation."""
    recipe, task = one.recipe, one.task
    net = recipe.load(recipe.network(task), one.weights())
    step = recipe.training_step(net, task)
    arrays = [framework.put(array) for array in one.arrange(one.parity_batch())]
    losses = [float(framework.fetch(step(*arrays))) for _ in range(STEPS)]
    evaluate = getattr(recipe, "evaluation_step", recipe.inference_step)(net, task)
    return losses, framework.fetch(evaluate(arrays[0]))


def assert_equal_training(framework, oracle, name, allowed, **changes):
    """Compare the losses, with a relative difference of at most ``allowed``, and the logits, with ten times as much."""
    losses, logits = train(framework, subject(name, NAME, **changes))
    expected_losses, expected_logits = train(oracle, subject(name, "numpy", **changes))
    assert losses == pytest.approx(expected_losses, rel=allowed)
    assert losses[:3] == pytest.approx(expected_losses[:3], rel=1e-4)
    assert numpy.abs(logits - expected_logits).max() <= 10 * allowed * numpy.abs(expected_logits).max()


@pytest.mark.parametrize("trick", ["none", *cifar_fast.ALL])
def test_a_trick_alone_computes_the_same(framework, oracle, trick):
    tricks = () if trick == "none" else (trick,)
    # a small rate, because rounding decides which pixel is the largest of a pool
    assert_equal_training(framework, oracle, "cifar-fast", 1e-3, tricks=tricks, rate=0.01)


@pytest.mark.parametrize("name", NETWORKS)
def test_everything_together_computes_the_same(framework, oracle, name):
    assert_equal_training(framework, oracle, name, 2e-3)


@pytest.mark.parametrize("epoch", [0, 1])
@pytest.mark.parametrize(
    ("name", "changes"),
    [*((name, {}) for name in NETWORKS), ("cifar-fast", {"tricks": ("device-augmentation", "whitening")})],
)
def test_augmentation_gives_the_same_bytes(framework, oracle, name, changes, epoch):
    one, reference = subject(name, NAME, **changes), subject(name, "numpy", **changes)
    samples = tasks.load(name).example(one.task, one.task.train)
    augment = time_to_accuracy.make_augmentation(framework, one, one.arrange(samples), one.table(framework))
    images = framework.fetch(augment(epoch)[0])
    augment = time_to_accuracy.make_augmentation(oracle, reference, samples, reference.table(oracle))
    expected = augment(epoch)[0]
    if one.recipe.LAYOUT == "NCHW":
        images = images.transpose(0, 2, 3, 1)
    assert images.tobytes() == expected.tobytes()


def opened(name, **changes):
    task = tasks.make(name, "parity", **changes)
    return TaskSubject(task, recipes.load(name, NAME), "open")


def augmented(framework, one, samples, epoch):
    """Return the images of an epoch, channels last."""
    augment = time_to_accuracy.make_augmentation(framework, one, one.arrange(samples), one.table(framework))
    images = framework.fetch(augment(epoch)[0])
    return images.transpose(0, 2, 3, 1) if one.recipe.LAYOUT == "NCHW" else images


@pytest.mark.parametrize("name", NETWORKS)
def test_the_open_division_draws_crops_and_flips_of_each_seed_and_epoch_on_the_device(framework, name):
    one = opened(name, train=1000)
    columns = numpy.arange(32, dtype=numpy.float32)[None, None, :, None]
    ramp = numpy.broadcast_to(columns, (1000, 32, 32, 3)).copy(), numpy.zeros(1000, numpy.int32)
    images = augmented(framework, one, ramp, 0)
    assert images.shape == (1000, 32, 32, 3)
    steps = numpy.diff(images[:, 16, :, 0], axis=1)  # 1 between most columns, or -1 if the image is flipped
    flips = numpy.median(steps, axis=1) < 0
    assert 420 < flips.sum() < 580
    margin = tasks.load(name).MARGIN
    moves = images[:, 16, 16, 0] - numpy.where(flips, 15, 16)
    assert set(moves) == set(range(-margin, margin + 1))
    assert (augmented(framework, one, ramp, 0) == images).all()
    assert (augmented(framework, one, ramp, 1) != images).any()
    assert (augmented(framework, opened(name, train=1000, seed=1), ramp, 0) != images).any()
    assert (augmented(framework, subject(name, NAME, train=1000), ramp, 0) != images).any()


def test_the_open_division_cuts_out_one_square_of_each_image(framework):
    one = opened("cifar-fast", train=50, tricks=("device-augmentation", "whitening"))
    ones = numpy.ones((50, 32, 32, 3), numpy.float32), numpy.zeros(50, numpy.int32)
    assert ((augmented(framework, one, ones, 0) == 0).sum((1, 2, 3)) == 3 * 5 * 5).all()


@pytest.mark.parametrize("name", NETWORKS)
def test_the_open_division_starts_from_the_weights_of_the_framework(framework, name):
    one, module = opened(name, width=32), tasks.load(name)
    closed, again = one.weights(), opened(name, width=32).initial(framework, one.weights())
    weights = one.initial(framework, closed)
    other = opened(name, width=32, seed=1).initial(framework, closed)
    for key, array in weights.items():
        assert array.shape == closed[key].shape and (array == again[key]).all()
        identity = name == "cifar-airbench" and array.ndim == 4 and array.shape[0] <= array.shape[1]
        if module.is_trained(key) and array.ndim > 1 and not identity:
            assert (array != closed[key]).any() and (array != other[key]).any()
            assert 0.5 < array.std() / closed[key].std() < 3 or array.std() == pytest.approx(1, rel=0.1)
        else:
            assert (array == closed[key]).all()


@pytest.mark.parametrize("name", NETWORKS)
def test_the_open_division_learns_a_batch(framework, name):
    one = opened(name, width=8, rate=0.1)
    net = one.recipe.load(one.recipe.network(one.task), one.initial(framework, one.weights()))
    step = one.recipe.training_step(net, one.task)
    arrays = [framework.put(array) for array in one.arrange(one.parity_batch())]
    losses = [float(framework.fetch(step(*arrays))) for _ in range(STEPS)]
    assert losses[-1] < losses[0] - 0.05


if "cifar-airbench" in NETWORKS:

    def test_the_open_division_flips_an_image_in_every_second_epoch(framework):
        one = opened("cifar-airbench", train=100)
        columns = numpy.arange(32, dtype=numpy.float32)[None, None, :, None]
        ramp = numpy.broadcast_to(columns, (100, 32, 32, 3)).copy(), numpy.zeros(100, numpy.int32)
        epochs = [augmented(framework, one, ramp, epoch)[:, 16, :, 0] for epoch in range(3)]
        first, second, third = (numpy.median(numpy.diff(one, axis=1), axis=1) < 0 for one in epochs)
        assert (first != second).all() and (first == third).all()

    @pytest.mark.parametrize("shape", [(8, 72), (72, 8)])
    def test_newton_and_schulz_make_a_matrix_orthogonal_as_the_oracle_does(framework, shape):
        matrix = numpy.random.RandomState(0).standard_normal(shape).astype(numpy.float32)
        value = framework.fetch(recipes.page("cifar-airbench", NAME).orthogonal(framework.put(matrix), "float32"))
        module = cifar_airbench
        expected = newton_schulz(matrix, module.COEFFICIENTS, module.ITERATIONS, module.SMALLEST_NORM)
        assert numpy.abs(value - expected).max() < 1e-5
