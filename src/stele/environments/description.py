"""What is known of an environment before it is looked for: a TOML file, read.

    label           how tables call the row
    framework       the module of ``stele_worker.frameworks`` and ``stele_worker.recipes.<task>``
    imports         top-level modules that must import
    variables       environment variables of its worker; {folder} is where the environment was built
    command         what starts its worker, if not ``python -m stele_worker``; {python} is the built interpreter
    python          interpreters to build it with, such as ==3.8.*; without it, the row lives in the host's own
    devices         cpu, cuda: what it can compute on; without it, all
    precisions      fp32, tf32, bf16: what it can compute in; without it, all
    as_shipped      what the recipe's documented tuning turns on: the row is shown once more without it
    varies          why two launches from one seed may differ in their bits; without it, they must not
    [requirements]  what is installed; the value is the reason for the pin
    [libraries]     system libraries: file = {package = "Debian's", link = "the name that is asked for"}
    [programs]      programs on PATH; the value says how to get one
    [absent]        cells that the row cannot fill, "task" or "task phase"; the value says why
    [forms]         the form in which the row computes a task, where that is not the Task's own

``<name>.lock`` beside it pins every package with its hash; ``stele env lock`` makes it.
"""

import dataclasses
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stele.errors import SteleError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MODULE = ("-m", "stele_worker")
AS_SHIPPED = "-as-shipped"


@dataclass(frozen=True)
class Environment:
    """One row of the tables: a framework in an interpreter, with what its worker needs to start."""

    name: str
    label: str
    framework: str
    imports: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    command: tuple[str, ...] | None = None
    python: str | None = None
    as_shipped: str | None = None
    varies: str | None = None
    requirements: dict[str, str] = field(default_factory=dict)
    libraries: dict[str, dict[str, str]] = field(default_factory=dict)
    programs: dict[str, str] = field(default_factory=dict)
    devices: tuple[str, ...] | None = None
    precisions: tuple[str, ...] | None = None
    absent: dict[str, str] = field(default_factory=dict)
    forms: dict[str, str] = field(default_factory=dict)
    lock: Path | None = None  # the file that pins its packages; there, or yet to be made
    tuned: bool = True

    def __hash__(self) -> int:
        return hash(self.name)

    def why_absent(self, task: str, phase: str, *, device: str, precision: str) -> str | None:
        """Why this row has no such cell; None if it has one."""
        for asked, known in ((device, self.devices), (precision, self.precisions)):
            if known is not None and asked not in known:
                return f"{self.label} is set up for {' and '.join(known)} here, not for {asked}"
        return self.absent.get(f"{task} {phase}", self.absent.get(task))

    @property
    def slug(self) -> str:
        """The name as a file may be called."""
        return slug(self.name)


def slug(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_.=" else "_" for letter in name)


# plain NumPy in float64, in the host's own interpreter: it makes the golden numbers and serves the tests
ORACLE = Environment(name="numpy", label="NumPy", framework="numpy")


def read(path: Path) -> list[Environment]:
    """The row that a file describes, and the same as shipped where the two differ."""
    try:
        facts = tomllib.loads(path.read_text(encoding="utf-8"))
        row = described(path, facts)
    except (tomllib.TOMLDecodeError, TypeError) as error:
        raise SteleError(
            f"{path} describes no environment: {error}. It needs a label and a framework at least."
        ) from None
    if row.as_shipped is None:
        return [row]
    label = f"{row.label}, as shipped"
    return [row, dataclasses.replace(row, name=row.name + AS_SHIPPED, label=label, tuned=False)]


def described(path: Path, facts: dict[str, Any]) -> Environment:
    lists = {name: tuple(value) for name, value in facts.items() if isinstance(value, list)}
    lock = path.with_suffix(".lock") if "python" in facts and facts.get("requirements") else None
    return Environment(name=path.stem, **{**facts, **lists}, lock=lock)
