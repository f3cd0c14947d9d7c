"""A command of the user: its time, its memory, its exit code, and what it reports itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stele.errors import SteleError
from stele.subjects.programs.base import Program

DIRECTIONS = ("lower", "higher")
LAUNCHERS = ("uv", "uvx", "poetry", "pdm", "pipenv", "hatch", "conda", "tox", "nox")


@dataclass(frozen=True)
class Command(Program):
    """A command. ``report`` is a JSON file that it writes, relative to its folder.

    ``better`` says which direction of a number is better: "lower" or "higher".
    """

    report: str | None = None
    better: Mapping[str, str] = field(default_factory=dict)

    @property
    def alone(self) -> bool:  # type: ignore[override]
        """All launches write the same report."""
        return self.report is not None

    kind = "command"
    phase = "command"
    item = "command"
    metrics = ("outcomes", "values", "wall-time", "processor-time", "host-memory")
    clock = "wall-time"
    reports = True

    def as_request(self, other: object = None) -> dict[str, Any]:
        return {**super().as_request(), "report": self.report, "better": dict(self.better)}


def parse_directions(texts: tuple[str, ...]) -> dict[str, str]:
    """Return the direction of each name in ``higher=tokens_per_second,accuracy``.

    Raises SteleError for another form.
    """
    directions = {}
    for text in texts:
        direction, equals, names = text.partition("=")
        if direction not in DIRECTIONS or not equals or not all(names.split(",")):
            raise SteleError(f"--better {text} is not of the form higher=NAME,NAME or lower=NAME.")
        directions.update(dict.fromkeys(names.split(","), direction))
    return directions


def parse(words: tuple[str, ...], folder: Path, report: str | None, better: tuple[str, ...]) -> Command:
    """Return the command of a command line typed in a folder. Raises SteleError for options that do not fit."""
    directions = parse_directions(better)
    program = Path(words[0])
    if program.is_absolute() and program.name.startswith("python"):
        raise SteleError(f"{words[0]} is one interpreter for OLD and NEW. Type: python {' '.join(words[1:])}")
    if program.name in LAUNCHERS:
        raise SteleError(
            f"{words[0]} runs a command in an environment of its own, so OLD and NEW would be the same. Type the "
            "command that it runs."
        )
    if report is not None and Path(report).is_dir():
        raise SteleError(f"--report {report} is a folder. Name the JSON file that the command writes.")
    return Command(words, folder.absolute(), report=report, better=directions)
