"""Find out whether an environment can be used: ready, missing or broken, and what to do. Imports no framework."""

import importlib.util
import re
from importlib import metadata
from typing import Annotated, NamedTuple

import msgspec
from packaging.utils import canonicalize_name

from stele.environments import builds, installer, libraries, revisions
from stele.environments.environment import Environment
from stele.schema import about


class Listed(msgspec.Struct, frozen=True):
    """An environment that is described."""

    name: Annotated[str, about("name of the environment, as on the command line")]
    framework: Annotated[str, about("name of its folder in `src/stele_worker/frameworks`")]
    status: Annotated[str, about("`ready`, `missing` or `broken`")]
    version: Annotated[str | None, about("installed or locked release of the framework")]
    reason: Annotated[str, about("why it is not ready, and what to do; empty if it is ready")]


class EnvironmentsFile(msgspec.Struct, frozen=True):
    """Printed to standard output."""

    environments: Annotated[tuple[Listed, ...], about("one for each environment that is described")]


class State(NamedTuple):
    """The status (ready, missing or broken), the installed or pinned release, and the reason with what to do."""

    status: str
    version: str | None
    reason: str = ""


def state(environment: Environment) -> State:
    """Return the state. The framework is not imported, so an installed one whose import fails counts as ready."""
    missing = libraries.missing_message(environment)
    if missing:
        return State("missing", version(environment), missing)
    if environment.python is None:
        return state_in_host(environment)
    return state_of_build(environment)


def state_in_host(environment: Environment) -> State:
    """Return the state of an environment that uses the interpreter of the host or of the user."""
    if environment.command is not None:
        return State("ready", None)
    absent = [module for module in environment.imports if importlib.util.find_spec(module) is None]
    if absent:
        command = f"pip install 'pytest-stele[{environment.base or environment.name}]'"
        verb = "is" if len(absent) == 1 else "are"
        return State("missing", None, f"{' and '.join(absent)} {verb} not installed. Run: {command}")
    return State("ready", version(environment))


def state_of_build(environment: Environment) -> State:
    """Return the state of an environment with a separate interpreter."""
    folder, release = builds.folder(environment), version(environment)
    rebuild = f"Rebuild it with: {builds.make_command(environment)}"
    if environment.requirements and (folder is None or not folder.exists()):
        assert environment.python is not None
        if installer.find_interpreter(environment.python) is None:
            return State("missing", release, installer.absence_message(environment.name, environment.python))
        return State("missing", release, f"not built. Build it with: {builds.make_command(environment)}")
    if folder is not None and not (folder / "bin" / "python").exists():
        return State("broken", release, f"its interpreter no longer exists. {rebuild}")
    if folder is not None and builds.has_dangling_links(builds.links_folder(folder)):
        return State("broken", release, f"its system libraries no longer exist. {rebuild}")
    return State("ready", release)


def version(environment: Environment) -> str | None:
    """Return the locked or installed release of the first requirement, or None if both are unknown."""
    distributions = [re.split(r"[^\w.-]", requirement)[0] for requirement in environment.requirements]
    if not distributions:
        return None
    if environment.lock is not None:
        return locked_versions(environment).get(canonicalize_name(distributions[0]))
    try:
        return metadata.version(distributions[0])
    except metadata.PackageNotFoundError:
        return None


def locked_versions(environment: Environment) -> dict[str, str]:
    """Return the version of every package in the lock file, by canonical name; empty without a lock file."""
    if environment.lock is None or not environment.lock.exists():
        return {}
    pins = re.findall(r"^([\w.-]+)==([^\s;\\]+)", revisions.read_text(environment.lock), re.M)
    return {canonicalize_name(name): version for name, version in pins}
