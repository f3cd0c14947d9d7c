"""Built environments: virtual environments in the user's cache, each under the hash of its lock.

    environments/<hash>/             a virtual environment, there only when it is whole
    environments/<hash>.building/    one that is being made, or was when somebody pulled the plug
    environments/<hash>.guard        locked by whoever is making it
    environments/locks/<hash>.lock   what a requirement that a user typed resolved to
Two rows with the same lock share a build.
"""

import contextlib
import fcntl
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from stele import files
from stele.data import cache
from stele.environments import installer, libraries
from stele.environments.description import MODULE, Environment
from stele.errors import SteleError

TIMEOUT = 300.0  # seconds for an import; Theano's first compiles


def room() -> Path:
    return cache.folder() / "environments"


def folder(environment: Environment) -> Path | None:
    """Where it is built, or will be; None as long as its requirements are not resolved."""
    if environment.lock is None or not environment.lock.exists():
        return None
    return room() / hashlib.sha256(environment.lock.read_bytes()).hexdigest()[:16]


def command(environment: Environment) -> tuple[str, ...]:
    """What starts its worker."""
    if environment.command is not None:
        own = str(python(environment)) if environment.lock is not None else sys.executable
        return tuple(part.replace("{python}", own) for part in environment.command)
    return (sys.executable if environment.python is None else str(python(environment)), *MODULE)


def python(environment: Environment) -> Path:
    """Its interpreter. Raises SteleError if its requirements were never resolved."""
    place = folder(environment)
    if place is None:
        raise SteleError(f"'{environment.name}' was never made: {line(environment)}")
    return place / "bin" / "python"


def variables(environment: Environment) -> dict[str, str]:
    """Environment variables of its worker."""
    return placed(environment, folder(environment))


def placed(environment: Environment, place: Path | None) -> dict[str, str]:
    """Its variables where it is built at ``place``, or nowhere."""
    given = {
        name: value.replace("{folder}", str(place))
        for name, value in environment.variables.items()
        if place is not None or "{folder}" not in value  # of an interpreter of the user's there is no folder
    }
    return {**given, "LD_LIBRARY_PATH": str(links(place))} if environment.libraries and place else given


def links(place: Path) -> Path:
    return place / "lib" / "stele"


def line(environment: Environment) -> str:
    """The line to type."""
    name = environment.name
    return f"stele env make {name if name.replace('-', '').replace('_', '').isalnum() else repr(name)}"


def make(environment: Environment, interpreter: Path | None = None) -> bool:
    """Build it, if it is not there already. True if something was built.

    An interruption at any moment leaves nothing that would be taken for an environment. Raises SteleError if
    there is no interpreter, a library is missing, the requirements do not resolve, or the framework does not import.
    """
    base = interpreter or interpreter_of(environment)
    found = libraries.found(environment)
    resolve(environment, base)
    place = folder(environment)
    assert place is not None
    with guarded(place):
        if (place / "bin" / "python").exists():
            return False
        with half_made(place) as building:
            fill(environment, building, base, found)
            remove_folder(place)  # broken: its interpreter is gone
            building.rename(place)
    return True


def interpreter_of(environment: Environment) -> Path:
    """What to build it with. Raises SteleError, with what to install, if there is none."""
    base = installer.interpreter(environment.python or "")
    if base is None:
        raise SteleError(installer.absence(environment.name, environment.python or ""))
    return base


def fill(environment: Environment, building: Path, base: Path, found: dict[str, Path]) -> None:
    """A virtual environment with what the lock names, seen to import."""
    name = environment.name
    installer.uv("venv", "--python", base, building, purpose=f"'{name}' with {base}")
    target: list[str | Path] = ["--python", building / "bin" / "python"]
    options = ["--require-hashes", "--link-mode", "hardlink"]
    installer.uv("pip", "sync", *target, *options, str(environment.lock), purpose=f"Installing '{name}'")
    libraries.link(environment, found, links(building))
    see_imports(environment, building)


class DoesNotImport(SteleError):
    """Installed, and of no use: the framework's own fault."""


def see_imports(environment: Environment, building: Path) -> None:
    """Import the framework once, as its worker would. Raises SteleError with what it says if it cannot."""
    code = "import " + ", ".join(environment.imports or ("sys",))
    command = [str(building / "bin" / "python"), "-c", code]
    surroundings = libraries.clean(placed(environment, building))
    try:
        done = subprocess.run(command, env=surroundings, capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        raise SteleError(
            f"'{environment.name}' was installed, but its import took over {TIMEOUT:g} s."
        ) from None
    if done.returncode:
        last = "\n    ".join(done.stderr.strip().splitlines()[-installer.LINES :])
        raise DoesNotImport(f"'{environment.name}' was installed, but does not import:\n    {last}")


def resolve(environment: Environment, base: Path) -> None:
    """Pin what a user typed, unless it is pinned already."""
    if environment.lock is None:
        raise SteleError(f"'{environment.name}' names no requirements: nothing can be made.")
    if not environment.lock.exists():
        lock(environment, base)


def lock(environment: Environment, base: Path) -> None:
    """Write the environment's lock: every package that its requirements need, with hashes."""
    assert environment.lock is not None
    options: list[str | Path] = [
        "--generate-hashes",
        "--no-header",
        "--no-annotate",
        "--python",
        base,
        "--quiet",
    ]
    pinned = installer.uv(
        "pip",
        "compile",
        "-",
        *options,
        purpose=f"Resolving '{environment.name}'",
        text="\n".join(environment.requirements),
    )
    files.write_text(environment.lock, pinned)


def remove(environment: Environment) -> bool:
    """Delete what was built. False if nothing was."""
    place = folder(environment)
    if place is None or not place.exists():
        return False
    with guarded(place):
        remove_folder(place)
    return True


def remove_folder(place: Path) -> None:
    """All or nothing to whoever looks: out of sight first, then deleted."""
    if place.exists():
        aside = place.with_suffix(".removing")
        shutil.rmtree(aside, ignore_errors=True)
        place.rename(aside)
        shutil.rmtree(aside)


@contextlib.contextmanager
def guarded(place: Path) -> Iterator[None]:
    """One builder at a time; the system drops the lock of a process that dies."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.with_suffix(".guard").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def half_made(place: Path) -> Iterator[Path]:
    """A folder to build in, gone at the end unless it was renamed."""
    building = place.with_suffix(".building")
    shutil.rmtree(building, ignore_errors=True)
    try:
        yield building
    finally:
        shutil.rmtree(building, ignore_errors=True)
