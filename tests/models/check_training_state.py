"""A training that continues from a saved state computes what it would have computed without the interruption.

    pytest tests/models/check_training_state.py

runs in each of these frameworks that is installed. For keras, KERAS_BACKEND names the backend.
"""

import contract
import numpy
import pytest

from stele_worker import recipes, tasks
from stele_worker.subjects import TaskSubject

pytestmark = pytest.mark.filterwarnings("default")  # Paddle warns when it finds no ccache
FRAMEWORKS = ("torch", "jax", "tensorflow", "keras", "paddle")
STEPS = 7  # more than between two updates of the moving average
SCALES = {"cnn": "study", "gru": "smoke", "cifar-fast": "parity", "cifar-airbench": "parity"}
TRAININGS = [
    (framework, task)
    for framework in FRAMEWORKS
    for task in SCALES
    if tasks.why_absent(task, framework, "train") is None
]


@pytest.fixture(params=TRAININGS, ids="-".join)
def training(request):
    """training() -> a new training step, and functions that train and evaluate. Dropout is on: random numbers count."""
    name, task_name = request.param
    pytest.importorskip(name)
    framework = contract.configure(name)
    recipe = recipes.load(task_name, name)
    subject = TaskSubject(tasks.make(task_name, SCALES[task_name]), recipe)
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
