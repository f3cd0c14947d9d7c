"""Load the recipes of the suite. ``stele_worker.frameworks.recipe`` describes them."""

import importlib

from stele_worker import frameworks


def page(task, framework):
    """Return the module of the recipe of a Task in a framework."""
    return importlib.import_module("stele_suite.recipes.{}.{}".format(task.replace("-", "_"), framework))


def load(task, framework):
    """Return a new recipe of a Task in a framework."""
    return page(task, framework).Recipe(frameworks.load(framework))
