"""What decides a result: Stele's code, packages, files, data, variables. A result is used again only if all are equal.

A content is {group: {name: value}}, as a header keeps it. A value is a version, a text or a hash; None stands for what
is absent. What is read is remembered with its size and time, so that it is cheap to look again before each launch.
Sizes and times of installed files are read when a record is opened, and each time before something is written into it.

What the code of a model reads is known when it has run: each launch reports it, as a ``Reads``.
"""

import functools
import hashlib
import json
import locale
import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, NamedTuple, TypedDict

import stele
import stele_suite
import stele_worker
from stele.environments import Environment, builds, packages
from stele.environments.packages import Listing, Package
from stele.errors import SteleError
from stele.files import is_file
from stele.measuring.variables import deciding, portable, variable_hashes
from stele.schema import about
from stele.text import printable

Content = dict[str, dict[str, str | None]]
Group = dict[str, str | None]


class Groups(TypedDict, total=False):
    """What decides what is measured, beside the options. A gate is resumed only if all of it is equal.

    Each part is an object by name; the value is a text, or the hash of a content, and null if something is absent.
    """

    code: Annotated[Group, about("hashes of Stele's own packages, `stele`, `stele_suite` and `stele_worker`")]
    packages: Annotated[
        Group, about("by `jax in NEW`: the versions of all installed packages of both arms, and of `python`")
    ]
    installed: Annotated[
        Group,
        about(
            "by `jax in NEW`: hashes of the files of these packages; of a worker that is no Python, of the files in "
            "its command"
        ),
    ]
    files: Annotated[
        Group,
        about(
            "hashes of the model's files by path: its modules, what they read, the recipe, the task and the weights of "
            "`--pretrained`; of a file of more than 16 MiB its size and time; of `FOLDER/*`, which stands for very "
            "many, the number of files and the newest time; of `FOLDER/**` the names in a folder; null of a file that "
            "does not exist"
        ),
    ]
    data: Annotated[Group, about("origin and fingerprint of the data and the weights of each built-in task")]
    options: Annotated[Group, about("Only of a release: the settings, the scale and the options of the model")]
    variables: Annotated[
        Group,
        about(
            "by `XLA_FLAGS in NEW`: environment variables of the user and of the description of an environment that "
            "frameworks read, and the encoding of text"
        ),
    ]
    model_variables: Annotated[
        Group,
        about("hashes of the environment variables that the code of the model asks for; null for one that is not set"),
    ]
    environment: Annotated[
        Group, about("by `description in NEW`: hash of the rest of the description of an environment")
    ]


ORDER = (
    "code",
    "packages",
    "files",
    "data",
    "options",
    "variables",
    "model_variables",
)  # of groups in a message; others are last
SHOWN = ("packages", "data", "options", "variables")  # groups of readable values; others have hashes
OF_PACKAGES = ("packages", "installed")  # groups
OF_MODEL = ("files", "model_variables")  # groups: what the code of a model reads
OPTIONS = ("spec", "inputs", "optimizer", "weights_map", "target", "examples", "arguments")  # of a model or a program
GROUPS = {
    "code": "Stele itself",
    "packages": "the versions of its packages",
    "installed": "the files of its packages",
    "files": "the files of the model",
    "options": "the options of the model",
    "variables": "its environment variables",
    "model_variables": "the environment variables that the model reads",
    "environment": "its description",
}
UNKNOWN = "something that was not recorded"
DIGITS = 16  # of a hash
MOST, LONGEST = 3, 60  # changes that a message names, and letters of a value
BLOCK = 2**20  # bytes that are read at once
SOURCES = (".py", ".so")  # of an editable package
LARGE = 16 * 2**20  # bytes of a file that is not read: its size and its time stand for its bytes
ALL = "*"  # in place of a name: all files of a folder
NAMES = "**"  # in place of a name: the names of all that is in a folder


class Reads(NamedTuple):
    """What the code of a model has read in one process, as the worker reports it.

    ``noticed`` are files that perhaps another process has read.
    """

    files: tuple[Path, ...] = ()
    noticed: tuple[Path, ...] = ()
    variables: tuple[str, ...] = ()

    @classmethod
    def of(cls, answer: Mapping[str, Sequence[str]]) -> "Reads":
        """Return what an answer of a worker says."""
        files, noticed = (tuple(map(Path, answer.get(name, ()))) for name in ("files", "noticed"))
        return cls(files, noticed, tuple(answer.get("variables", ())))

    def __or__(self, other: "Reads") -> "Reads":
        return Reads(
            tuple(dict.fromkeys((*self.files, *other.files))),
            tuple(dict.fromkeys((*self.noticed, *other.noticed))),
            tuple(dict.fromkeys((*self.variables, *other.variables))),
        )


NOTHING = Reads()


class Noticed:
    """Files that perhaps another process reads, such as a log that grows.

    One counts if it has not changed between two launches that report it.
    """

    def __init__(self) -> None:
        self.hashes: dict[Path, str | None] = {}

    def admit(self, paths: Iterable[Path]) -> tuple[Path, ...]:
        """Return those of the files that a launch has reported that count."""
        now = {path: of_file(path) for path in paths}
        admitted = [path for path, value in now.items() if value is not None and self.hashes.get(path) == value]
        for path, value in now.items():  # a file that has changed never counts
            self.hashes[path] = value if self.hashes.get(path, value) == value else None
        return tuple(admitted)


def of_code() -> Group:
    """Return a hash of each of Stele's packages: they decide what is measured, and how it is judged."""
    return {package.__name__: of_package(package) for package in (stele, stele_suite, stele_worker)}


def of_package(package: ModuleType) -> str:
    """Return a hash of the files of one of Stele's packages.

    Each launch asks for it several times, so the files are looked at once in a second.
    """
    return of_package_in(Path(package.__path__[0]), int(time.monotonic()))


@functools.lru_cache(maxsize=8)
def of_package_in(folder: Path, second: int) -> str:
    return of_sources(folder, "")


def of_sources(folder: Path, *endings: str) -> str:
    """Return a hash of the files below a folder whose names end so, or of one that is a file.

    What lies in environments and in hidden folders is left out, and so is bytecode.
    """
    return of_facts(folder, tuple(sorted(facts_below(folder, endings))) if folder.is_dir() else facts_of_file(folder))


def facts_below(folder: str | Path, endings: tuple[str, ...]) -> Iterator[tuple[str, int, int]]:
    """Yield path, size and time of files. It is called for each launch, so it makes no Path of each of a thousand."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                hidden = entry.name == "__pycache__" or entry.name[0] == "."
                if not hidden and not os.path.exists(os.path.join(entry.path, "pyvenv.cfg")):  # noqa: PTH110, PTH118
                    yield from facts_below(entry.path, endings)
            elif entry.name.endswith(endings) and entry.is_file():
                facts = entry.stat()
                yield entry.path, facts.st_size, facts.st_mtime_ns


def facts_of_file(path: Path) -> tuple[tuple[str, int, int], ...]:
    facts = path.stat() if path.is_file() and path.name.endswith(SOURCES) else None
    return () if facts is None else ((str(path), facts.st_size, facts.st_mtime_ns),)


@functools.lru_cache(maxsize=64)
def of_facts(folder: Path, facts: tuple[tuple[str, int, int], ...]) -> str:
    """Return one hash of the files of a folder, by their names. They are read again only if one has changed."""
    return digest(of_files((Path(path) for path, *_ in facts), folder))


def of_files(paths: Iterable[Path], folder: Path, *, without: Collection[str] = ()) -> dict[str, str | None]:
    """Return a hash of each file, by its path: relative to ``folder`` if it is there. None if it cannot be read.

    Names ``without`` are left out.
    """
    names = {str(path.relative_to(folder) if path.is_relative_to(folder) else path): path for path in paths}
    return {name: of_file(path) for name, path in names.items() if name not in without}


def of_file(path: Path) -> str | None:
    """Return a hash of a regular file; None if there is none, or it cannot be read.

    Of a large one, return its size and time; of ``FOLDER/*`` the number of the files in it and the newest time;
    of ``FOLDER/**`` a hash of the names in it.
    """
    try:
        if path.name == ALL:
            return of_folder(path.parent)
        if path.name == NAMES:
            return digest(names_in(path.parent))
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode):
            return None
        if facts.st_size > LARGE:
            return f"{facts.st_size} bytes of {facts.st_mtime_ns}"
        return hashed(path, facts.st_mtime_ns, facts.st_ctime_ns, facts.st_size, facts.st_ino)
    except (OSError, ValueError):
        return None


def names_in(folder: Path) -> list[str]:
    """Return the names in a folder, without those that are hidden and without bytecode."""
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if not entry.name.startswith((".", "__pycache__")))


def of_folder(folder: Path) -> str:
    with os.scandir(folder) as entries:
        times = [entry.stat().st_mtime_ns for entry in entries if entry.is_file()]
    return f"{len(times)} files until {max(times, default=0)}"


@functools.cache
def hashed(path: Path, *facts: int) -> str:
    """Return the hash of a file. It is read again only if one of the facts has changed."""
    hash_of_file = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            hash_of_file.update(block)
    return hash_of_file.hexdigest()[:DIGITS]


def digest(value: Any) -> str:
    """Return one hash of a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:DIGITS]


def of_environment(environment: Environment, *, apart: Sequence[Path] = ()) -> Content:
    """Return the packages of an environment, its variables, and a hash of the rest of its description.

    ``apart`` are files that are compared for themselves, so that an editable package with one of them is.
    """
    listing = packages.installed(environment)
    facts = (environment.framework, environment.mode, environment.forms, environment.command)
    return {
        "environment": {"description": digest(facts)},
        "packages": {} if listing is None else versions(listing),
        "installed": programs(environment) if listing is None else contents(listing, apart),
        "variables": {
            "the encoding of text": locale.getpreferredencoding(False),
            **of_variables(environment),
        },
    }


def of_variables(environment: Environment) -> dict[str, str]:
    """Return the variables of the user and of an environment that frameworks read."""
    return {**deciding(), **builds.variables(environment)}


def of_node(environment: Environment | None = None) -> Content:
    """Return what decides a launch on any machine, where the environment may be built: variables, and a description."""
    described = (
        {} if environment is None else {f"the description of {environment.name}": digest(of_description(environment))}
    )
    return {"variables": dict(portable()), "environment": dict(described)}


def of_description(environment: Environment) -> list[Any]:
    """Return what a description says that decides a launch, also on another machine, where it may be built.

    The packages of this interpreter are those of an environment that lives in it.
    """
    lock = environment.lock
    locked = None if lock is None or lock.parent == builds.locks_folder() else of_file(lock)
    listing = packages.installed(environment) if environment.python is None else None
    facts = (
        environment.framework,
        environment.mode,
        environment.forms,
        environment.variables,
        environment.on_amd,
    )
    needs = (environment.command, environment.python, environment.requirements, locked)
    return [facts, needs, None if listing is None else versions(listing)]


def versions(listing: Listing) -> dict[str, str | None]:
    return {"python": listing.python, **{name: package.version for name, package in listing.packages.items()}}


def contents(listing: Listing, apart: Sequence[Path]) -> dict[str, str | None]:
    """Return a hash of the files of each package: what was installed, and the size and time that each file has now.

    Of a package without a list of its files, these are its sources, unless some are compared apart. Stele's always are:
    an arm runs the worker of the host.
    """
    with_stele = *apart, *(Path(path) for path in stele.__path__)
    return {name: of_installed(package, with_stele) for name, package in listing.packages.items()}


def of_installed(package: Package, apart: Sequence[Path]) -> str | None:
    """Return a hash of the files of a package."""
    if not package.sources:
        return digest([package.files, touched(package.paths)])
    if any(path.is_relative_to(source) for path in apart for source in package.sources):
        return package.files
    return digest([of_sources(source, *SOURCES) for source in package.sources])


@functools.cache
def touched(paths: tuple[str, ...]) -> str:
    """Return a hash of the sizes and times of files, which change when someone edits a file in its place.

    An environment has ten thousands of them, so they are looked at once, and then only after ``look_again``.
    """
    hash_of_facts = hashlib.sha256()
    for path in paths:
        try:
            facts = os.stat(path)  # noqa: PTH116, a Path for each takes longer
            hash_of_facts.update(b"%d %d\n" % (facts.st_size, facts.st_mtime_ns))
        except OSError:
            hash_of_facts.update(b"absent\n")
    return hash_of_facts.hexdigest()[:DIGITS]


def look_again() -> None:
    """Let the sizes and times of installed files be read again when they are needed."""
    touched.cache_clear()


def programs(environment: Environment) -> dict[str, str | None]:
    """Return a hash of each file in the command of a worker that is no Python."""
    return {part: of_file(Path(part)) for part in environment.command or () if is_file(Path(part))}


def of_options(model: Mapping[str, Any] | None) -> dict[str, str | None]:
    """Return the options of a model, as the worker receives it, without the files that they name."""
    if model is None:
        return {}
    return {f"{name} of the model": json.dumps(model[name], sort_keys=True) for name in OPTIONS if model.get(name)}


def of_launch(
    environment: Environment,
    files: Sequence[Path] = (),
    folder: Path = Path(),
    *,
    model: Mapping[str, Any] | None = None,
    reads: Reads = NOTHING,
) -> dict[str, str]:
    """Return one hash for each group of what decides a launch; ``files`` are those of the user's model in ``folder``.

    ``reads`` is what the launch has read. The settings and the data are in a Run, too.
    """
    paths = sorted({*files, *reads.files})
    every = {
        "code": of_code(),
        "files": of_files(paths, folder),
        "options": of_options(model),
        "model_variables": variable_hashes(reads.variables),
        **of_environment(environment, apart=paths),
    }
    return {group: digest(values) for group, values in every.items()}


def changed_groups(then: Mapping[str, str] | None, now: Mapping[str, str] | None) -> str | None:
    """Return what differs between two answers of ``of_launch``, as text; None if nothing does."""
    if not then or not now:  # unknown is not equal
        return UNKNOWN
    groups = [group for group in sorted({*then, *now}, key=rank) if then.get(group) != now.get(group)]
    return ", ".join(GROUPS[group] for group in groups) or None


def require_same(contents: Sequence[Mapping[str, str] | None], what: str, *, without: Collection[str] = ()) -> None:
    """Raise SteleError if launches that belong together do not have the content of the first one.

    ``contents`` are those of ``of_launch``, of which groups ``without`` are not compared.
    """
    compared = [
        {group: content[group] for group in content if group not in without} if content else None
        for content in contents
    ]
    for content in compared[1:]:
        if changed := changed_groups(compared[0], content):
            raise SteleError(f"{what} cannot be compared, because {changed} changed between them. Measure again.")


def additions(content: Content, reads: Reads, folder: Path) -> Content:
    """Return what launches have read that a content does not have, as it is now. ``folder`` is that of the project."""
    files = of_files(sorted(reads.files), folder, without=content.get("files", {}))
    variables = set(reads.variables) - content.get("model_variables", {}).keys()
    groups = {"files": files, "model_variables": variable_hashes(variables)}
    return {group: values for group, values in groups.items() if values}


def named(content: Content, arm: str) -> Content:
    """Return a content of an environment with the names ``jax in NEW``."""
    return {
        group: {f"{name} in {arm.upper()}": value for name, value in values.items()}
        for group, values in content.items()
    }


def merged(contents: Iterable[Content]) -> Content:
    """Return contents as one. Of a name that several have in a group, the last value counts."""
    every: Content = {}
    for content in contents:
        for group, values in content.items():
            every.setdefault(group, {}).update(values)
    return every


def changes(then: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """Return which values differ, as text; None if none does."""
    lines = list(dict.fromkeys(each_change(then, now)))
    if not lines:
        return None
    more = f"; and {len(lines) - MOST} more" if len(lines) > MOST else ""
    return printable("; ".join(lines[:MOST]) + more)


def each_change(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield each value that differs, as text. Of a package whose version differs, the files are not mentioned, too."""
    versions_of = [content.get("packages", {}) for content in (then, now)]
    for group in sorted({*then, *now}, key=rank):
        before, after = then.get(group, {}), now.get(group, {})
        for name in sorted({*before, *after}):
            same_version = versions_of[0].get(name) == versions_of[1].get(name)
            if before.get(name) != after.get(name) and (group != "installed" or same_version):
                yield change(group, name, before.get(name), after.get(name))


def rank(group: str) -> tuple[int, str]:
    return ORDER.index(group) if group in ORDER else len(ORDER), group


def change(group: str, name: str, then: str | None, now: str | None) -> str:
    """Return ``jax in NEW was 0.10.1 and is now 0.9.2``, or ``m.py changed``."""
    if group == "code":
        return "Stele itself changed"
    if group in SHOWN:
        return f"{name} was {shown(then)} and is now {shown(now)}"
    if group == "model_variables":
        return f"the variable {name} changed"
    if group == "files" and None in (then, now):
        return f"{name} is {'missing now' if now is None else 'new'}"
    return f"the files of {name} changed" if group == "installed" else f"{name} changed"


def shown(value: str | None) -> str:
    return "absent" if value is None else value if len(value) <= LONGEST else f"{value[:LONGEST]}…"
