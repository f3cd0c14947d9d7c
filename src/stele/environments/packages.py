"""Which packages differ between two arms: versions from a lock file or from an interpreter, and their differences."""

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, canonicalize_version

from stele.environments import lockfiles, probe, revisions
from stele.environments.description import MODULE, Environment
from stele.errors import SteleError
from stele.text import without_passwords

TIMEOUT = 60.0  # seconds for an interpreter to list its packages

LISTER = """
import json
try:
    from importlib.metadata import distributions
    pairs = [(item.metadata["Name"], item.version) for item in distributions()]
except ImportError:  # before Python 3.8
    import pkg_resources
    pairs = [(item.project_name, item.version) for item in pkg_resources.working_set]
print()
print(json.dumps(pairs))
"""


class Difference(NamedTuple):
    """A package and its version in each arm; None in an arm that does not have it."""

    name: str
    old: str | None
    new: str | None


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
    command = [str(python.absolute()), "-I", "-c", LISTER]
    try:
        process = probe.run(command, timeout=TIMEOUT)
        process.check_returncode()
        pairs = json.loads(process.stdout.splitlines()[-1])
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or [f"exit status {error.returncode}"])[-1]
        raise SteleError(f"The packages of {python} cannot be listed: {last}") from None
    except (OSError, ValueError, LookupError, subprocess.SubprocessError) as error:
        raise SteleError(f"{python} is not a working Python interpreter: {error}") from None
    # if a package is installed twice, the first one on the path is imported
    return {canonicalize_name(name): version for name, version in reversed(pairs) if name and version}


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


def differences(
    old: Mapping[str, str], new: Mapping[str, str], asked: Iterable[str] = ()
) -> list[Difference]:
    """Return the packages whose versions differ, by name, without those in ``asked``, which the user changes."""
    changed = {canonicalize_name(name) for name in asked}
    both = {name: Difference(name, old.get(name), new.get(name)) for name in sorted({*old, *new} - changed)}
    return [pair for pair in both.values() if not same_version(pair.old, pair.new)]


def same_version(old: str | None, new: str | None) -> bool:
    """Return whether two versions are equal, as 1.0 and 1.0.0 are."""
    if old is None or new is None:
        return old is new
    return canonicalize_version(old) == canonicalize_version(new)


def lines(pairs: Iterable[Difference]) -> list[str]:
    """Return one line for each difference, such as "numpy 1.26.4 → 2.0.1"."""
    return [line(pair) for pair in pairs]


def line(pair: Difference) -> str:
    """Return a difference as text."""
    if pair.old is None:
        return f"{pair.name} (only in NEW) {pair.new}"
    if pair.new is None:
        return f"{pair.name} (only in OLD) {pair.old}"
    return f"{pair.name} {pair.old} → {pair.new}"


def venv_interpreter(folder: Path) -> Path | None:
    """Return the interpreter of a virtual environment or of a conda environment, or None if it is neither."""
    is_environment = (folder / "pyvenv.cfg").is_file() or (folder / "conda-meta").is_dir()
    python = (
        folder.absolute() / "bin" / "python"
    )  # not resolved: the link is what makes it a virtual environment
    return python if is_environment and python.is_file() else None
