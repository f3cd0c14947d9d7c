"""The frameworks that Stele follows, each with the environment in which its releases are measured."""

import dataclasses
import sys
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from stele import environments
from stele.environments import Environment, pins
from stele.errors import SteleError
from stele.releases import ledger

MINORS = range(10, 14)  # of Python 3, which the environments without their own interpreter support
# by branch of the ledger; an environment that the user described is followed under its name
ENVIRONMENTS = {
    "torch": "torch",
    "jax": "jax",
    "tensorflow-cpu": "tensorflow",
    "keras": "keras-tensorflow",
    "paddlepaddle": "paddle",
    "mxnet": "mxnet-gluon",
}


def environment_names() -> dict[str, str]:
    """Return the name of the environment of each framework that is followed."""
    return {
        **ENVIRONMENTS,
        **{name: name for name in environments.user_defined() if environments.load(name).requirements},
    }


def environment_of(framework: str) -> Environment:
    """Return the environment of a framework. Raises SteleError, with the nearest name, if it is not followed."""
    if framework in environment_names():
        return environments.load(environment_names()[framework])
    raise SteleError(environments.unknown_message("framework", framework, environment_names()))


def package(environment: Environment) -> str:
    """Return the name of the framework's package: the first requirement of the environment.

    Raises SteleError if it has no requirement.
    """
    if not environment.requirements:
        raise SteleError(
            f"'{environment.name}' has no releases, because its description has no [requirements]. "
            "Add its package there."
        )
    return Requirement(next(iter(environment.requirements))).name


def packages(environment: Environment) -> list[str]:
    """Return the names of all packages that the environment requires."""
    return [Requirement(text).name for text in environment.requirements]


def framework_of(tag: str) -> str:
    """Return the framework of a tag such as ``tensorflow-cpu-2.21.0``. Raises SteleError if there is none."""
    matches = [framework for framework in environment_names() if tag.startswith(f"{framework}-")]
    if not matches:
        raise SteleError(environments.unknown_message("framework", tag.rpartition("-")[0], environment_names()))
    return max(matches, key=len)


def release_environment(tag: str, requirements: str) -> Environment:
    """Return the environment in which to measure a release.

    ``requirements`` is its requirements.txt from the ledger, which may limit the version of Python.
    """
    base = environment_of(framework_of(tag))
    lines = requirements.splitlines()
    needs = [line.removeprefix(ledger.PYTHON) for line in lines if line.startswith(ledger.PYTHON)]
    pins = [line for line in lines if not line.startswith("#")]
    pins += interpreter_pin(needs[0]) if needs and base.python is None else []
    pinned = environments.load(f"{base.name}@{' '.join(pins)}")
    return dataclasses.replace(pinned, name=tag, label=tag)


def interpreter_pin(needs: str) -> list[str]:
    """Return a pin of the supported Python that is nearest to the current one.

    ``needs`` is a release's Requires-Python. Returns no pin if the current Python fits, or if no version fits.
    """
    current = sys.version_info.minor
    try:
        specifiers = SpecifierSet(needs)
        supported = [minor for minor in (current, *MINORS) if specifiers.contains(f"3.{minor}.99")]
    except ValueError:  # of a release that is older than the specification
        return []
    nearest = min(supported, key=lambda minor: abs(minor - current), default=current)
    return [] if nearest == current else [f"python==3.{nearest}.*"]


def asv_environment(tag: str, interpreter: Path) -> Environment:
    """Return the environment of a release that asv has installed in ``interpreter``."""
    environment = pins.with_interpreter(environment_of(framework_of(tag)), interpreter)
    return dataclasses.replace(environment, name=tag, label=tag)
