"""A subject: what is judged, with all that the gate, bisect, the releases and explain ask of it.

The command line names a subject, which is then passed as one value. These modules never ask which kind it is.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from stele.environments import Environment
from stele.environments.arms import Needs
from stele.measuring.content import NOTHING, Reads
from stele.measuring.measure import Plan
from stele.measuring.run import NO_OPTIONS, Options

PHASES = ("train", "infer")
# what the numbers of NEW are compared with: numbers that a package brings, or those of OLD; of a program of the user,
# what its items do and compute in OLD
GOLDEN_NUMBERS, OLD, BEHAVIOUR = "golden numbers", "OLD", "behaviour"

Say = Callable[[str], object]


class Cell(NamedTuple):
    """What one launch measures: a part of a subject, in one phase."""

    task: str
    phase: str

    def __str__(self) -> str:
        return f"{self.task} {self.phase}"


class Comparison(NamedTuple):
    """How the subject that NEW has differs from that of OLD, before anything is measured."""

    differences: tuple[str, ...] = ()  # of NEW from OLD; the first one decides
    failure: str | None = None  # why NEW does not have it
    renamed: bool = False  # whether the numbers that NEW loads have other names or shapes


class OtherArm(NamedTuple):
    """The absolute paths of what an arm wrote for the other one."""

    weights: Path | None = None  # .npz: its initial weights
    values: Path | None = None  # .npz: what its example_inputs() returned
    checkpoint: Path | None = None  # a folder: the weights as its library writes them


class InBoth(NamedTuple):
    """A subject as both arms have it."""

    subject: "Subject"
    old: Environment
    new: Environment
    compared: Comparison = Comparison()
    reads: Reads = NOTHING  # what it has read in NEW


@dataclass
class InOld:
    """A subject as OLD has it."""

    subject: "Subject"
    old: Environment

    def alone(self, new: Environment) -> InBoth:
        """Return the subject without asking NEW, which cannot be imported."""
        return InBoth(self.subject, self.old, new)

    def compare(self, new: Environment) -> InBoth:
        """Ask NEW for the subject, and return how it differs."""
        return self.alone(new)


class Subject:
    """What is judged. Each kind overrides what it gives in another way.

    ``resolve`` completes a subject with what OLD says of it.
    """

    # what the numbers of NEW are compared with
    reference: str = OLD
    # the names of what is judged; None for all that networks have
    metrics: tuple[str, ...] | None = None
    # whether two launches at the same time would disturb each other
    alone: bool = False
    # the metric of a threshold that names none
    clock: str = "step"
    # whether it reports metrics of its own, whose names are unknown before it has run
    reports: bool = False
    # why it cannot be measured on several devices, and what to do; None if it can
    one_device: str | None = None
    # what to do if the accuracy is to be judged, and nothing in the subject has one
    accuracy_remedy: str = ""

    @property
    def needs(self) -> Needs:
        """What is installed in each arm, beside what OLD and NEW name."""
        return Needs()

    @property
    def names(self) -> tuple[str, ...]:
        """The tasks of its cells."""
        raise NotImplementedError

    @property
    def label(self) -> str:
        """How messages call it; empty if its cells say it."""
        return ""

    @property
    def words(self) -> list[str]:
        """The words of a command that name it, beside the names of its cells."""
        return []

    @property
    def root(self) -> Path:
        """The absolute folder to which the names of its files are relative."""
        return Path.cwd()

    @property
    def tuned(self) -> bool:
        """Whether it runs as fast as Stele can make its framework; else as the user runs it."""
        return self.needs.described

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that it reads, as far as they are known."""
        return ()

    def cells(self, phase: str | None = None) -> tuple[Cell, ...]:
        """Return its cells, or those of one ``phase``."""
        return tuple(Cell(name, part) for name in self.names for part in ([phase] if phase else PHASES))

    def as_request(self, other: OtherArm | None = None) -> dict[str, Any] | None:
        """Return what a worker receives to import it before anything is measured; None if its name is enough.

        ``other`` are the files that another arm wrote, from which this one starts.
        """
        return None

    def facts(self) -> dict[str, Any]:
        """Return what the header of a record says about it, beside its cells."""
        return {}

    def files(self, environment: Environment) -> list[Path]:
        """Return the files that decide what it does in an environment, as far as they are known."""
        return []

    def launch_seconds(self, cell: Cell) -> float | None:
        """Return about how long the steps of a launch take, as its first launches say it; None if they do not."""
        return None

    def apart(self, environment: Environment) -> list[Path]:
        """Return paths of the user's code. Of an editable package with one of them, the files that are read count."""
        return self.files(environment)

    def data(self, names: Iterable[str]) -> dict[str, str | None]:
        """Return the origin and the fingerprint of the data of some of its ``names``, as a content has them."""
        return {}

    def options(self) -> dict[str, str | None]:
        """Return the options of the command line that decide what it does, as a content has them."""
        return {}

    def announce(self, names: Iterable[str], say: Say) -> None:
        """Find the data of some of its ``names``, and say what the user should know of it."""

    def unmeasured(self, phases: Collection[str]) -> list[str]:
        """Return the phases that a reader expects in a verdict on it, and that are not in ``phases``."""
        return [phase for phase in PHASES if phase not in phases]

    def why_no_metric(self, metric: str) -> str | None:
        """Return why it cannot be judged by a metric, and what to do; None if it can."""
        return None

    def scales(self, name: str) -> tuple[str, ...] | None:
        """Return the scales that one of its ``names`` has; None for those that all have."""
        return None

    def target_accuracy(self, name: str, scale: str) -> float | None:
        """Return the accuracy that a timed training must reach; None if nothing defines it."""
        return None

    def has_accuracy(self, name: str) -> bool:
        """Return whether right answers of it can be counted."""
        return False

    def parity_phase(self, phases: Collection[str]) -> str:
        """Return the phase of a verdict on its parity if it is measured in these phases; "all" for several."""
        return next(iter(phases)) if len(phases) == 1 else "all"

    def plan(self, cell: Cell, scale: str, options: Options = NO_OPTIONS) -> Plan:
        """Return what a worker is asked in a launch."""
        raise NotImplementedError

    def require(self) -> None:
        """Raise SteleError for what its text shows to be wrong, before anything is compared or built."""

    def resolve(self, old: Environment, cells: Sequence[Cell], *, timeout: float, say: Say) -> InOld:
        """Return it as OLD has it, and say what it is. ``timeout`` is in seconds.

        Raises SteleError if it cannot be measured in these ``cells``.
        """
        self.announce((cell.task for cell in cells), say)
        return InOld(self, old)

    def in_environment(self, environment: Environment, *, timeout: float, say: Say) -> tuple["Subject", Environment]:
        """Return it as an environment has it, and that with its framework, to measure it without another release."""
        return self, environment

    def with_reads(self, reads: Reads) -> "Subject":
        """Return it with more files and variables that it reads: they decide what is measured."""
        return self

    def reproduction(self) -> dict[str, str]:
        """Return the text of its files by name, for a report to others. Raises SteleError if they are not complete."""
        return {}
