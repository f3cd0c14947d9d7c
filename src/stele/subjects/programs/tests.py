"""A test suite of the user, in the pytest of each arm. Tests with the fixture of pytest-benchmark are timed."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stele.environments.arms import Needs
from stele.subjects.programs.base import Program

PYTEST = ("pytest", "py.test")


def is_pytest(words: tuple[str, ...]) -> bool:
    """Return whether a command runs pytest."""
    return words[0] in PYTEST or (Path(words[0]).name.startswith("python") and words[1:3] == ("-m", "pytest"))


@dataclass(frozen=True)
class Tests(Program):
    """A test suite, with pytest's own arguments."""

    kind = "tests"
    phase = "benchmark"
    item = "test"
    metrics = ("outcomes", "values", "round")
    clock = "round"

    @property
    def label(self) -> str:
        return shlex.join(["pytest", *self.of_pytest])

    @property
    def in_path(self) -> bool:
        """Whether the folder is in the import path: ``python -m pytest`` adds it, and ``pytest`` does not."""
        return self.arguments[0] not in PYTEST

    @property
    def of_pytest(self) -> tuple[str, ...]:
        """The arguments of pytest."""
        return self.arguments[3 if self.in_path else 1 :]

    @property
    def needs(self) -> Needs:
        return Needs(("pytest",))

    def as_request(self, other: object = None) -> dict[str, Any]:
        return {**super().as_request(), "arguments": list(self.of_pytest), "in_path": self.in_path}
