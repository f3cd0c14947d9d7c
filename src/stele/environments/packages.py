"""Which packages differ between two arms: versions from a lock file or from an interpreter, and their differences."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple
from urllib.parse import urlsplit
from urllib.request import url2pathname

import msgspec
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, canonicalize_version

from stele.environments import builds, lockfiles, probe, revisions
from stele.environments.environment import MODULE, Environment
from stele.errors import SteleError
from stele.schema import about
from stele.text import first_of, without_passwords

MOST = 6  # differences in one line
TIMEOUT = 60.0  # seconds for an interpreter to list its packages
SHARED = ("site-packages", "dist-packages")  # folders of many packages
DESCRIPTIONS = (".dist-info", ".egg-info", ".egg-link", ".pth")  # of packages in a folder

# RECORD has the hash of each file that was installed; what the installer writes itself differs between installers.
# Python itself writes what is in __pycache__. A distribution without RECORD says only which modules it has
LISTER = """
import csv, hashlib, json, os, platform, sys
try:
    from importlib.metadata import distributions
    found = [
        (item.metadata["Name"], item.version, item.read_text, str(item.locate_file(""))) for item in distributions()
    ]
except ImportError:  # before Python 3.8
    def reader(folder):
        return lambda name: open(os.path.join(folder, name), encoding="utf-8").read()
    found = []
    for place in filter(os.path.isdir, sys.path):
        for folder in sorted(os.listdir(place)):
            kind = {".dist-info": "METADATA", ".egg-info": "PKG-INFO"}.get(os.path.splitext(folder)[1])
            if kind and os.path.isfile(os.path.join(place, folder, kind)):
                read = reader(os.path.join(place, folder))
                lines = [line.partition(": ") for line in read(kind).splitlines()]
                facts = {name: value for name, _, value in lines[::-1] if name in ("Name", "Version")}
                found.append((facts.get("Name"), facts.get("Version"), read, place))
def text(read, name):
    try:
        return read(name) or ""
    except Exception:
        return ""
def digest(record):
    lines = [line for line in record.splitlines() if ",sha256=" in line and ".dist-info/" not in line]
    files = sorted(line for line in lines if not line.startswith(".."))
    return hashlib.sha256("\\n".join(files).encode()).hexdigest()[:16] if files else None
def paths(record):
    if not record:
        return None
    rows = (row[0] for row in csv.reader(record.splitlines()) if row)
    return [path for path in rows if "__pycache__" not in path and ".dist-info/" not in path]
def editable(direct):
    facts = json.loads(direct) if direct else {}
    return facts.get("url") if facts.get("dir_info", {}).get("editable") else None
packages = []
for name, version, read, place in found:
    record, direct, modules = (text(read, file) for file in ("RECORD", "direct_url.json", "top_level.txt"))
    facts = digest(record), editable(direct), os.path.abspath(place), paths(record), modules.split()
    packages.append((name, version) + facts)
folders = [os.path.abspath(folder) for folder in sys.path if folder and os.path.isdir(folder)]
print()
print(json.dumps({"python": platform.python_version(), "packages": packages, "folders": folders}))
"""


class Package(NamedTuple):
    """An installed package. ``files`` is a hash of the hashes that were installed, and ``paths`` are these files.

    ``sources`` are folders and files with modules of which nothing says what was installed: those of an editable
    package, or of one without a list of files.
    """

    version: str
    files: str | None = None
    sources: tuple[Path, ...] = ()
    paths: tuple[str, ...] = ()


class Listing(NamedTuple):
    """What an interpreter imports: its version, the packages by canonical name, and the folders where it looks."""

    python: str
    packages: dict[str, Package]
    folders: tuple[Path, ...]


class Difference(msgspec.Struct, frozen=True):
    """A package and its version in each arm."""

    name: Annotated[str, about("package")]
    old: Annotated[str | None, about("version in OLD; null if OLD does not have it")]
    new: Annotated[str | None, about("version in NEW; null if NEW does not have it")]


def of_lock(path: Path) -> dict[str, str]:
    """Return the version of every package that a lock file pins, by canonical name. A URL stands for a version.

    Raises SteleError if the file cannot be read or names no package.
    """
    text, sibling = revisions.read_text(path), revisions.sibling_reader(path, None)
    locked = lockfiles.read(str(path), text, sibling, allow_vcs=True)
    versions: dict[str, str] = {}
    for line in locked.requirements:
        requirement = Requirement(line)
        version = without_passwords(requirement.url or "") or lockfiles.pinned_version(line)
        if version:
            versions[canonicalize_name(requirement.name)] = version
    return versions


def of_interpreter(python: Path) -> dict[str, str]:
    """Return the version of every package that an interpreter imports, by canonical name.

    Raises SteleError if it does not start, fails, or takes longer than TIMEOUT.
    """
    return {name: package.version for name, package in current(python).packages.items()}


def listed(python: Path) -> Listing:
    """Return what an interpreter says that it imports. Raises SteleError as ``of_interpreter`` does."""
    command = [str(python.absolute()), "-c", LISTER]
    try:
        process = probe.run(command, timeout=TIMEOUT)
        process.check_returncode()
        answer = json.loads(process.stdout.splitlines()[-1])
        # if a package is installed twice, the first one on the path is imported
        packages: dict[str, Package] = {
            canonicalize_name(name): package(name, version, *facts)
            for name, version, *facts in reversed(answer["packages"])
            if name and version
        }
        return Listing(str(answer["python"]), packages, tuple(map(Path, answer["folders"])))
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or [f"exit status {error.returncode}"])[-1]
        raise SteleError(f"The packages of {python} cannot be listed: {last}") from None
    except (OSError, ValueError, LookupError, TypeError, subprocess.SubprocessError) as error:
        raise SteleError(f"{python} is not a working Python interpreter: {error}") from None


def package(
    name: str,
    version: str,
    files: str | None,
    editable: str | None,
    place: str,
    paths: list[str] | None,
    modules: list[str],
) -> Package:
    """Return a package from what the interpreter says; ``place`` is the folder that has it, and its information."""
    if editable is not None:
        return Package(version, files, (path_of(editable),))
    if paths is None:
        return Package(version, None, sources_in(Path(place), modules or [name.replace("-", "_")]))
    return Package(version, files, (), tuple(str(Path(place, path)) for path in paths))


def sources_in(place: Path, modules: Iterable[str]) -> tuple[Path, ...]:
    """Return where the modules of a package without a list of files are: its own folder, or a part of a shared one."""
    if place.name not in SHARED:
        return (place,)
    candidates = (path for module in modules for path in (place / module, *sorted(place.glob(f"{module}.*"))))
    return tuple(path for path in candidates if path.exists())


def path_of(url: str) -> Path:
    return Path(url2pathname(urlsplit(url).path))


listings: dict[Path, tuple[object, Listing]] = {}  # with the state of the folders when they were listed


def installed(environment: Environment) -> Listing | None:
    """Return what the interpreter of an environment imports now; None if its worker is no Python, or is not built.

    Raises SteleError as ``of_interpreter`` does.
    """
    python = interpreter_of(environment)
    return None if python is None else current(python)


def current(python: Path) -> Listing:
    """Return what an interpreter imports now. It is asked again only if one of its folders has changed.

    Raises SteleError as ``of_interpreter`` does.
    """
    python = python.absolute()
    if python in listings and listings[python][0] == state_of(python, listings[python][1].folders):
        return listings[python][1]
    listing = listed(python)
    listings[python] = (state_of(python, listing.folders), listing)
    return listing


def interpreter_of(environment: Environment) -> Path | None:
    """Return the interpreter of an environment; None if its worker is no Python, or is not built."""
    try:
        interpreter, *arguments = builds.command(environment)
    except SteleError:  # not resolved
        return None
    python = Path(shutil.which(interpreter) or interpreter).absolute()
    missing = environment.lock is not None and not python.exists()
    return None if missing or tuple(arguments) != MODULE else python


def folders_of(environment: Environment) -> list[Path]:
    """Return the folders that an environment consists of. Of one that is not virtual, others lie beside them.

    So they do in a virtual environment in which the user works.
    """
    python = interpreter_of(environment)
    if python is None:
        return []
    root = python.parents[1]
    if venv_interpreter(root) is not None and not Path.cwd().is_relative_to(root):
        return [root]
    return [root / name for name in ("bin", "lib", "lib64")]


def links_of(environment: Environment) -> Iterator[Path]:
    """Yield the links of an environment: its interpreter, and the files of packages that lie elsewhere."""
    python = interpreter_of(environment)
    if python is not None:
        yield python
        listing = installed(environment)
        paths = (path for package in (listing.packages if listing else {}).values() for path in package.paths)
        yield from (Path(path) for path in paths if os.path.islink(path))  # noqa: PTH114, there are many


def state_of(python: Path, folders: Iterable[Path]) -> object:
    """Return what changes when a package is installed, replaced or removed: times, and none of a file's content."""
    places = [str(python), str(python.parents[1] / "pyvenv.cfg")]
    return [(place, modified(place)) for place in (*places, *(entry for each in folders for entry in entries(each)))]


def entries(folder: Path) -> Iterator[str]:
    """Yield a folder, and what describes the packages in it. It is called for each launch, so it makes no Paths."""
    yield str(folder)
    with contextlib.suppress(OSError), os.scandir(folder) as inside:
        yield from sorted(entry.path for entry in inside if entry.name.endswith(DESCRIPTIONS))


def modified(path: str) -> int | None:
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116
    except OSError:
        return None


def of_environment(environment: Environment) -> dict[str, str]:
    """Return the version of every package of an environment that is built, or of the interpreter that it lives in.

    Empty for a worker that is started by a command of its own.
    """
    if environment.lock is not None:
        return of_lock(environment.lock) if environment.lock.exists() else {}
    if environment.command is None:
        return of_interpreter(Path(sys.executable))
    interpreter, *arguments = environment.command
    return of_interpreter(Path(interpreter)) if tuple(arguments) == MODULE else {}


def differences(old: Mapping[str, str], new: Mapping[str, str], without: Iterable[str] = ()) -> list[Difference]:
    """Return the packages whose versions differ, by name, without those of ``without``, which the user changes."""
    changed = {canonicalize_name(name) for name in without}
    both = {name: Difference(name, old.get(name), new.get(name)) for name in sorted({*old, *new} - changed)}
    return [pair for pair in both.values() if not same_version(pair.old, pair.new)]


def same_version(old: str | None, new: str | None) -> bool:
    """Return whether two versions are equal, as 1.0 and 1.0.0 are."""
    if old is None or new is None:
        return old is new
    return canonicalize_version(old) == canonicalize_version(new)


class NothingUpgradedError(SteleError):
    """OLD and NEW are stated in different words, and select the same packages."""


def require_upgrade(old: Environment, new: Environment) -> None:
    """Raise NothingUpgradedError, with the versions, if NEW, stated in other words, is the same as OLD."""
    changed = builds.stated_differently(new, old)
    if not changed or old.lock is None or new.lock is None or not (old.lock.exists() and new.lock.exists()):
        return
    if (old.python, old.variables) != (new.python, new.variables) or not builds.have_same_files(old.lock, new.lock):
        return
    versions = of_lock(new.lock)
    both = ", ".join(f"{name} {versions[name]}" for name in changed if name in versions)
    raise NothingUpgradedError(
        f"Nothing is upgraded: {old.name!r} and {new.name!r} select the same packages"
        f"{f', both with {both}' if both else ''}. Name the version that NEW is to have, such as PACKAGE==VERSION."
    )


def lines(pairs: Iterable[Difference]) -> list[str]:
    """Return one line for each difference, such as "numpy 1.26.4 → 2.0.1"."""
    return [line(pair) for pair in pairs]


def shortened(pairs: Sequence[Difference], rest: str) -> str:
    """Return the first differences as text, and how many more there are. ``rest`` says where they are listed."""
    if len(pairs) <= MOST + 1:  # the last one is as short as its number
        return ", ".join(lines(pairs))
    return f"{first_of(lines(pairs), MOST)}: {rest}"


def line(pair: Difference) -> str:
    """Return ``jax 0.9.2 → 0.10.1``, or ``jax (only in NEW) 0.10.1``."""
    if pair.old is None:
        return f"{pair.name} (only in NEW) {pair.new}"
    if pair.new is None:
        return f"{pair.name} (only in OLD) {pair.old}"
    return f"{pair.name} {pair.old} → {pair.new}"


def venv_interpreter(folder: Path) -> Path | None:
    """Return the interpreter of a virtual environment or of a conda environment, or None if it is neither."""
    is_environment = (folder / "pyvenv.cfg").is_file() or (folder / "conda-meta").is_dir()
    python = folder.absolute() / "bin" / "python"  # not resolved: the link is what makes it a virtual environment
    return python if is_environment and python.is_file() else None
