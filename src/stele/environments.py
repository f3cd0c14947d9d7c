"""Environments: the interpreters in which a framework is installed. Knows nothing of what is run in them.

Each is described by ``environments/<name>.toml``, or by a file in the folder that STELE_ENVIRONMENTS names:
    label        how tables call the row
    framework    the module of ``stele_worker.frameworks`` and ``stele_worker.recipes.<task>``
    imports      top-level modules that must be installed in this interpreter
    variables    environment variables of its worker
    command      what starts its worker, if not ``python -m stele_worker`` in this interpreter
"""

import difflib
import functools
import importlib.util
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from stele.errors import SteleError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).parents[2] / "environments"


@dataclass(frozen=True)
class Environment:
    """One row of the tables: a framework in an interpreter, with what its worker needs to start."""

    name: str
    label: str
    framework: str
    imports: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = (sys.executable, "-m", "stele_worker")

    def missing(self) -> str | None:
        """What to do before this environment can be used, or None if it is ready.

        Looks for the framework without importing it: an installed framework that does not import is a
        failure, not an absence.
        """
        absent = [module for module in self.imports if importlib.util.find_spec(module) is None]
        if not absent:
            return None
        return f"{' and '.join(absent)} not installed: pip install -e '.[{self.name}]' -c constraints.txt"


# plain NumPy in float64, in the host's own interpreter: it makes the golden numbers and serves the tests
ORACLE = Environment(name="numpy", label="NumPy", framework="numpy")


def folders() -> list[Path]:
    """Where environments are described: here, and in a folder of the user's."""
    own = os.environ.get("STELE_ENVIRONMENTS")
    return [FOLDER, Path(own)] if own else [FOLDER]


@functools.cache
def files() -> dict[str, Path]:
    """The known environments' descriptions by name, in the order in which tables show them."""
    found = {path.stem: path for folder in folders() for path in folder.glob("*.toml")}
    return dict(sorted(found.items(), key=lambda item: ("-" in item[0], item[0])))


def names() -> tuple[str, ...]:
    """The known environments, in the order in which tables show them."""
    return tuple(files())


def load(name: str) -> Environment:
    """The environment called ``name``. Raises SteleError, with the nearest name, if there is none."""
    if name not in files():
        raise SteleError(unknown("framework", name, names()))
    facts = tomllib.loads(files()[name].read_text(encoding="utf-8"))
    lists = {field: tuple(facts[field]) for field in ("imports", "command") if field in facts}
    return Environment(name=name, **{**facts, **lists})


def unknown(kind: str, value: str, known: Iterable[str]) -> str:
    """The sentence for a name that is none of the known ones."""
    known = list(known)
    near = difflib.get_close_matches(value, known, n=1)
    hint = f"Did you mean {near[0]!r}?" if near else f"Known: {', '.join(known)}."
    return f"Unknown {kind} {value!r}. {hint}"
