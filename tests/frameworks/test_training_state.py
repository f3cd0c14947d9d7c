"""A training that continues from a saved state computes what it would have computed without the interruption.

STELE_CHECK names the framework. For keras, KERAS_BACKEND names the backend.
"""

import os

import numpy
import pytest

from stele_suite import tasks
from stele_worker import recipes
from stele_worker.subjects import TaskSubject
from tests.frameworks import contract

pytestmark = pytest.mark.filterwarnings("default")  # Paddle warns when it finds no ccache
NAME = os.environ["STELE_CHECK"]
STEPS = 7  # more than between two updates of the moving average
SCALES = {"cnn": "study", "gru": "smoke", "cifar-fast": "parity", "cifar-airbench": "parity"}
TASKS = [task for task in SCALES if tasks.why_absent(task, NAME, "train") is None]


@pytest.fixture(params=TASKS)
def training(request):
    """training() -> a new training step, and functions that train and evaluate. Dropout is on: random numbers count."""
    framework = contract.configure(NAME)
    recipe = recipes.load(request.param, NAME)
    subject = TaskSubject(tasks.make(request.param, SCALES[request.param]), recipe)
    batch = [framework.put(array) for array in subject.arrange(subject.parity_batch())]

    def training():
        net = recipe.load(recipe.network(subject.task), subject.weights())
        step = recipe.training_step(net, subject.task)
        evaluate = getattr(recipe, "evaluation_step", recipe.inference_step)(net, subject.task)

        def train():
            losses = [float(framework.fetch(step(*batch))) for _ in range(STEPS)]
            return losses, framework.fetch(evaluate(*batch[:-1])).tolist()

        return step, train

    return training


def test_a_restored_training_has_the_losses_and_the_evaluation_of_one_that_was_not_interrupted(training):
    step, train = training()
    first = train()
    state = {name: numpy.array(array) for name, array in step.state().items()}
    expected = train()
    other, continued = training()
    continued()
    other.restore(state)
    assert continued() == expected != first


def test_a_new_training_continues_before_its_first_step(training, tmp_path):
    step, train = training()
    train()
    numpy.savez(tmp_path / "state.npz", **step.state())
    expected = train()
    other, continued = training()
    with numpy.load(tmp_path / "state.npz", allow_pickle=False) as file:
        state = {name: file[name] for name in file.files}
    other.restore(state)
    assert continued() == expected
