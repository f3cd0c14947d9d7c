"""What this machine has: its processor, and the libraries and programs that no package index provides."""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from stele.environments.environment import Environment
from stele.errors import SteleError


def missing_message(environment: Environment) -> str | None:
    """Return which program or library is missing and how to install it, or None if nothing is missing."""
    for program, advice in environment.programs.items():
        if shutil.which(program) is None:
            return f"{program} is not on PATH. {advice}"
    for library, facts in environment.libraries.items():
        if find_library(library) is None:
            return f"{library} is not installed. Install the Debian package {facts['package']}, or its equivalent"
    return None


def locate(environment: Environment) -> dict[str, Path]:
    """Return the path of each library. Raises SteleError if a library or a program is missing."""
    missing = missing_message(environment)
    if missing:
        raise SteleError(f"'{environment.name}' cannot be built: {missing}.")
    paths = {library: find_library(library) for library in environment.libraries}
    return {library: path for library, path in paths.items() if path is not None}


def find_library(library: str) -> Path | None:
    """Return the path of a shared library in the list of the system's loader, or None."""
    for line in loader_list().splitlines():
        name, arrow, path = line.strip().partition(" => ")
        if arrow and name.split(" ")[0] == library:
            return Path(path)
    return None


@cache
def is_amd() -> bool:
    """Return whether the processor is from AMD; False where the system does not say."""
    try:
        return "AuthenticAMD" in Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False


@cache
def loader_list() -> str:
    """Return the libraries that the system's loader lists, one per line; empty without ldconfig."""
    folders = os.pathsep.join([os.environ.get("PATH", ""), "/sbin", "/usr/sbin"])
    loader = shutil.which("ldconfig", path=folders)
    if loader is None:
        return ""
    return subprocess.run([loader, "-p"], capture_output=True, text=True, check=False).stdout


def link(environment: Environment, paths: dict[str, Path], folder: Path) -> None:
    """Link each library under the name that the framework loads, in a folder that only its worker searches."""
    for library, path in paths.items():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / environment.libraries[library].get("link", library)).symlink_to(path)


def clean_variables(variables: dict[str, str]) -> dict[str, str]:
    """Return the variables of this process and ``variables``, without those that break another interpreter.

    Two would make it import the packages of this interpreter. The third would prevent it from writing bytecode: each
    launch would compile the framework's sources again, which takes most of the import time.
    """
    removed = ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE")
    return {**{name: value for name, value in os.environ.items() if name not in removed}, **variables}
