"""Whether an environment can be used: ready, missing or broken, and what to do about it. Imports no framework."""

import importlib.util
import re
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from packaging.utils import canonicalize_name

from stele.environments import builds, installer, libraries
from stele.environments.description import Environment


class State(NamedTuple):
    """One status (ready, missing or broken), the release, installed or pinned, and a message: why, and what to type."""

    status: str
    version: str | None
    reason: str = ""


def state(environment: Environment) -> State:
    """Looks for the framework without importing it: one that is there and does not import is a failure."""
    lacking = libraries.missing(environment)
    if lacking:
        return State("missing", version(environment), lacking)
    if environment.python is None:
        return in_host(environment)
    return built(environment)


def in_host(environment: Environment) -> State:
    """Of a row that lives in the interpreter that asks, or that has an interpreter of the user's."""
    if environment.command is not None:
        return State("ready", None)
    absent = [module for module in environment.imports if importlib.util.find_spec(module) is None]
    if absent:
        advice = f"pip install -e '.[{environment.name}]' -c constraints.txt"
        return State("missing", None, f"{' and '.join(absent)} not installed: {advice}")
    return State("ready", version(environment))


def built(environment: Environment) -> State:
    place = builds.folder(environment)
    known = version(environment)
    if environment.requirements and (place is None or not place.exists()):
        assert environment.python is not None
        if installer.interpreter(environment.python) is None:
            return State("missing", known, installer.absence(environment.name, environment.python))
        return State("missing", known, f"not made: {builds.line(environment)}")
    if place is not None and not (place / "bin" / "python").exists():
        return State("broken", known, f"its interpreter is gone: {builds.line(environment)}")
    if place is not None and dangling(builds.links(place)):
        return State("broken", known, f"its system libraries are gone: {builds.line(environment)}")
    return State("ready", known)


def dangling(folder: Path) -> bool:
    return folder.exists() and not all(path.exists() for path in folder.iterdir())


def version(environment: Environment) -> str | None:
    """The release of the first of its requirements: as locked, or as installed here; None where neither is known."""
    distributions = [re.split(r"[^\w.-]", requirement)[0] for requirement in environment.requirements]
    if not distributions:
        return None
    if environment.lock is not None:
        return locked(environment).get(canonicalize_name(distributions[0]))
    try:
        return metadata.version(distributions[0])
    except metadata.PackageNotFoundError:
        return None


def locked(environment: Environment) -> dict[str, str]:
    """Every package of its lock with its version, under the names that indexes use; nothing where there is none."""
    if environment.lock is None or not environment.lock.exists():
        return {}
    pins = re.findall(r"^([\w.-]+)==([^\s;\\]+)", environment.lock.read_text(), re.M)
    return {canonicalize_name(name): version for name, version in pins}
