"""A training that continues from a saved state computes what it would have computed without the interruption.

    pytest tests/models/check_training_state.py

runs in each of these frameworks that is installed.
"""

import numpy
import pytest

from stele_worker import frameworks, recipes, tasks

SETTINGS = {
    "device": "cpu",
    "threads": 1,
    "precision": "fp32",
    "autotune": True,
    "deterministic": False,
    "seed": 0,
}
MODES = {"torch": "eager", "jax": "jit"}
STEPS = 3


@pytest.fixture(params=MODES)
def training(request):
    """training() -> a new training step of ``cnn``, and its batch. Dropout is on, so the random numbers count."""
    pytest.importorskip(request.param)
    framework = frameworks.load(request.param)
    framework.configure({**SETTINGS, "mode": MODES[request.param]})
    task, recipe = tasks.make("cnn", "study"), recipes.load("cnn", request.param)
    images, labels = tasks.load("cnn").example(task, task.batch)
    if recipe.LAYOUT == "NCHW":
        images = numpy.ascontiguousarray(images.transpose(0, 3, 1, 2))
    batch = [framework.put(array) for array in (images, labels)]

    def training():
        net = recipe.load(recipe.network(task), tasks.weights(task))
        step = recipe.training_step(net, task)
        return step, lambda: [float(framework.fetch(step(*batch))) for _ in range(STEPS)]

    return training


def test_a_restored_training_has_the_losses_of_the_one_that_was_not_interrupted(training):
    step, losses = training()
    first = losses()
    state = {name: numpy.array(array) for name, array in step.state().items()}
    expected = losses()
    other, continued = training()
    continued()
    other.restore(state)
    assert continued() == expected != first


def test_the_state_consists_of_plain_arrays(training, tmp_path):
    step, losses = training()
    losses()
    numpy.savez(tmp_path / "state.npz", **step.state())
    with numpy.load(tmp_path / "state.npz", allow_pickle=False) as file:
        assert all(file[name].dtype != object for name in file.files)
