"""Collect ``recipes/<task>/<framework>.py``: the tests train, infer and parity for each environment.

Each is a function of ``recipe_tests`` with the fixtures of the plugin, so it is measured as every other test. The
user's files are read here, and run in the worker alone.
"""

import importlib.util
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from pytest_stele import options, recipe_tests, session
from stele import environments
from stele.environments import Environment, arms
from stele.subjects import Subject
from stele.subjects.model import recipes, spec


class Recipe(NamedTuple):
    """A recipe file in an environment. ``absence`` is the reason why it cannot run, or None."""

    subject: Subject
    environment: Environment
    absence: str | None


class RecipeTest(pytest.Function):
    """A test of a recipe file."""

    recipe: Recipe
    reference: Recipe | None = None  # the recipe of another framework that parity compares it with

    @property
    def subject(self) -> Subject:
        return self.recipe.subject

    @property
    def environment(self) -> Environment:
        return self.recipe.environment

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return where the item is for pytest: in the user's file."""
        return self.path, 0, self.name


class RecipeFile(pytest.Module):
    """A recipe file. Its module is ``recipe_tests``, so that pytest does not import the user's file."""

    def collect(self) -> Iterator[RecipeTest]:
        unusable = recipes.why_unusable(self.path)
        if unusable is not None:
            for function in recipe_tests.TESTS:
                item: RecipeTest = RecipeTest.from_parent(self, name=function.__name__, callobj=function)
                item.add_marker(pytest.mark.skip(reason=f"{self.path.name}: {unusable}"))
                yield item
            return
        every = recipes_of(self.path, self.config)
        for recipe in every:
            for function in recipe_tests.TESTS:
                phase = function.__name__
                name = phase if len(every) == 1 else f"{phase}[{recipe.environment.name}]"
                item = RecipeTest.from_parent(self, name=name, callobj=function)
                item.recipe = recipe
                reason = recipe.absence or absence(recipe, phase, self.config)
                if reason:
                    item.add_marker(pytest.mark.skip(reason=reason))
                elif function is recipe_tests.parity:
                    item.reference = reference(self.path, self.config)
                yield item


def recipe_file(parent: pytest.Collector, path: Path) -> RecipeFile:
    file: RecipeFile = RecipeFile.from_parent(parent, path=path)
    file.obj = recipe_tests
    return file


def recipes_of(path: Path, config: pytest.Config) -> list[Recipe]:
    """Return a usable recipe in each environment that has its framework; one with a reason if there is none."""
    candidates, absent = selected(path.stem, config)
    subject = spec.of_recipe(path, config.rootpath)
    return [Recipe(subject, environment, absent or missing(environment)) for environment in candidates]


def selected(framework: str, config: pytest.Config) -> tuple[list[Environment], str | None]:
    """Return the environments of ``--stele-framework`` with a framework, else pytest's interpreter; and what lacks."""
    host = replace(arms.HOST, name=framework, label=framework, framework=framework)
    names = session.listed(getattr(config.option, f"{options.PREFIX}_framework"))
    if names:
        matching = [each for each in session.of(config).environments if each.framework == framework]
        reason = f"--stele-framework {','.join(names)} has no environment with {framework}"
        return (matching, None) if matching else ([host], reason)
    module = recipes.MODULES.get(framework, framework)
    if importlib.util.find_spec(module) is None:
        package = recipes.PACKAGES.get(framework, framework)
        return [host], f"{framework} is not installed. Run: pip install {package}"
    return [host], None


def missing(environment: Environment) -> str | None:
    """Return what an environment lacks, with the command to run, or None."""
    state = environments.state(environment)
    return state.reason if state.status == "missing" else None


def absence(recipe: Recipe, phase: str, config: pytest.Config) -> str | None:
    """Return why an environment does not have a phase with the session's settings, or None."""
    [name] = recipe.subject.names
    return session.of(config).absence(recipe.environment, name, phase)


def reference(path: Path, config: pytest.Config) -> Recipe | None:
    """Return the recipe of the first other framework, by name, that can run; None for the first one itself.

    Recipes can be compared only if their task has weights for both.
    """
    if not recipes.has_weights(path):
        return None
    for other in sorted(path.parent.glob("*.py")):
        if other.stem in recipes.FRAMEWORKS and recipes.why_unusable(other) is None:
            usable = [each for each in recipes_of(other, config) if each.absence is None]
            if other.stem == path.stem:
                return None
            if usable:
                return usable[0]
    return None
