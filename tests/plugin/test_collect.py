"""Recipe files of users, as tests."""

import os

import pytest

from pytest_stele import plugin
from stele.measuring import store
from stele.subjects.model import recipes
from stele_worker.models import recipe_files
from tests.support import user_recipes
from tests.support.user_projects import RECIPE, TASK, change


@pytest.fixture
def run_pytest(project, tmp_path):
    """run_pytest(*options) runs pytest in the project."""

    def run(*arguments):
        names = {"STELE_CACHE": str(tmp_path / "cache"), "STELE_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": ""}
        variables = {name: value for name, value in {**os.environ, **names}.items() if value}
        return user_recipes.run_pytest(project, variables, *arguments, timeout=120)

    return run


@pytest.fixture
def without_frameworks(tmp_path, monkeypatch):
    """Let the processes of a test find neither PyTorch nor JAX, wherever the tests run."""
    folder = tmp_path / "without"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("import sys\nsys.modules.update(torch=None, jax=None)\n")
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)


@pytest.mark.slow
@pytest.mark.usefixtures("without_frameworks")
def test_a_recipe_is_measured_and_one_without_its_framework_is_skipped_with_the_command(run_pytest, project):
    output = run_pytest("recipes", "--stele-scale=smoke", "-v")
    for name in ("train", "infer", "parity"):
        assert f"{RECIPE}::{name}" in output
    assert "3 passed, 6 skipped" in output, output
    assert "torch is not installed. Run: pip install torch" in output
    assert "jax is not installed. Run: pip install jax" in output
    assert "benchmark 'spirals train': 1 tests" in output
    runs = store.load_all(project / ".stele/runs")
    assert sorted(run.phase for run in runs) == ["infer", "train"]
    trained = next(run for run in runs if run.phase == "train")
    assert trained.task == "spirals" and trained.learning.accuracy > 0.4 and trained.learning.evaluated == 160
    assert trained.data.origin == TASK
    assert not list(project.rglob("__pycache__"))


@pytest.mark.slow
def test_a_named_test_of_a_file_runs_alone_and_the_file_is_not_imported(run_pytest, project):
    change(project, RECIPE, "import numpy as np", "import numpy as np, sys\nassert 'pytest' not in sys.modules")
    output = run_pytest(f"{RECIPE}::infer", "--stele-scale=smoke")
    assert "1 passed" in output, output


@pytest.mark.slow
def test_an_error_in_a_step_shows_the_users_line_and_no_other(run_pytest, project):
    change(project, RECIPE, "loss, grads = run(x, y)", "loss, grads = run(x)")
    output = run_pytest(f"{RECIPE}::train")
    line = 1 + (project / RECIPE).read_text().splitlines().index("        loss, grads = run(x)")
    assert "recipes/spirals/numpy.py raised TypeError: " in output
    assert f'numpy.py", line {line}, in step' in output
    for other in ("stele_worker", "Traceback", "failed during"):
        assert other not in output, output


@pytest.mark.slow
def test_frameworks_that_an_option_leaves_out_are_skipped(run_pytest):
    output = run_pytest("recipes/spirals/torch.py", "--stele-framework=chainer")
    assert "3 skipped" in output, output
    assert "has no environment with torch" in output


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        ("recipes/mine/torch.py", "def network(task): ...", True),
        ("recipes/mine/torch.py", "def soup(): ...", False),
        ("recipes/mine/cook.py", "def network(task): ...", False),
        ("recipes/torch.py", "def network(task): ...", False),
        ("stele_suite/recipes/cnn/torch.py", "def network(task): ...", False),
    ],
)
def test_only_recipes_are_collected(tmp_path, path, content, expected):
    user_recipes.write(tmp_path, {path: content})
    assert plugin.is_recipe(tmp_path / path) is expected


def test_the_plugin_knows_every_framework_of_recipes():
    assert set(plugin.RECIPES) == set(recipes.FRAMEWORKS)
    assert recipe_files.DERIVED == recipes.DERIVED and recipe_files.STEPS == recipes.STEPS
