"""Read the packages that a lock file, a requirements file or a pyproject.toml names. Nothing in it is executed.

    requirements                *.txt, *.in, and *.lock files of pip-compile and uv pip compile; -r and -c are followed
    pylock                      pylock.toml and pylock.<name>.toml (PEP 751)
    uv, poetry, pdm, pipfile    the lock files of these programs, without optional groups
    conda                       environment.yml; packages that only conda has are left out
    pyproject, setup            the dependencies of a project; setup.py is read as text

The packages of an extra are left out unless the extra is selected. The project itself and packages in local folders are
left out. Markers are kept for uv, which evaluates them.
"""

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name, canonicalize_version

from stele.environments.lockfiles.conda import read_conda
from stele.environments.lockfiles.formats import (
    COMMANDS,
    INSTALLER,
    MANIFESTS,
    SCRIPT,
    SUFFIXES,
    UNREAD_LOCK,
    holds_packages,
    is_conventional,
    is_lock,
    is_lockfile,
    is_possible,
    is_searched,
    kind_of,
    load,
)
from stele.environments.lockfiles.locks import read_pdm, read_pipfile, read_pylock, read_uv
from stele.environments.lockfiles.names import known_name, spelled
from stele.environments.lockfiles.poetry import read_poetry, read_pyproject
from stele.environments.lockfiles.requirements import read_requirements, stated_python
from stele.environments.lockfiles.setuptools import read_setup
from stele.environments.lockfiles.source import ADVICE, Lines, Source, Table, shorten, wheel_platforms
from stele.errors import SteleError

__all__ = [
    "COMMANDS",
    "INSTALLER",
    "MANIFESTS",
    "SCRIPT",
    "SUFFIXES",
    "UNREAD_LOCK",
    "Locked",
    "extras_of",
    "holds_packages",
    "is_conventional",
    "is_lock",
    "is_lockfile",
    "is_possible",
    "is_searched",
    "known_name",
    "load",
    "mentions",
    "outline",
    "pinned_version",
    "read",
    "spelled",
    "wheel_platforms",
]
# keys that say where a package comes from
ORIGIN = (
    "source",
    "git",
    "rev",
    "tag",
    "branch",
    "ref",
    "revision",
    "url",
    "path",
    "index",
    "vcs",
    "archive",
)
READERS: dict[str, Callable[[Source, Table], tuple[Lines, str]]] = {
    "uv": read_uv,
    "pylock": read_pylock,
    "poetry": read_poetry,
    "pdm": read_pdm,
    "pipfile": read_pipfile,
    "pyproject": read_pyproject,
    "conda": read_conda,
    "setup.cfg": read_setup,
    "setup.py": read_setup,
}


@dataclass(frozen=True)
class Locked:
    """What a file names: PEP 508 lines, Python versions, its kind, the lines of its -c files, and options of pip."""

    requirements: tuple[str, ...]
    python: str | None
    kind: str
    constraints: tuple[str, ...] = ()
    options: tuple[str, ...] = ()  # which index is used, such as ``--extra-index-url URL``
    messages: tuple[str, ...] = field(default=(), compare=False)  # about lines that are left out
    included: Mapping[str, str] = field(default_factory=dict, compare=False)  # file: -r or -c
    places: Mapping[str, str] = field(default_factory=dict, compare=False)  # requirement: file and line
    local: Mapping[str, str] = field(default_factory=dict, compare=False)  # line that is left out: file and line
    # package: the hashes of its files, if all are known, and the URLs of its indexes
    hashes: Mapping[str, frozenset[str]] = field(default_factory=dict, compare=False)
    registries: Mapping[str, frozenset[str]] = field(default_factory=dict, compare=False)
    members: tuple[str, ...] = field(default=(), compare=False)  # folders of the projects that a uv.lock locks


def read(
    name: str,
    content: str,
    sibling: Callable[[str], str] | None = None,
    *,
    extras: Iterable[str] = (),
    **options: Any,
) -> Locked:
    """Return the packages in the file called ``name``.

    ``sibling`` returns the text of a file by its path relative to the folder of ``name``; -r and -c need it.
    ``options`` are more fields of the Source. Raises SteleError, with the name and the line, if the content is not
    understood or names no package, if it has an unknown installer option, if it pins one package twice, if it has a URL
    and ``allow_vcs`` is not set, or if it lacks one of the ``extras``.
    """
    locked = parse(Source(name, sibling, extras=normalized(extras), **options), content)
    if not locked.requirements:
        raise SteleError(f"{name} names no package. Name a file that lists the framework, such as torch==2.13.0.")
    check_pins(name, [*locked.requirements, *locked.constraints])
    return locked


def outline(
    name: str, content: str, sibling: Callable[[str], str] | None = None, *, extras: Iterable[str] = ()
) -> Locked:
    """Return the packages in a file that is compared and not installed: nothing in it is refused."""
    return parse(Source(name, sibling, lenient=True, extras=normalized(extras)), content)


def mentions(name: str, content: str, names: re.Pattern[str], *, kind: str | None = None) -> dict[str, frozenset[str]]:
    """Return what a lock file or a project says anywhere of packages with these ``names``, also in other groups.

    The packages have their names on PyPI. The file is read as one of a ``kind``; by default, its content says which.
    """
    kind = kind or kind_of(name, content)
    if kind in ("requirements", "conda"):
        return {}
    source = Source(name, lenient=True)
    data = load(source, kind, content)
    versions_of: dict[str, set[str]] = {}
    try:
        for package, version in required_in(data) if kind in MANIFESTS else locked_in(data):
            on_pypi = known_name(package, names)
            if on_pypi is not None:
                versions_of.setdefault(on_pypi, set()).add(version)
    except RecursionError:
        raise source.error("is nested too deeply.") from None
    return {package: frozenset(versions) for package, versions in versions_of.items()}


def locked_in(data: Table) -> Iterator[tuple[str, str]]:
    """Yield the name of each package in a lock file, and its version and source as text."""
    lists = [data.get("package"), data.get("packages")]
    tables = [table for rows in lists if isinstance(rows, list) for table in rows]
    sections = [section for section in data.values() if isinstance(section, dict)]  # of a Pipfile.lock
    tables += [{"name": name, **table} for part in sections for name, table in part.items() if isinstance(table, dict)]
    for table in tables:
        name, version = (table.get("name"), table.get("version")) if isinstance(table, dict) else (None, None)
        if isinstance(name, str) and (isinstance(version, str) or table.keys() & ORIGIN):
            text = as_text({key: table[key] for key in ("version", *ORIGIN) if key in table})
            yield name, re.sub(r"\?[^#\"]*#", "#", text)  # the branch or tag of a commit in a uv.lock


def required_in(data: object) -> Iterator[tuple[str, str]]:
    """Yield the name and the requirement of each package in a project, in any table, and where it comes from."""
    if isinstance(data, dict):
        for key, value in data.items():
            for item in value if isinstance(value, list) else [value]:
                is_version = isinstance(item, str) and re.match(r"[\d^~=<>!*]", item)
                if is_version or (isinstance(item, dict) and item.keys() & {"version", "channel", *ORIGIN}):
                    yield key, item if isinstance(item, str) else as_text(item)
    if isinstance(data, (dict, list)):
        for value in data.values() if isinstance(data, dict) else data:
            yield from required_in(value)
    elif isinstance(data, str):
        with contextlib.suppress(ValueError):
            requirement = Requirement(data)
            if requirement.specifier or requirement.url:
                yield requirement.name, str(requirement)


def as_text(table: Table) -> str:
    return json.dumps(table, sort_keys=True, default=str)


def extras_of(name: str, content: str) -> list[str]:
    """Return the extras that a lock file or a project declares."""
    kind = kind_of(name, content)
    if kind == "requirements":
        return []
    source = Source(name, lenient=True)
    return declared_extras(source, kind, load(source, kind, content))


def check_extras(source: Source, kind: str, data: Table) -> None:
    """Raise SteleError, with the extras that there are, for an extra that the file does not declare."""
    if not source.extras or source.lenient:
        return
    declared = sorted(map(canonicalize_name, declared_extras(source, kind, data)))
    unknown = ", ".join(repr(name) for name in sorted(source.extras.difference(declared)))
    if unknown:
        advice = f"It has: {', '.join(declared)}." if declared else "It has none. Leave --extra out."
        raise source.error(f"has no extra {unknown}. {advice}")


def declared_extras(source: Source, kind: str, data: Table) -> list[str]:
    """Return the extras of the project; PDM stores them as groups."""
    if kind == "uv":
        packages = source.items(data, "package", dict)
        return [extra for package in packages for extra in source.get(package, "optional-dependencies", dict)]
    if kind == "pdm":
        groups = source.items(source.get(data, "metadata", dict), "groups", str)
        return [group for group in groups if group != "default"]
    if kind == "pylock":
        return source.items(data, "extras", str)
    if kind in ("setup.cfg", "setup.py"):
        return list(source.get(data, "extras_require", dict))
    if kind == "poetry":
        return list(source.get(data, "extras", dict))
    project, tool = source.get(data, "project", dict), source.get(data, "tool", dict)
    poetry = source.get(source.get(tool, "poetry", dict), "extras", dict)
    return [*source.get(project, "optional-dependencies", dict), *poetry]


def normalized(extras: Iterable[str]) -> frozenset[str]:
    return frozenset(map(canonicalize_name, extras))


def pinned_version(requirement: str) -> str | None:
    """Return "2.13.0" of "torch==2.13.0", or None for a range or a URL."""
    parts = Requirement(requirement).specifier
    versions = [part.version for part in parts if part.operator in ("==", "===")]
    return next((version for version in versions if not version.endswith(".*")), None)


def check_pins(name: str, lines: Iterable[str]) -> None:
    """Raise SteleError, with both lines, if a package has two different pins under the same marker."""
    first_lines: dict[tuple[str, str], str] = {}
    for line in lines:
        requirement, version = Requirement(line), pinned_version(line)
        if version is None:
            continue
        earlier = first_lines.setdefault((canonicalize_name(requirement.name), str(requirement.marker)), line)
        if canonicalize_version(pinned_version(earlier) or "") != canonicalize_version(version):
            raise SteleError(f"{name} pins {requirement.name} twice: {earlier!r} and {line!r}. Keep one of them.")


def parse(source: Source, content: str) -> Locked:
    """Return the packages in a file, which may be none."""
    kind = kind_of(source.file, content)
    if kind == "requirements":
        check_extras(source, kind, {})
        return noted(source, read_requirements(source, content), stated_python(content), kind)
    try:
        data = load(source, kind, content)
        check_extras(source, kind, data)
        requirements, python = READERS[kind](source, data)
        # any patch release of a Python serves: the packages are built for the minor release
        python = re.sub(r"==\s*(\d+\.\d+)(\.\d+)?\s*(?=,|$)", r"==\1.*", python)
        return noted(source, requirements, str(SpecifierSet(python)) or None, kind)
    except (ValueError, RecursionError) as error:
        raise source.error(f"cannot be understood: {shorten(str(error))}. {ADVICE}.") from None


def noted(source: Source, requirements: Lines, python: str | None, kind: str) -> Locked:
    """Return the packages with what the source noted beside them."""
    notes = source.notes
    return Locked(
        requirements=unique(requirements),
        python=python,
        kind=kind,
        constraints=unique(notes.constraints),
        options=unique(notes.options),
        messages=unique(notes.messages),
        included=notes.included,
        places=notes.places,
        local=notes.local,
        hashes={name: frozenset(values) for name, values in notes.hashes.items() if values and "" not in values},
        registries={name: frozenset(urls) for name, urls in notes.registries.items()},
        members=unique(notes.members),
    )


def unique(lines: Lines) -> tuple[str, ...]:
    """Return the lines without repetitions."""
    return tuple(dict.fromkeys(lines))
