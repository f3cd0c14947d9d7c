import sys

import pytest

from tests.support import user_recipes

RECIPE, TASK = "recipes/spirals/numpy.py", "tasks/spirals.py"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A user's folder with the example of the documentation and a recipe in NumPy; imports are undone."""
    monkeypatch.setattr(sys, "path", sys.path[:])
    before, folder = set(sys.modules), tmp_path / "project"
    user_recipes.write(folder, {**user_recipes.example(), RECIPE: user_recipes.NUMPY, "pytest.ini": "[pytest]\n"})
    yield folder
    for name in set(sys.modules) - before:
        del sys.modules[name]


def change(project, path, old, new):
    content = (project / path).read_text()
    assert old in content
    (project / path).write_text(content.replace(old, new, 1))
