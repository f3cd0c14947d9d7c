"""The recipes of the suite keep their contract, ``stele_worker.frameworks.recipe``. No framework has to be installed.

Where a framework is installed, the layouts of its recipes are tested, too.
"""

import ast
from pathlib import Path

import numpy
import pytest

import stele_suite
from stele_suite import tasks
from stele_worker import recipes
from stele_worker.frameworks.recipe import Recipe

FOLDER = Path(stele_suite.__file__).parent / "recipes"
PAGES = sorted(path for path in FOLDER.glob("*/*.py") if path.stem != "__init__")
ORDER = ("LAYOUT", "network", "forward", "predict", "layers", "loss", "optimiser", "layout")


def name_of(path):
    return f"{path.parent.name}-{path.stem}"


def defined_names(path):
    """Return the names that class Recipe of a page defines, in order; () if it is that of another page."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module.startswith("stele_suite.recipes."):
            return ()
        if isinstance(node, ast.ClassDef) and node.name == "Recipe":
            return [
                each.targets[0].id if isinstance(each, ast.Assign) else each.name
                for each in node.body
                if isinstance(each, ast.Assign | ast.FunctionDef)
            ]
    raise AssertionError(f"{path} has no class Recipe")


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_a_page_defines_the_names_of_the_contract_in_their_order(path):
    names = [name for name in defined_names(path) if name in ORDER]
    assert names == sorted(names, key=ORDER.index)


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_a_page_changes_no_module(path):
    assert "globals()" not in path.read_text() and "setattr(recipe" not in path.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_a_layout_is_the_inverse_of_what_reads_parameters_back(path):
    pytest.importorskip(path.stem, reason=f"needs {path.stem}")
    task = tasks.make(path.parent.name.replace("_", "-"), "smoke")
    recipe, weights = recipes.load(task.name, path.stem), tasks.weights(task)
    recipe.shapes = {name: array.shape for name, array in weights.items()}
    for name, array in weights.items():
        numpy.testing.assert_array_equal(recipe.neutral(name, recipe.layout(name, array)), array)


class Transposed(Recipe):
    def assign(self, net, arrays):
        net.update(arrays)
        return net

    def layout(self, name, array):
        return array.T if name == "dense" else array.transpose(2, 3, 1, 0)


def test_parameters_have_the_layout_of_the_network_and_are_read_back_in_that_of_the_task():
    weights = {"dense": numpy.arange(6.0).reshape(2, 3), "conv": numpy.arange(120.0).reshape(2, 3, 4, 5)}
    recipe = Transposed(None)
    net = recipe.load({}, weights)
    assert net["dense"].shape == (3, 2) and net["conv"].shape == (4, 5, 3, 2)
    for name, array in net.items():
        numpy.testing.assert_array_equal(recipe.neutral(name, array), weights[name])


def test_layers_are_recorded_only_while_they_are_asked_for():
    recipe = Recipe(None)
    assert recipe.recorded(lambda x: recipe.record("double", 2 * x), 3) == {"double": 6}
    assert recipe.record("double", 8) == 8 and recipe.outputs is None
