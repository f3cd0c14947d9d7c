"""Each trick of cifar-fast, and each part of cifar-airbench, in a framework beside the oracle.

STELE_CHECK names the framework; default: torch. For keras, KERAS_BACKEND names the backend.
"""

import os

import numpy
import pytest

from stele_worker import frameworks, recipes, tasks, time_to_accuracy
from stele_worker.oracle import newton_schulz
from stele_worker.subjects import TaskSubject
from stele_worker.tasks import cifar_airbench, cifar_fast

NAME = os.environ.get("STELE_CHECK", "torch")
pytestmark = pytest.mark.filterwarnings("default")  # Paddle warns when it finds no ccache
SETTINGS = {
    "device": "cpu",
    "threads": 1,
    "precision": "fp32",
    "deterministic": False,
    "autotune": True,
    "seed": 0,
}
MODES = {"torch": "eager", "jax": "jit", "tensorflow": "graph", "keras": "default", "paddle": "dygraph"}
STEPS = 20
NETWORKS = [name for name in ("cifar-fast", "cifar-airbench") if NAME in tasks.load(name).FRAMEWORKS]


@pytest.fixture(scope="session")
def framework():
    module = frameworks.load(NAME)
    module.configure(dict(SETTINGS, mode=MODES[NAME]))
    return module


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


def assert_equal_training(framework, oracle, name, **changes):
    losses, logits = train(framework, subject(name, NAME, **changes))
    expected_losses, expected_logits = train(oracle, subject(name, "numpy", **changes))
    assert losses == pytest.approx(expected_losses, rel=2e-3)
    assert losses[:3] == pytest.approx(expected_losses[:3], rel=1e-4)
    assert numpy.abs(logits - expected_logits).max() <= 0.02 * numpy.abs(expected_logits).max()


@pytest.mark.parametrize("trick", ["none", *cifar_fast.ALL])
def test_a_trick_alone_computes_the_same(framework, oracle, trick):
    tricks = () if trick == "none" else (trick,)
    assert_equal_training(framework, oracle, "cifar-fast", tricks=tricks)


@pytest.mark.parametrize("name", NETWORKS)
def test_everything_together_computes_the_same(framework, oracle, name):
    assert_equal_training(framework, oracle, name)


@pytest.mark.parametrize("epoch", [0, 1])
@pytest.mark.parametrize(
    ("name", "changes"), [*((name, {}) for name in NETWORKS), ("cifar-fast", {"tricks": ("whitening",)})]
)
def test_augmentation_gives_the_same_bytes(framework, oracle, name, changes, epoch):
    one, reference = subject(name, NAME, **changes), subject(name, "numpy", **changes)
    samples = tasks.load(name).example(one.task, one.task.train)
    augment = time_to_accuracy.make_augmentation(framework, one, one.arrange(samples))
    images = framework.fetch(augment(epoch)[0])
    expected = time_to_accuracy.make_augmentation(oracle, reference, samples)(epoch)[0]
    if one.recipe.LAYOUT == "NCHW":
        images = images.transpose(0, 2, 3, 1)
    assert images.tobytes() == expected.tobytes()


if "cifar-airbench" in NETWORKS:

    @pytest.mark.parametrize("shape", [(8, 72), (72, 8)])
    def test_newton_and_schulz_make_a_matrix_orthogonal_as_the_oracle_does(framework, shape):
        one = subject("cifar-airbench", NAME)
        matrix = numpy.random.RandomState(0).standard_normal(shape).astype(numpy.float32)
        value = framework.fetch(one.recipe.orthogonal(framework.put(matrix), "float32"))
        module = cifar_airbench
        expected = newton_schulz(matrix, module.COEFFICIENTS, module.ITERATIONS, module.SMALLEST_NORM)
        assert numpy.abs(value - expected).max() < 1e-5
