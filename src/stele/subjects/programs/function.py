"""A function of the user: its first call, which may compile, its further calls, its memory, and what it returns."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stele.errors import SteleError
from stele.subjects.model.inputs import Input
from stele.subjects.model.spec import check_file
from stele.subjects.programs.base import Program

FORM = "package.module:name or path/file.py:name"


@dataclass(frozen=True)
class Function(Program):
    """A function without arguments, or with those of ``example_inputs()`` in its module, or with ``inputs``."""

    inputs: tuple[Input, ...] | None = None

    kind = "function"
    phase = "call"
    item = "function"
    metrics = ("outcomes", "values", "call", "first-call", "import", "host-memory")
    clock = "call"

    def as_request(self, other: object = None) -> dict[str, Any]:
        inputs = None if self.inputs is None else [each.as_request() for each in self.inputs]
        return {**super().as_request(), "inputs": inputs}


def parse(spec: str, folder: Path, inputs: tuple[Input, ...] | None) -> Function:
    """Return the function of a command line typed in a folder. Raises SteleError if it cannot name one."""
    place, colon, name = spec.rpartition(":")
    if not (colon and place and name):
        raise SteleError(f"--function {spec} names no function. Use {FORM}.")
    if place.endswith(".py"):
        check_file(spec, folder / place, option="--function")
    elif not all(part.isidentifier() for part in place.split(".")):
        raise SteleError(f"--function {spec}: {place!r} is neither a module nor a file. Use {FORM}.")
    return Function((spec,), folder.absolute(), inputs=inputs)
