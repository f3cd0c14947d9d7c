"""Environments: the interpreters in which a framework is installed. This package does not use what runs in them.

Each environment of the tables is described by ``descriptions/<name>.toml``, or by a file in the folder that
STELE_ENVIRONMENTS names; ``description`` documents the format. A requirement or the path of an interpreter can replace
the name of an environment on a command line: see ``pins``.
"""

import functools
from collections.abc import Iterable
from pathlib import Path

from stele import config
from stele.environments import description, pins
from stele.environments.environment import ORACLE, Environment
from stele.environments.state import State, locked_versions, state
from stele.errors import SteleError
from stele.text import unknown_message

__all__ = [
    "ORACLE",
    "Environment",
    "State",
    "described",
    "first_modes",
    "load",
    "load_ready",
    "locked_versions",
    "names",
    "state",
    "unknown_message",
    "with_modes",
]

FOLDER = Path(__file__).parent / "descriptions"


def folders() -> list[Path]:
    """Return the folders with descriptions: the one of this package, and that of the user if there is one."""
    user_folder = config.current().environments
    if user_folder is not None and not user_folder.is_dir():
        raise SteleError(f"STELE_ENVIRONMENTS={user_folder} is not a folder. Correct it, or unset it.")
    return [FOLDER] if user_folder is None else [FOLDER, user_folder]


@functools.cache
def described() -> dict[str, Environment]:
    """Return every described environment by name, in the order of the tables."""
    paths = {path.stem: path for folder in folders() for path in folder.glob("*.toml")}
    environments = [environment for path in paths.values() for environment in description.read(path)]
    return {environment.name: environment for environment in sorted(environments, key=table_order)}


def table_order(environment: Environment) -> tuple[bool, bool, str]:
    """Return a sort key: environments in the host's interpreter first, Keras after its backends, then by name."""
    in_host = environment.python is None and environment.command is None
    return not in_host, environment.framework == "keras", environment.name


def user_defined() -> list[str]:
    """Return the names of the environments that are described in the folder STELE_ENVIRONMENTS."""
    return [name for path in folders()[1:] for name in described() if (path / f"{name}.toml").exists()]


def names() -> tuple[str, ...]:
    """Return the names of the described environments, in the order of the tables."""
    return tuple(described())


def first_modes() -> tuple[str, ...]:
    """Return the names of the environments without their other modes, in the order of the tables."""
    return tuple(name for name, environment in described().items() if environment.base is None)


def with_modes(selected: Iterable[Environment]) -> list[Environment]:
    """Return the environments, each followed by its other modes."""
    every = described().values()
    return [
        environment
        for first in selected
        for environment in (first, *(mode for mode in every if mode.base == first.name))
    ]


def load(name: str) -> Environment:
    """Return the environment called ``name``, or the one that ``name`` pins.

    Raises SteleError, with the most similar name, if it is neither.
    """
    if name in described():
        return described()[name]
    pinned = pins.parse(name, list(described().values()))
    if pinned is None:
        raise SteleError(pins.unknown_framework(name, names()))
    return pinned


def load_ready(values: Iterable[str] | None = None) -> list[Environment]:
    """Return the environments in ``values`` (each ``a`` or ``a,b``), or all that are ready in their first mode.

    Raises SteleError, with the command to run, if a named environment is not ready, or if none is ready.
    """
    listed = [name for value in values or () for name in value.split(",") if name]
    environments = []
    for environment in map(load, listed or first_modes()):
        current = state(environment)
        if current.status == "ready":
            environments.append(environment)
        elif listed:
            raise SteleError(f"'{environment.name}' is {current.status}: {current.reason}")
    if not environments:
        raise SteleError("No framework is ready on this machine. List all, and how to install them: stele env list")
    return environments
