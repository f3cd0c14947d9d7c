"""Read the description of an environment from a TOML file.

    label           the name in tables
    framework       the module of ``stele_worker.frameworks`` and ``stele_worker.recipes.<task>``
    imports         top-level modules whose import must succeed
    variables       environment variables of its worker; {folder} is the folder of the built environment
    on_amd          environment variables that its worker has in addition on a processor of AMD
    command         what starts its worker, default ``python -m stele_worker``; {python} is the built interpreter
    python          the interpreter to build it with, such as ==3.8.*; default: it uses the interpreter of the host
    devices         supported devices, of cpu and cuda; default: all
    only_because    why it does not support the other devices
    precisions      supported precisions, of fp32, tf32 and bf16; default: all
    parallel        how it trains on several devices; default: it has no recipe for that
    varies          why two launches with the same seed may differ bit by bit; default: they must not
    [requirements]  the packages to install; the value is the reason for the pin
    [libraries]     system libraries: file = {package = "Debian package", link = "the name that the framework loads"}
    [programs]      programs that must be on PATH; the value is the instruction to install one
    [absent]        unsupported cells, "task" or "task phase", or the phase "time-to-accuracy"; the value is the reason
    [forms]         the form in which it computes a task, if that is not the default form of the Task
    [modes.<id>]    how it executes. The first mode is the environment itself; each other one becomes an environment
                    <name>-<id>, which has these keys of its own, in addition to those above:
                    label (in tables), reason (what the mode changes, and why), devices, phases, variables, programs,
                    absent, varies, on_amd (in place of that above), parallel (how it trains on several devices, and
                    only on several; empty: it cannot),
                    eager (the phases, of train and infer, in which operations are executed one by one, and the tasks in
                    which they are so in both)

``<name>.lock`` in the same folder pins every package with its hash; ``stele env lock`` writes it.
"""

import dataclasses
import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

from stele import files, schema
from stele.environments.lockfiles.source import parse_requirement
from stele.errors import SteleError
from stele.text import printable
from stele_worker import tasks
from stele_worker.protocol import TIME_TO_ACCURACY

MODULE = ("-m", "stele_worker")
REQUESTED = "requested"  # the reason for a requirement that a user typed
NEEDED = "needed"  # and for one that Stele adds to it
LONGEST = 100  # letters in a name as a part of a file name; two of them and a date make a file name


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
class Environment:
    """A framework in an interpreter, with everything that its worker needs to start. Tables show one per row."""

    name: str
    label: str
    framework: str
    imports: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    on_amd: dict[str, str] = field(default_factory=dict)
    command: tuple[str, ...] | None = None
    python: str | None = None
    parallel: str | None = None
    several: bool = False  # whether it is absent on one device
    varies: str | None = None
    requirements: dict[str, str] = field(default_factory=dict)
    libraries: dict[str, dict[str, str]] = field(default_factory=dict)
    programs: dict[str, str] = field(default_factory=dict)
    devices: tuple[str, ...] | None = None
    only_because: str | None = None
    precisions: tuple[str, ...] | None = None
    phases: tuple[str, ...] | None = None  # "train", "infer"
    absent: dict[str, str] = field(default_factory=dict)
    forms: dict[str, str] = field(default_factory=dict)
    modes: dict[str, Mode] = field(default_factory=dict)
    mode: str | None = None  # one of ``modes``; None if there are none
    base: str | None = None  # the name of this environment in its first mode; None if this is it
    eager: tuple[str, ...] = ()  # phases and tasks in which operations are executed one by one
    lock: Path | None = None  # the file that pins its packages; it may not exist yet
    prefer: Path | None = None  # another lock file: its versions are taken where the requirements allow it
    upgraded: tuple[str, ...] = ()  # packages whose versions in ``prefer`` are not taken
    constraints: tuple[str, ...] = ()  # versions that are allowed for packages, also if they are not required
    options: tuple[str, ...] = field(
        default=(), repr=False
    )  # of pip: which index is used, perhaps with a password
    hashes: dict[str, frozenset[str]] = field(
        default_factory=dict
    )  # package: those that a user's file allows
    messages: tuple[str, ...] = ()  # what a user's file has and this environment leaves out

    def __hash__(self) -> int:
        return hash(self.name)

    def why_one_device(self, phase: str) -> str | None:
        """Return why this environment runs a phase on one device only, or None if it can use several."""
        if phase != "train":
            return "several devices are measured in training only"
        return None if self.parallel else f"{self.label} has no recipe for several devices"

    def why_absent(
        self, task: str, phase: str, *, device: str, precision: str, devices: int = 1
    ) -> str | None:
        """Return why this environment does not support a cell on so many devices, or None if it does."""
        if devices > 1 and (reason := self.why_one_device(phase)):
            return reason
        if devices == 1 and self.several:
            return f"{self.label} needs several devices: use --devices 2 or more"
        if phase == TIME_TO_ACCURACY:
            return self.absent.get(phase) or self.why_absent(
                task, "train", device=device, precision=precision
            )
        if self.devices is not None and device not in self.devices:
            because = f": {self.only_because}" if self.only_because else ""
            return f"{self.label} supports only {' and '.join(self.devices)} here, not {device}{because}"
        if self.precisions is not None and precision not in (*self.precisions, "default"):
            return f"{self.label} supports only {' and '.join(self.precisions)} here, not {precision}"
        if self.phases is not None and phase not in self.phases:
            reason = self.modes[self.mode].get("reason") if self.mode else None
            only = f"{self.label} has {' and '.join(self.phases)} only"
            return f"{only}: {reason}" if reason else only
        absent = self.absent.get(f"{task} {phase}", self.absent.get(task))
        return absent or tasks.why_absent(task, self.framework, phase)

    @property
    def needs_gpu(self) -> bool:
        return self.devices == ("cuda",) and self.base is None

    @property
    def slug(self) -> str:
        """The name as a file name."""
        return slug(self.name)


def slug(name: str) -> str:
    """Return a name as a part of a file name: every character that is unsafe there becomes "_".

    The end of a long name becomes a hash, because the operating system limits the length of a file name.
    """
    safe = re.sub(r"[^A-Za-z0-9_.=-]", "_", name)
    if len(safe) <= LONGEST:
        return safe
    return f"{safe[: LONGEST - 9]}-{hashlib.sha256(name.encode(errors='replace')).hexdigest()[:8]}"


# NumPy in float64 in the interpreter of the host: it computes the golden numbers and is used in tests
ORACLE = Environment(name="numpy", label="NumPy", framework="numpy")


def read(path: Path) -> list[Environment]:
    """Return the environment that a file describes, and one for each of its other modes."""
    try:
        facts = files.parse_toml(files.read_text(path))
        environment = from_facts(path, facts)
        check_printable(path, environment)
    except (ValueError, TypeError, RecursionError) as error:
        raise SteleError(
            f"{path} does not describe an environment: {error}. It needs at least a label and a framework."
        ) from None
    return [environment, *(in_mode(environment, mode) for mode in list(environment.modes)[1:])]


def in_mode(environment: Environment, mode: str) -> Environment:
    """Return the environment in another of its modes."""
    facts = environment.modes[mode]
    devices, phases = facts.get("devices"), facts.get("phases")
    return dataclasses.replace(
        environment,
        name=f"{environment.name}-{mode}",
        label=f"{environment.label}, {facts['label']}",
        mode=mode,
        base=environment.name,
        eager=tuple(facts.get("eager", ())),
        devices=environment.devices if devices is None else tuple(devices),
        variables={**environment.variables, **facts.get("variables", {})},
        on_amd=facts.get("on_amd", environment.on_amd),
        programs={**environment.programs, **facts.get("programs", {})},
        phases=None if phases is None else tuple(phases),
        parallel=facts.get("parallel", environment.parallel),
        several=bool(facts.get("parallel")),
        absent={**environment.absent, **facts.get("absent", {})},
        varies=facts.get("varies", environment.varies),
    )


def check_printable(path: Path, environment: Environment) -> None:
    """Raise SteleError if a name has control characters: it would control the terminals that show it."""
    labels = [("label", mode["label"]) for mode in environment.modes.values()]
    names = [("mode", mode) for mode in environment.modes]
    for what, value in (("name", environment.name), ("label", environment.label), *labels, *names):
        if value != printable(value, keep=""):
            raise SteleError(
                f"{printable(str(path), keep='')} gives its environment a {what} with control characters, "
                f"{value!r}. Remove them."
            )


def check(facts: dict[str, Any]) -> None:
    """Raise ValueError if the value of a key has the wrong type, or is no module, package or command."""
    schema.check_fields(facts, Environment)
    for module in facts.get("imports", ()):
        if not all(part.isidentifier() for part in module.split(".")):
            raise ValueError(f"imports has {module!r}, which is no module")
    for requirement in facts.get("requirements", ()):
        parse_requirement(requirement)
    for library, value in facts.get("libraries", {}).items():
        if "package" not in value:
            raise ValueError(f"libraries has no package for {library!r}")
    for name, mode in facts.get("modes", {}).items():
        check_mode(name, mode)
    if facts.get("command") == []:
        raise ValueError("command is empty")


def check_mode(name: str, mode: Any) -> None:
    """Raise ValueError if a mode has no label, the wrong type, or a key that no mode has."""
    schema.check(mode, Mode, f"modes.{name}")
    if unknown := set(mode) - set(Mode.__annotations__) - {"label"}:
        raise ValueError(f"modes.{name} has {', '.join(sorted(unknown))}, which no mode has")


def from_facts(path: Path, facts: dict[str, Any]) -> Environment:
    """Return the environment with the content of the TOML file at ``path``."""
    check(facts)
    lists = {name: tuple(value) for name, value in facts.items() if isinstance(value, list)}
    has_lock = "python" in facts and facts.get("requirements")
    lock = path.with_suffix(".lock") if has_lock else None
    mode = next(iter(facts.get("modes", {})), None)
    eager = tuple(facts["modes"][mode].get("eager", ())) if mode else ()
    return Environment(name=path.stem, **{**facts, **lists, "lock": lock, "mode": mode, "eager": eager})
