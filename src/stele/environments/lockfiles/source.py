"""Source: the file being read, the types of its values, and the requirements that it may contain."""

import dataclasses
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from packaging.requirements import Requirement
from packaging.tags import platform_tags
from packaging.utils import canonicalize_name, canonicalize_version, parse_wheel_filename

from stele.environments.lockfiles.markers import main_marker
from stele.environments.lockfiles.names import pypi_name
from stele.errors import SteleError
from stele.text import without_passwords

ADVICE = "Regenerate the file with the program that wrote it"
PYPI = ("https://pypi.org/simple", "https://pypi.python.org/simple")
DEEPEST = 20  # collections of a YAML file in one another, and files that include one another with -r

Value = TypeVar("Value", str, list[Any], dict[str, Any])
Table = dict[str, Any]
Lines = list[str]


@dataclasses.dataclass
class Notes:
    """What a file and the files that it includes have beside their requirements."""

    constraints: Lines = dataclasses.field(default_factory=list)
    options: Lines = dataclasses.field(default_factory=list)  # of pip, such as ``--extra-index-url URL``
    messages: Lines = dataclasses.field(default_factory=list)  # about lines that are left out
    included: dict[str, str] = dataclasses.field(default_factory=dict)  # file: the option that includes it
    places: dict[str, str] = dataclasses.field(default_factory=dict)  # requirement: file and line
    local: dict[str, str] = dataclasses.field(default_factory=dict)  # line of a local package: file and line
    # package: hashes of its files (an empty one if a file has none), and the URLs of its indexes
    hashes: dict[str, set[str]] = dataclasses.field(default_factory=dict)
    registries: dict[str, set[str]] = dataclasses.field(default_factory=dict)
    members: Lines = dataclasses.field(default_factory=list)  # folders of the projects that a uv.lock locks


@dataclasses.dataclass(frozen=True)
class Source:
    """The file being read, and what it may contain."""

    file: str
    sibling: Callable[[str], str] | None = None
    allow_vcs: bool = False
    lenient: bool = False  # skip options and unknown extras, and keep URLs, instead of refusing them
    skip_local: bool = False  # leave out local packages, with a message, instead of refusing them
    extras: frozenset[str] = frozenset()  # the normalized names of the extras to install
    folder: str = ""  # of an included file, relative to the folder of the first file
    depth: int = 0  # of the -r and -c that lead to this file
    base: Path = Path()  # the folder to which ``file`` is relative, for --find-links
    revision: str | None = None
    notes: Notes = dataclasses.field(default_factory=Notes)

    def place(self, number: int | None) -> str:
        return self.file if number is None else f"{self.file}, line {number}"

    def error(self, problem: str, line: str | None = None, number: int | None = None) -> SteleError:
        """Return an error with the file, the line and the problem."""
        quoted = "" if line is None else f"{shorten(line)} "
        return SteleError(f"{self.place(number)}: {quoted}{problem}")

    def get(self, table: Table, key: str, kind: type[Value]) -> Value:
        """Return a value of a table, or an empty one if there is none. Raises SteleError if its type is different."""
        value = table.get(key)
        if value is not None and not isinstance(value, kind):
            actual = type(value).__name__
            raise self.error(f"{shorten(key)} must be of type {kind.__name__}, but it is {actual}. {ADVICE}.")
        return kind() if value is None else value

    def items(self, table: Table, key: str, kind: type[Value]) -> list[Value]:
        """Return a list of values of one type, empty if there is none."""
        return [self.get({key: item}, key, kind) for item in self.get(table, key, list)]

    def requirement(self, line: str, number: int | None = None) -> Lines:
        """Return the normalized requirement as a list, which is empty if it is skipped."""
        try:
            requirement = parse_requirement(with_name(" ".join(line.split())))
            platforms = set() if self.lenient else wheel_platforms(requirement.url or "")
        except (ValueError, RecursionError):
            raise self.error("is not a requirement such as torch==2.13.0.", line, number) from None
        if requirement.url and not (self.allow_vcs or self.lenient):
            raise self.error("is installed from a URL. Pass --allow-vcs to allow this.", line, number)
        if platforms and platforms.isdisjoint({"any", *platform_tags()}):
            problem = f"is a wheel for {' and '.join(sorted(platforms))}, not for this machine. Pin the release."
            raise self.error(problem, line, number)
        self.notes.places.setdefault(str(requirement), self.place(number))
        return [str(requirement)]

    def pin(self, name: str, version: str, marker: str = "", *, url: str = "", groups: Iterable[str] = ()) -> Lines:
        """Return the requirement of one locked package as a list, which is empty if only other extras need it."""
        needed = main_marker(marker, groups, self.extras)
        text = f"{name} @ {url}" if url else f"{name}=={version}" if version else name
        return [] if needed is None else self.requirement(f"{text} ; {needed}" if needed else text)

    def origin(self, name: str, *, registry: str = "", hashes: Iterable[str] = ()) -> None:
        """Note the index of a package, which uv then uses, and the hashes of its files.

        Raises SteleError if the index is a folder, or a name that the file does not explain.
        """
        package = canonicalize_name(name)
        self.notes.hashes.setdefault(package, set()).update(hashes)
        if not registry:
            return
        self.notes.registries.setdefault(package, set()).add(registry.rstrip("/"))
        if "://" not in registry and not self.lenient:
            raise self.error(
                f"{package} comes from the index {shorten(registry)}, which is not a URL. Name OLD and NEW."
            )
        if registry.rstrip("/") not in PYPI:
            self.notes.options.append(f"--extra-index-url {registry}")

    def leave_out(self, line: str, number: int | None = None) -> None:
        """Note that a package in a local folder is left out."""
        self.notes.local[line] = self.place(number)
        problem = "is left out: it is a local or editable package. Add its dependencies with --with-project."
        self.notes.messages.append(str(self.error(problem, line, number)))


def parse_requirement(text: str) -> Requirement:
    """Return the requirement. Raises ValueError if it is not one, or if a version has too many digits."""
    requirement = Requirement(text)
    for part in requirement.specifier:
        canonicalize_version(part.version)
    return requirement


def shorten(line: str) -> str:
    """Return the quoted start of a line, without passwords."""
    line = without_passwords(line[:2000])
    return repr(line if len(line) <= 120 else line[:117] + "...")


def with_name(line: str) -> str:
    """Return "name @ URL" for a bare URL, with the name in the name of the wheel, after #egg=, or of the repository."""
    if not re.match(r"[A-Za-z+]+://", line):
        return line
    name = re.search(r"/([\w.]+)-[^/]+\.whl\b|[#&]egg=([\w.-]+)", line)
    if name:
        return f"{name[1] or name[2]} @ {line}"
    repository = re.match(
        r"(?:git|hg|svn|bzr)\+\w+://[^/\s]*/(?:[^\s;#?@]*/)?([\w.-]+?)(?:\.git)?/?(?=[\s;#?@]|$)", line
    )
    return f"{pypi_name(repository[1])} @ {line}" if repository else line


def wheel_platforms(url: str) -> set[str]:
    """Return the platforms of the wheel at a URL, empty if it is not a wheel. Raises ValueError if it is not valid."""
    name = unquote(urlsplit(url).path).rpartition("/")[2]
    return {tag.platform for tag in parse_wheel_filename(name)[3]} if name.endswith(".whl") else set()
