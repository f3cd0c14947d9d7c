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
    return Path(words[0]).name in PYTEST or module_at(words) is not None


def module_at(words: tuple[str, ...]) -> int | None:
    """Return the place of ``pytest`` in ``python [options] -m pytest``; None for another command."""
    if not Path(words[0]).name.startswith("python") or "-m" not in words:
        return None
    place = words.index("-m") + 1
    are_options = all(word.startswith("-") for word in words[1 : place - 1])
    return place if are_options and words[place : place + 1] == ("pytest",) else None


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
        return module_at(self.arguments) is not None

    @property
    def of_pytest(self) -> tuple[str, ...]:
        """The arguments of pytest."""
        return self.arguments[1 + (module_at(self.arguments) or 0) :]

    @property
    def needs(self) -> Needs:
        return Needs(("pytest",))

    def as_request(self, other: object = None) -> dict[str, Any]:
        return {**super().as_request(), "arguments": list(self.of_pytest), "in_path": self.in_path}
