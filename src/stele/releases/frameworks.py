"""The frameworks whose releases are followed, each with the row that a release of it is measured in."""

import dataclasses
import sys
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from stele import environments
from stele.environments import Environment, pins
from stele.errors import SteleError
from stele.releases import ledger

MINORS = range(10, 14)  # of Python 3: what the living rows are written for
# by branch of the ledger; a row of the user's own is followed under its name
ROWS = {
    "torch": "torch",
    "jax": "jax",
    "tensorflow-cpu": "tensorflow",
    "keras": "keras-tensorflow",
    "paddlepaddle": "paddle",
    "mxnet": "mxnet-gluon",
}


def tracked() -> dict[str, str]:
    return {**ROWS, **{name: name for name in environments.own() if environments.load(name).requirements}}


def row(framework: str) -> Environment:
    """Raises SteleError, with the nearest name, if it is not followed."""
    if framework in tracked():
        return environments.load(tracked()[framework])
    raise SteleError(environments.unknown("framework", framework, tracked()))


def package(row: Environment) -> str:
    """The package that makes the row: its first requirement."""
    return Requirement(next(iter(row.requirements))).name


def packages(row: Environment) -> list[str]:
    return [Requirement(text).name for text in row.requirements]


def of_tag(tag: str) -> str:
    """The framework of a tag such as ``tensorflow-cpu-2.21.0``. Raises SteleError if there is none."""
    known = [framework for framework in tracked() if tag.startswith(f"{framework}-")]
    if not known:
        raise SteleError(environments.unknown("framework", tag.rpartition("-")[0], tracked()))
    return max(known, key=len)


def environment(tag: str, requirements: str) -> Environment:
    """What to measure a release in: its framework's row with what the ledger requires, and an interpreter."""
    known = row(of_tag(tag))
    lines = requirements.splitlines()
    needs = [line.removeprefix(ledger.PYTHON) for line in lines if line.startswith(ledger.PYTHON)]
    pins = [line for line in lines if not line.startswith("#")]
    pins += interpreter(*needs) if needs and known.python is None else []
    found = environments.load(f"{known.name}@{' '.join(pins)}")
    return dataclasses.replace(found, name=tag, label=tag)


def interpreter(needs: str) -> list[str]:
    """The pin of the Python nearest to this one that a release is for; nothing where this one is, or none."""
    own = sys.version_info.minor
    try:
        wanted = SpecifierSet(needs)
    except InvalidSpecifier:  # of a release from before there were rules
        return []
    fitting = [minor for minor in (own, *MINORS) if wanted.contains(f"3.{minor}.99")]
    nearest = min(fitting, key=lambda minor: abs(minor - own), default=own)
    return [] if nearest == own else [f"python==3.{nearest}.*"]


def built_by_asv(tag: str, interpreter: Path) -> Environment:
    """The same in an interpreter that has the release already."""
    return dataclasses.replace(pins.inside(row(of_tag(tag)), interpreter), name=tag, label=tag)
