"""Environments: the interpreters in which a framework is installed. Knows nothing of what is run in them.

A row of the tables is described by ``environments/<name>.toml``, or by a file in the folder that
STELE_ENVIRONMENTS names; ``description`` says what stands in it. What a user types in a row's place, a
requirement or an interpreter, is an Environment too: see ``pins``.
"""

import difflib
import functools
import os
from collections.abc import Iterable
from pathlib import Path

from stele.environments import description, pins
from stele.environments.description import ORACLE, Environment
from stele.environments.state import State, locked, state
from stele.errors import SteleError

__all__ = ["ORACLE", "Environment", "State", "load", "locked", "names", "ready", "rows", "state", "unknown"]

FOLDER = Path(__file__).parent / "descriptions"


def folders() -> list[Path]:
    """Where environments are described: here, and in a folder of the user's."""
    own = os.environ.get("STELE_ENVIRONMENTS")
    return [FOLDER, Path(own)] if own else [FOLDER]


@functools.cache
def rows() -> dict[str, Environment]:
    """Every described environment by name, in the order in which tables show them: the host's own first."""
    paths = {path.stem: path for folder in folders() for path in folder.glob("*.toml")}
    found = [row for path in paths.values() for row in description.read(path)]
    return {row.name: row for row in sorted(found, key=place)}


def place(row: Environment) -> tuple[bool, bool, str]:
    """Rows of the host's interpreter before those with their own, Keras after the backends it runs on."""
    living = row.python is None and row.command is None
    return not living, row.framework == "keras", row.name


def own() -> list[str]:
    """The rows that the user described, in the folder that STELE_ENVIRONMENTS names."""
    return [
        row.name for path in folders()[1:] for row in rows().values() if (path / f"{row.name}.toml").exists()
    ]


def names() -> tuple[str, ...]:
    """The described environments, in the order in which tables show them."""
    return tuple(rows())


def load(name: str) -> Environment:
    """The row called ``name``, or what ``name`` pins. Raises SteleError, with the nearest name, if it is neither."""
    if name in rows():
        return rows()[name]
    pinned = pins.environment(name, list(rows().values()))
    if pinned is None:
        raise SteleError(unknown("framework", name, names()))
    return pinned


def ready(wanted: Iterable[str] | None = None) -> list[Environment]:
    """The rows named, ``a,b`` or one by one; without a name all that are ready.

    Raises SteleError with the line to type if one that was named is not ready, or if there is none at all.
    """
    listed = [name for value in wanted or () for name in value.split(",") if name]
    found = []
    for row in map(load, listed or names()):
        seen = state(row)
        if seen.status == "ready":
            found.append(row)
        elif listed:
            raise SteleError(f"'{row.name}' is {seen.status}: {seen.reason}")
    if not found:
        raise SteleError("No framework is ready here. What there is, and how to get it: stele env list")
    return found


def unknown(kind: str, value: str, known: Iterable[str]) -> str:
    """The message for a name that is none of the known ones."""
    known = list(known)
    near = difflib.get_close_matches(value, known, n=1)
    hint = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(known)}."
    return f"Unknown {kind} {value!r}. {hint}"
