"""What all programs of the user have in common, which run as they are: tests, a function, a command.

A program has items, such as the tests of a suite. What they do and compute is compared first, from a launch that runs
all of them. Items that are timed are cells. ``stele_worker.programs`` runs them.
"""

import math
import os
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypedDict

import msgspec

from stele.environments import Environment, arms
from stele.measuring.answers import Timing
from stele.measuring.content import NOTHING, Reads
from stele.measuring.measure import Plan
from stele.measuring.run import NO_OPTIONS, Options, Origin
from stele.schema import about
from stele.subjects.base import BEHAVIOUR, Cell, Subject

ROUND = 0.01  # seconds: a round has so many calls that it takes about as long
LAUNCH = 0.5  # seconds of all rounds of an item in a launch
ROUNDS = range(5, 25)  # their number in a launch
LONGEST = 4.0  # seconds of the rounds of a function in a launch: in NEW, a call may take a hundred times as long
NO_DATA = Origin(origin="none", fingerprint="none")


class ProgramFacts(TypedDict):
    """A program of the user."""

    kind: Annotated[str, about("`tests`, `function`, `command` or `asv`")]
    arguments: Annotated[
        list[str], about("the words of its command line; of a function, its name; of an asv suite, its folder")
    ]
    accept: Annotated[str | None, about("`rounding` with `--accept`: failures of NEW by no more than that pass")]
    selected: Annotated[list[str], about("metrics that a command reports and that are judged; empty for all")]


@dataclass(frozen=True)
class Program(Subject):
    """A program: the words of its command line, and the absolute folder in which it was typed."""

    arguments: tuple[str, ...]
    folder: Path
    timings: Mapping[str, Timing] = field(default_factory=dict)  # of the items that are timed, after the first launches
    reads: Reads = NOTHING  # what its launches have read
    only: tuple[str, ...] = ()  # the items that are run; empty for all
    selected: tuple[str, ...] = ()  # the metrics that it reports and that are judged; empty for all
    accept: str | None = None  # "rounding": a failure of NEW passes if its values moved by no more than rounding

    reference = BEHAVIOUR
    one_device = "Code of your own is measured on one device. Leave out --devices."
    kind: ClassVar[str] = ""  # its module in stele_worker.programs
    phase: ClassVar[str] = ""  # of its cells
    item: ClassVar[str] = "item"  # what messages call one of its items

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.timings)

    @property
    def label(self) -> str:
        return shlex.join(self.arguments)

    @property
    def root(self) -> Path:
        return self.folder

    @property
    def variables(self) -> tuple[str, ...]:
        return self.reads.variables

    def cells(self, phase: str | None = None) -> tuple[Cell, ...]:
        """Return the items that are timed, if the first launches have shown them."""
        return tuple(Cell(name, self.phase) for name in self.timings)

    def facts(self) -> dict[str, Any]:
        return {
            "program": {
                "kind": self.kind,
                "arguments": list(self.arguments),
                "accept": self.accept,
                "selected": list(self.selected),
            }
        }

    def files(self, environment: Environment) -> list[Path]:
        return [*sorted(self.reads.files), *arms.config_files(environment)]

    def launch_seconds(self, cell: Cell) -> float | None:
        rounds, calls = of_launch(self.timings[cell.task])
        return (rounds + 1) * calls * self.timings[cell.task]["seconds"]

    def apart(self, environment: Environment) -> list[Path]:
        return [self.folder]

    def unmeasured(self, phases: Collection[str]) -> list[str]:
        return []

    def as_request(self, other: object = None) -> dict[str, Any]:
        return {
            "program": self.kind,
            "folder": str(self.folder),
            "python_path": os.environ.get("PYTHONPATH"),
            "arguments": list(self.arguments),
            "name": self.label,
        }

    def plan(self, cell: Cell, scale: str, options: Options = NO_OPTIONS) -> Plan:
        rounds, calls = of_launch(self.timings[cell.task])
        limit = LONGEST if self.kind == "function" else None
        return Plan(
            task=cell.task,
            phase=cell.phase,
            scale=scale,
            data=None,
            data_origin=NO_DATA,
            model=self.as_request(),
            options=msgspec.structs.replace(options, steps=rounds, batch=calls, limit=limit),
            files=tuple(self.reads.files),
        )

    def with_reads(self, reads: Reads) -> "Program":
        return replace(self, reads=self.reads | reads)


def of_launch(timing: Timing) -> tuple[int, int]:
    """Return how many rounds a launch times, and how many calls each round has."""
    calls = max(1, math.ceil(ROUND / timing["seconds"]))
    rounds = int(LAUNCH / (calls * timing["seconds"]))
    return max(ROUNDS[0], min(ROUNDS[-1], rounds)), calls
