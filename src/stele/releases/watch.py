"""Newer releases of pinned packages, judged with code of the user. Pure, but for State.

What is worse in a release, and was not in the judged ones before it, belongs to this release: it is one cause, also of
what is worse in the releases after it.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from stele import files, schema
from stele.errors import SteleError
from stele.gate.entries import Verdict
from stele.gate.judgement import AGAINST
from stele.releases.index import Release
from stele.schema import about

ALL = "*"  # stands for all lines


class Candidate(NamedTuple):
    """A release of a pinned package, and the pins with it in place of the pinned one."""

    package: str
    version: str
    requirements: str

    @property
    def name(self) -> str:
        """As it is called in reports: ``jax-0.10.2``."""
        return f"{self.package}-{self.version}"


class Line(msgspec.Struct, frozen=True):
    """Something that is worse in a release: an item of the user's code, a metric, and the evidence."""

    line: Annotated[str, about("the item of your code, and the metric")]
    message: Annotated[str, about("the evidence as a sentence")]


class Judged(msgspec.Struct, frozen=True):
    """What a gate said of a release, or why there is no gate."""

    record: Annotated[str | None, about("record of the gate; null if there is none")]
    worse: Annotated[tuple[Line, ...], about("what is worse than with the pinned versions")] = ()
    unknown: Annotated[tuple[str, ...], about("lines without a verdict; `*` stands for all of them")] = ()
    failure: Annotated[str | None, about("why it could not be judged; null if it was")] = None
    budget: Annotated[float, about("budget of the gate so far, all nights together", "s")] = 0.0

    @property
    def is_final(self) -> bool:
        return self.failure is None and not self.unknown


class Worse(NamedTuple):
    """A line, and the first release in which it is worse. ``machine`` measured it."""

    line: str
    release: str
    machine: str
    message: str
    before: float | None = None
    after: float | None = None
    otava_agrees: bool | None = None


class Nights(msgspec.Struct):
    """What all nights of the same pins and code on a machine have shown: the content of a State."""

    judged: dict[str, Judged] = msgspec.field(default_factory=dict)  # by the name of the release
    reported: tuple[str, ...] = ()  # lines that were reported, and are still worse


class State:
    """The nights so far, in a file that is written after each gate."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.nights = schema.of_document(schema.read(path), Nights)
        except FileNotFoundError:
            self.nights = Nights()
        except ValueError as error:
            raise SteleError(
                f"{path} cannot be read: {error}. Delete it: then all releases are judged again."
            ) from None

    def save(self) -> None:
        files.write_text(self.path, schema.document(self.nights))


def parse_pins(texts: Sequence[str]) -> dict[str, str]:
    """Return the version of each package. Raises SteleError, which quotes what is no ``package==version``."""
    pins: dict[str, str] = {}
    for text in texts:
        try:
            requirement = Requirement(text)
            [pin] = requirement.specifier
            if pin.operator != "==" or requirement.marker or requirement.extras or pin.version.endswith("*"):
                raise ValueError(text)
        except (InvalidRequirement, ValueError):
            raise SteleError(f"{text!r} is no pinned package. Write it with its version: jax==0.10.1") from None
        name = canonicalize_name(requirement.name)
        if name in pins:
            raise SteleError(f"{name} is pinned twice: {pins[name]} and {pin.version}. Leave out one of them.")
        pins[name] = pin.version
    return pins


def as_requirements(pins: Mapping[str, str]) -> str:
    """Return the pins as OLD and NEW of a gate have them: ``jax==0.10.1 flax==0.12.0``."""
    return " ".join(f"{name}=={version}" for name, version in pins.items())


def newer(
    pins: Mapping[str, str], package: str, releases: Iterable[Release], last: int, *, prereleases: bool = False
) -> list[Candidate]:
    """Return at most the ``last`` releases of a package that are newer than the pinned one, the oldest first.

    Raises SteleError if the pinned one is newer than all ``releases``, so that it cannot exist.
    """
    versions = sorted({release.version for release in releases}, key=Version)
    pinned = Version(pins[package])
    if not versions or pinned > Version(versions[-1]):
        newest = f"The newest is {versions[-1]}." if versions else "None has a wheel."
        raise SteleError(f"{package} has no release {pins[package]}. {newest}")
    later = [
        version
        for version in versions
        if Version(version) > pinned and (prereleases or not Version(version).is_prerelease)
    ]
    return [Candidate(package, version, as_requirements({**pins, package: version})) for version in later[-last:]]


def judge(verdicts: Sequence[Verdict], record: Path, budget: float) -> Judged:
    """Return what the verdicts of a gate say of a release."""
    worse = tuple(
        Line(line_of(each), each.message.splitlines()[0])
        for each in verdicts
        if each.status in AGAINST and each.metric != "control"
    )
    unknown = (ALL if each.metric == "control" else line_of(each) for each in verdicts if each.status == "INCONCLUSIVE")
    return Judged(str(record), worse, tuple(unknown), budget=budget)


def line_of(verdict: Verdict) -> str:
    parts = (verdict.task, "" if verdict.phase == "all" else verdict.phase, verdict.metric)
    return " ".join(filter(None, parts))


def worse_lines(judged: Sequence[tuple[str, Judged]], machine: str) -> list[Worse]:
    """Return what is worse at the end of the ``judged`` releases of a package, the oldest first.

    The release of a line is the first one of those at the end in which it is worse. A release without a verdict on it
    is passed over.
    """
    lines: dict[str, Worse] = {}
    for name, result in judged:
        if result.record is None:  # never judged
            continue
        now = {each.line: each for each in result.worse}
        unknown = set(lines) if ALL in result.unknown else set(result.unknown)
        lines = {line: worse for line, worse in lines.items() if line in now or line in unknown}
        for line, each in now.items():
            lines.setdefault(line, Worse(line, name, machine, f"{line}: {each.message}"))
    return list(lines.values())
