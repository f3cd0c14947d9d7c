"""System libraries and programs that an environment needs and no package index has."""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from stele.environments.description import Environment
from stele.errors import SteleError


def missing(environment: Environment) -> str | None:
    """What the machine lacks for an environment and how to get it; None if it lacks nothing."""
    for program, advice in environment.programs.items():
        if shutil.which(program) is None:
            return f"not run here: no {program} on PATH. {advice}"
    for library, facts in environment.libraries.items():
        if find(library) is None:
            return f"not run here: no {library}. Install Debian's {facts['package']}, or what your system calls it"
    return None


def found(environment: Environment) -> dict[str, Path]:
    """Where each library lies. Raises SteleError if one, or a program, is missing."""
    lacking = missing(environment)
    if lacking:
        raise SteleError(f"'{environment.name}' {lacking}.")
    places = {library: find(library) for library in environment.libraries}
    return {library: place for library, place in places.items() if place is not None}


def find(library: str) -> Path | None:
    """A shared library that the system's loader knows."""
    for line in known().splitlines():
        name, arrow, place = line.strip().partition(" => ")
        if arrow and name.split(" ")[0] == library:
            return Path(place)
    return None


@cache
def known() -> str:
    """The loader's list of libraries, a line each; empty where it has none to show."""
    folders = os.pathsep.join([os.environ.get("PATH", ""), "/sbin", "/usr/sbin"])
    loader = shutil.which("ldconfig", path=folders)
    if loader is None:
        return ""
    return subprocess.run([loader, "-p"], capture_output=True, text=True, check=False).stdout


def link(environment: Environment, places: dict[str, Path], folder: Path) -> None:
    """Give each library the name that the framework asks for, in a folder that only its worker searches."""
    for library, place in places.items():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / environment.libraries[library].get("link", library)).symlink_to(place)


def clean(variables: dict[str, str]) -> dict[str, str]:
    """This process's variables, but for what would lead a foreign interpreter into this one's packages.

    Or would keep it from writing its bytecode: each launch would compile its framework's sources anew, which makes most
    of an import.
    """
    foreign = ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE")
    return {**{name: value for name, value in os.environ.items() if name not in foreign}, **variables}
