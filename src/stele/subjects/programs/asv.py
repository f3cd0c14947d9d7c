"""An asv suite of the user: its benchmarks of time and memory, and what it tracks."""

import re
from dataclasses import dataclass
from pathlib import Path

from stele.environments.arms import Needs
from stele.errors import SteleError
from stele.subjects.base import Cell
from stele.subjects.programs.base import Program

MEMORY = re.compile(r"(^|\.)(peakmem|mem|PeakMem|Mem)_?\w*(\(|$)")  # in the name of a benchmark


@dataclass(frozen=True)
class Asv(Program):
    """A folder of benchmarks of asv."""

    kind = "asv"
    phase = "benchmark"
    item = "benchmark"
    metrics = ("outcomes", "values", "round", "memory")
    clock = "round"

    @property
    def label(self) -> str:
        return f"asv {self.arguments[0]}"

    @property
    def needs(self) -> Needs:
        return Needs(("asv-runner",))

    def cells(self, phase: str | None = None) -> tuple[Cell, ...]:
        return tuple(Cell(name, "memory" if MEMORY.search(name) else self.phase) for name in self.timings)


def parse(folder: str, here: Path) -> Asv:
    """Return the suite in a folder. Raises SteleError if there is none."""
    path = here / folder
    if not path.is_dir():
        raise SteleError(f"--asv {folder}: there is no such folder. Name the folder of the benchmarks.")
    if not (path / "__init__.py").is_file():
        raise SteleError(f"--asv {folder}: it has no __init__.py, as a folder of asv benchmarks has.")
    return Asv((folder,), here.absolute())
