"""An environment: a framework in an interpreter, what it supports, and how its worker starts.

``description`` reads one from a file, ``pins`` makes one of a requirement, ``builds`` installs it, and ``state`` says
whether it is ready on this machine.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

from stele.text import slug
from stele_suite import tasks
from stele_worker.protocol import TIME_TO_ACCURACY

MODULE = ("-m", "stele_worker")
REQUESTED = "requested"  # the reason for a requirement that a user typed
NEEDED = "needed"  # and for one that Stele adds to it


class ModeLabel(TypedDict):
    label: str


class Mode(ModeLabel, total=False):
    """A way in which a framework executes. All except the label changes the environment of the first mode."""

    reason: str
    eager: list[str]
    devices: list[str]
    phases: list[str]
    parallel: str
    absent: dict[str, str]
    variables: dict[str, str]
    on_amd: dict[str, str]
    programs: dict[str, str]
    varies: str


@dataclass(frozen=True)
class Support:
    """What an environment can measure. None, or an empty value, restricts nothing."""

    devices: tuple[str, ...] | None = None
    only_because: str | None = None  # why it does not support the other devices
    precisions: tuple[str, ...] | None = None
    phases: tuple[str, ...] | None = None  # "train", "infer"
    absent: dict[str, str] = field(default_factory=dict)  # "task" or "task phase": the reason
    parallel: str | None = None  # how it trains on several devices; None or empty if it cannot
    several: bool = False  # whether it is absent on one device


@dataclass(frozen=True)
class Resolution:
    """What decides the versions of an environment's packages, beside its requirements."""

    prefer: Path | None = None  # another lock file: its versions are taken where the requirements allow it
    upgraded: tuple[str, ...] = ()  # packages whose versions in ``prefer`` are not taken
    constraints: tuple[str, ...] = ()  # versions that are allowed for packages, also if they are not required
    options: tuple[str, ...] = field(default=(), repr=False)  # of pip: which index is used, perhaps with a password
    hashes: dict[str, frozenset[str]] = field(default_factory=dict)  # package: those that a user's file allows
    messages: tuple[str, ...] = ()  # what a user's file has and this environment leaves out


@dataclass(frozen=True)
class Environment:
    """A framework in an interpreter, with everything that its worker needs to start. Tables show one per row."""

    name: str
    label: str
    framework: str

    # how its worker starts
    command: tuple[str, ...] | None = None
    variables: dict[str, str] = field(default_factory=dict)
    on_amd: dict[str, str] = field(default_factory=dict)

    # what is installed
    python: str | None = None
    imports: tuple[str, ...] = ()
    requirements: dict[str, str] = field(default_factory=dict)
    libraries: dict[str, dict[str, str]] = field(default_factory=dict)
    programs: dict[str, str] = field(default_factory=dict)
    # the file that pins its packages; it may not exist yet
    lock: Path | None = None
    resolution: Resolution = Resolution()

    # what it computes
    support: Support = Support()
    forms: dict[str, str] = field(default_factory=dict)
    varies: str | None = None
    modes: dict[str, Mode] = field(default_factory=dict)
    mode: str | None = None  # one of ``modes``; None if there are none
    base: str | None = None  # the name of this environment in its first mode; None if this is it
    eager: tuple[str, ...] = ()  # phases and tasks in which operations are executed one by one

    def __hash__(self) -> int:
        return hash(self.name)

    def why_absent(self, task: str, phase: str, *, device: str, precision: str, devices: int = 1) -> str | None:
        """Return why this environment does not support a cell on this number of devices, or None if it does."""
        support = self.support
        if devices > 1 and phase != "train":
            return "several devices are measured in training only"
        if devices > 1 and not support.parallel:
            return f"{self.label} has no recipe for several devices"
        if devices == 1 and support.several:
            return f"{self.label} needs several devices: use --devices 2 or more"
        if phase == TIME_TO_ACCURACY:
            return support.absent.get(phase) or self.why_absent(task, "train", device=device, precision=precision)
        if support.devices is not None and device not in support.devices:
            because = f": {support.only_because}" if support.only_because else ""
            return f"{self.label} supports only {' and '.join(support.devices)} here, not {device}{because}"
        if support.precisions is not None and precision not in (*support.precisions, "default"):
            return f"{self.label} supports only {' and '.join(support.precisions)} here, not {precision}"
        if support.phases is not None and phase not in support.phases:
            reason = self.modes[self.mode].get("reason") if self.mode else None
            only = f"{self.label} has {' and '.join(support.phases)} only"
            return f"{only}: {reason}" if reason else only
        absent = support.absent.get(f"{task} {phase}", support.absent.get(task))
        return absent or tasks.why_absent(task, self.framework, phase)

    @property
    def needs_gpu(self) -> bool:
        return self.support.devices == ("cuda",) and self.base is None

    @property
    def slug(self) -> str:
        """The name as a file name."""
        return slug(self.name)


# NumPy in float64 in the interpreter of the host: it computes the golden numbers and is used in tests
ORACLE = Environment(name="numpy", label="NumPy", framework="numpy")
