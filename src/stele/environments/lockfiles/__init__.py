"""Read the packages that a lock file, a requirements file or a pyproject.toml names. Nothing in it is executed.

    requirements                *.txt, and *.lock files of pip-compile and uv pip compile; -r and -c are followed
    pylock                      pylock.toml and pylock.<name>.toml (PEP 751)
    uv, poetry, pdm, pipfile    the lock files of these programs, without optional groups
    conda                       environment.yml; packages that only conda has are left out
    pyproject                   the dependencies of a project

The packages of an extra are left out unless the extra is selected. The project itself and packages in local folders are
left out. Markers are kept for uv, which evaluates them.
"""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name, canonicalize_version

from stele.environments.lockfiles.conda import read_conda
from stele.environments.lockfiles.extras import check_extras, declared_extras
from stele.environments.lockfiles.formats import SUFFIXES, is_conventional, is_lockfile, kind_of, load
from stele.environments.lockfiles.locks import read_pdm, read_pipfile, read_pylock, read_uv
from stele.environments.lockfiles.poetry import read_poetry, read_pyproject
from stele.environments.lockfiles.requirements import read_requirements, stated_python
from stele.environments.lockfiles.source import ADVICE, Lines, Source, Table, shorten, wheel_platforms
from stele.errors import SteleError

__all__ = [
    "SUFFIXES",
    "Locked",
    "exact_pins",
    "is_conventional",
    "is_lockfile",
    "pinned_version",
    "read",
    "wheel_platforms",
]
READERS: dict[str, Callable[[Source, Table], tuple[Lines, str]]] = {
    "uv": read_uv,
    "pylock": read_pylock,
    "poetry": read_poetry,
    "pdm": read_pdm,
    "pipfile": read_pipfile,
    "pyproject": read_pyproject,
    "conda": read_conda,
}


class Locked(NamedTuple):
    """PEP 508 lines, the Python versions that the file states, its kind, and the lines of its -c files."""

    requirements: tuple[str, ...]
    python: str | None
    kind: str
    constraints: tuple[str, ...] = ()


def read(
    name: str,
    content: str,
    sibling: Callable[[str], str] | None = None,
    *,
    allow_vcs: bool = False,
    extras: Iterable[str] = (),
) -> Locked:
    """Return the packages in the file called ``name``.

    ``sibling`` returns the text of a file by its path relative to the folder of ``name``; -r and -c need it. Raises
    SteleError, with the name and the line, if the content is not understood or names no package, if it has installer
    options, if it pins one package twice, if it has a URL and ``allow_vcs`` is not set, or if it lacks one of the
    ``extras``.
    """
    locked = parse(Source(name, sibling, allow_vcs, extras=normalized(extras)), content)
    if not locked.requirements:
        raise SteleError(
            f"{name} names no package. Name a file that lists the framework, such as torch==2.13.0."
        )
    check_pins(name, [*locked.requirements, *locked.constraints])
    return locked


def exact_pins(
    name: str, content: str, sibling: Callable[[str], str] | None = None, *, extras: Iterable[str] = ()
) -> dict[str, str]:
    """Return the exact pins that apply on this machine by canonical name. Installer options and URLs are skipped."""
    locked = parse(Source(name, sibling, lenient=True, extras=normalized(extras)), content)
    lines = [*locked.requirements, *locked.constraints]
    applicable = [line for line in lines if pinned_version(line) and applies(Requirement(line))]
    check_pins(name, [line.partition(";")[0] for line in applicable])
    return {canonicalize_name(Requirement(line).name): pinned_version(line) or "" for line in applicable}


def extras_of(name: str, content: str) -> list[str]:
    """Return the extras that a lock file or a project declares."""
    kind = kind_of(name, content)
    if kind == "requirements":
        return []
    source = Source(name, lenient=True)
    return declared_extras(source, kind, load(source, kind, content))


def normalized(extras: Iterable[str]) -> frozenset[str]:
    return frozenset(map(canonicalize_name, extras))


def pinned_version(requirement: str) -> str | None:
    """Return "2.13.0" of "torch==2.13.0", or None for a range or a URL."""
    parts = Requirement(requirement).specifier
    versions = [part.version for part in parts if part.operator in ("==", "===")]
    return next((version for version in versions if not version.endswith(".*")), None)


def applies(requirement: Requirement) -> bool:
    """Return whether the marker holds for the interpreter of this process; True if that cannot be evaluated."""
    try:
        return requirement.marker is None or requirement.marker.evaluate({"extra": ""})
    except ValueError:
        return True


def check_pins(name: str, lines: Iterable[str]) -> None:
    """Raise SteleError, with both lines, if a package has two different pins under the same marker."""
    seen: dict[tuple[str, str], str] = {}
    for line in lines:
        requirement, version = Requirement(line), pinned_version(line)
        if version is None:
            continue
        earlier = seen.setdefault((canonicalize_name(requirement.name), str(requirement.marker)), line)
        if canonicalize_version(pinned_version(earlier) or "") != canonicalize_version(version):
            raise SteleError(
                f"{name} pins {requirement.name} twice: {earlier!r} and {line!r}. Keep one of them."
            )


def parse(source: Source, content: str) -> Locked:
    """Return the packages in a file, which may be none."""
    kind = kind_of(source.file, content)
    if kind == "requirements":
        check_extras(source, kind, {})
        requirements, constraints = read_requirements(source, content)
        return Locked(unique(requirements), stated_python(content), kind, unique(constraints))
    try:
        data = load(source, kind, content)
        check_extras(source, kind, data)
        requirements, python = READERS[kind](source, data)
        # any patch release of a Python serves: the packages are built for the minor release
        python = re.sub(r"==\s*(\d+\.\d+)(\.\d+)?\s*(?=,|$)", r"==\1.*", python)
        return Locked(unique(requirements), str(SpecifierSet(python)) or None, kind)
    except (ValueError, RecursionError) as error:
        raise source.error(f"cannot be understood: {shorten(str(error))}. {ADVICE}.") from None


def unique(lines: Lines) -> tuple[str, ...]:
    """Return the lines without repetitions."""
    return tuple(dict.fromkeys(lines))
