"""The example of docs/your-recipe.md in PyTorch and JAX. Run where torch, jax and flax are installed.

A framework that is not installed here may be in another interpreter: STELE_CHECK_TORCH and STELE_CHECK_JAX name them.
"""

import importlib.util
import os
import sys

import pytest

from tests.support import user_recipes

TORCH, JAX = "recipes/spirals/torch.py", "recipes/spirals/jax.py"


def interpreters():
    """Return --stele-framework with the interpreters that variables name; nothing if both are installed here."""
    named = {name: os.environ.get(f"STELE_CHECK_{name.upper()}") for name in ("torch", "jax")}
    if not any(named.values()):
        for name in named:
            assert importlib.util.find_spec(name), (
                f"Install {name}, or let STELE_CHECK_{name.upper()} name an interpreter"
            )
        return []
    return ["--stele-framework=" + ",".join(f"{name}@{python or sys.executable}" for name, python in named.items())]


@pytest.fixture
def run(tmp_path):
    """run(*arguments) runs pytest in a project with the example."""
    folder = tmp_path / "project"
    user_recipes.write(folder, {**user_recipes.example(), "pytest.ini": "[pytest]\n"})

    def run(*arguments):
        variables = {**os.environ, "STELE_CACHE": str(tmp_path / "cache")}
        options = ["--stele-threads=1", *interpreters(), *arguments]
        return user_recipes.run_pytest(folder, variables, *options, timeout=500)

    run.folder = folder
    return run


def change(folder, path, old, new):
    content = (folder / path).read_text()
    assert old in content
    (folder / path).write_text(content.replace(old, new))


def test_the_example_is_about_thirty_lines():
    lines = [line for content in user_recipes.example().values() for line in content.splitlines() if line.strip()]
    assert len(user_recipes.example()) == 3 and len(lines) <= 32


def test_the_example_runs_in_both_frameworks_with_equal_accuracy(run):
    output = run("recipes", "--stele-scale=quick")
    assert "6 passed" in output, output
    trained = [line for line in output.splitlines() if " accuracy " in line]
    assert len(trained) == 2
    accuracies = [float(line.split("accuracy ")[1].partition("%")[0]) for line in trained]
    assert min(accuracies) > 80 and abs(accuracies[0] - accuracies[1]) < 1
    assert not list(run.folder.rglob("__pycache__"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "old", "new", "message"),
    [
        (TORCH, "nn.ReLU()", "nn.GELU()", "layers differ (rung 2): output of 2: "),
        (JAX, "return array.T", "return array.reshape(array.shape[::-1])", "differ (rung"),
    ],
)
def test_recipes_that_compute_something_else_are_named(run, path, old, new, message):
    change(run.folder, path, old, new)
    output = run("recipes", "-k", "parity")
    assert "1 failed" in output, output
    assert message in output, output


@pytest.mark.parametrize(
    ("path", "old", "new", "line"),
    [
        (TORCH, "task.width), nn", "task.widht), nn", 'torch.py", line 5, in network'),
        (JAX, "return array.T", "return array.transposed", 'jax.py", line 12, in neutral'),
        (
            TORCH,
            "nn.Linear(task.width, 3)",
            "nn.Linear(9, 3)",
            "torch.py, line 4: '2.weight' has shape (3, 64) in the task, but (3, 9) in the network. Let both",
        ),
        (
            TORCH,
            "nn.ReLU()",
            "nn.ReLU(), nn.Dropout(0.5)",
            "the task has weights '2.weight', but the parameters are",
        ),
        (JAX, "nn.Dense(3)])", "nn.Dense(3).no])", 'jax.py", line 8, in network'),
    ],
)
def test_an_error_shows_the_users_line(run, path, old, new, line):
    change(run.folder, path, old, new)
    output = run(path, "-k", "train")
    assert "1 error" in output, output
    assert line in output, output
    assert "stele_worker" not in output, output


@pytest.mark.slow
def test_without_weights_of_the_task_a_network_initialises_itself(run):
    change(run.folder, "tasks/spirals.py", "def weights", "def other")
    output = run("recipes", "--stele-scale=smoke")
    assert "6 passed" in output, output


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (
            "nn.Linear(9, 3)",
            "line 4: the network fails with these inputs: 32x2\nRuntimeError: mat1 and mat2 shapes",
        ),
        (
            "nn.Linear(task.width, 2)",
            "line 4: the output has shape (32, 2), but the target of tasks/spirals.py has shape (32,) and labels up to",
        ),
    ],
)
def test_a_network_that_does_not_fit_the_samples_is_named_with_its_line(run, new, message):
    change(run.folder, "tasks/spirals.py", "def weights", "def other")
    change(run.folder, TORCH, "nn.Linear(task.width, 3)", new)
    output = run(TORCH, "-k", "infer")
    assert f"{TORCH}, {message}" in output, output


@pytest.mark.slow
def test_a_recipe_without_a_task_file_needs_example_inputs_or_a_first_layer(run):
    (run.folder / "tasks/spirals.py").unlink()
    (run.folder / TORCH).write_text("from torch import nn\n\ndef network():\n    return nn.Linear(2, 3)\n")
    change(run.folder, JAX, "task.width", "64")
    output = run("recipes", "--stele-scale=smoke", "-k", "train")
    assert "1 passed" in output and "1 error" in output, output
    assert "The inputs of recipes/spirals/jax.py cannot be inferred." in output
    with (run.folder / JAX).open("a") as file:
        file.write("\ndef example_inputs():\n    import numpy\n    return numpy.zeros((32, 2), 'float32')\n")
    output = run(JAX, "--stele-scale=smoke")
    assert "3 passed" in output, output


@pytest.mark.slow
def test_a_users_function_replaces_the_derived_one(run):
    with (run.folder / TORCH).open("a") as file:
        file.write("""

def training_step(net, task):
    import torch

    optimizer = torch.optim.SGD(net.parameters(), lr=2 * task.learning_rate)

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
""")
    output = run(TORCH, "-k", "parity")
    assert "updates differ (rung 6)" in output, output
