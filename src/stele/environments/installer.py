"""uv: finds interpreters, resolves requirements, installs. Every way in which it fails is a message here."""

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

from stele.errors import SteleError

UNSOLVABLE = "No solution found"
# what uv prints, and what to do about it
FAILURES = (
    (
        "No space left on device",
        "the disk is full. Free some space, or have STELE_CACHE name a folder elsewhere",
    ),
    ("Hash mismatch", "a package is not the one that the lock names. The index may have been tampered with"),
    (UNSOLVABLE, "the requirements cannot be met together"),
    ("not found in the package registry", "the index does not have it"),
    ("error sending request", "the package index did not answer. Is there a network?"),
    ("Failed to fetch", "the package index did not answer. Is there a network?"),
    ("dns error", "the package index did not answer. Is there a network?"),
    ("network was disabled", "the network is disabled and the package is not in the download cache"),
    ("Failed to query Python interpreter", "the interpreter does not work"),
    ("Querying Python at", "the interpreter does not work"),
    ("No interpreter found", "the interpreter is not there"),
    ("Failed to inspect Python interpreter", "the interpreter does not work"),
)
LINES = 12  # of uv's own words


class Unsolvable(SteleError):
    """Requirements that cannot be met together: not today, and not tomorrow."""


def uv(*arguments: str | Path, purpose: str, text: str | None = None) -> str:
    """Run uv and return what it prints. Raises SteleError: ``purpose``, the message, and uv's own words."""
    done = start(*arguments, text=text)
    if done.returncode:
        offline = "network" in done.stderr.lower()  # then there is no solution today
        kind = Unsolvable if UNSOLVABLE in done.stderr and not offline else SteleError
        raise kind(f"{purpose}: {message(done.stderr)}")
    return done.stdout


def start(*arguments: str | Path, text: str | None = None) -> subprocess.CompletedProcess[str]:
    from uv import find_uv_bin  # a moment to import: most commands never need it

    command = [find_uv_bin(), "--no-config", "--color", "never", *map(str, arguments)]
    variables = {**os.environ, "PATH": search_path(), "UV_NO_PROGRESS": "1"}
    return subprocess.run(command, input=text, capture_output=True, text=True, env=variables, check=False)


def message(words: str) -> str:
    """What uv's words mean, and the words."""
    meaning = next((meaning for sign, meaning in FAILURES if sign.lower() in words.lower()), "it failed")
    own = "".join(f"\n    {line}" for line in words.strip().splitlines()[-LINES:])
    return f"{meaning}.\n  uv says:{own}"


@cache
def search_path() -> str:
    """PATH, with this interpreter before it and pyenv's, newest first, in the place of its shims and behind it.

    A shim is a slow script that asks which of those is meant, and fails where none is chosen.
    """
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    found = [str(folder) for folder in sorted((pyenv / "versions").glob("*/bin"), key=release, reverse=True)]
    shims = re.escape(str(pyenv)) + "/(.+/)?shims/?"  # pyenv-virtualenv has its own
    places = [str(Path(sys.base_exec_prefix) / "bin")]
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        places += found if re.fullmatch(shims, folder) else [folder]
    return os.pathsep.join(dict.fromkeys([*places, *found]))


def release(folder: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", folder.parent.name))


@cache
def interpreter(versions: str) -> Path | None:
    """The first interpreter in a range such as ==3.8.*: on PATH, in pyenv, in uv's own store. None if there is none."""
    wanted = ["python", "find", "--system", "--no-project", "--no-python-downloads"]
    done = start(*wanted, "--python-preference", "system", versions)
    return None if done.returncode else Path(done.stdout.strip())


def absence(name: str, versions: str) -> str:
    """The message for an interpreter that is nowhere."""
    number = versions.strip("=<>~.* ").split(",")[0]
    return (
        f"no interpreter for '{name}': Python {versions} was found neither on PATH nor in pyenv nor in uv's store. "
        f"Install it, as with `pyenv install {number}`, or run: stele env make {name} --python PATH"
    )
