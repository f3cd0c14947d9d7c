"""Run uv to find interpreters, resolve requirements and install them. Each failure of uv has a message here."""

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from stele import files
from stele.environments import probe
from stele.errors import SteleError
from stele.text import without_passwords

UNSOLVABLE = "No solution found"
CONFLICT = "the requirements are in conflict"
# patterns of what uv prints if a requirement selects nothing, and the message of each
ABSENT = (
    (
        r"(\S+) was not found in the .+ and you require",
        "there is no package {} in the index. Check the spelling",
    ),
    (
        r"there is no version of (\S+) and you require",
        "there is no version {} in the index. Check the number",
    ),
    (
        r"only (?:the following versions of \S+ are available: )?(.+?)(?: is available)? and you require (\S+),",
        "there is no version {1} in the index, only {0}. Choose one of these",
    ),
)
NO_TOOLS = "Failed to resolve requirements from `"  # from `build-system.requires`, or from `setup.py` build
OFFLINE = (
    "a package is not in uv's cache, and the network is disabled. Build it once without --offline, and with "
    "UV_OFFLINE unset"
)
# a text that uv prints, and the message for it
FAILURES = (
    (
        "No space left on device",
        "the disk is full. Free some space, or set STELE_CACHE to a folder on another disk",
    ),
    (
        "Hash mismatch",
        "the hash of a package differs from the lock file. The index may have been tampered with",
    ),
    (
        "--require-hashes` mode",
        "a package has no hash, so it cannot be verified. Lock the packages with hashes",
    ),
    ("network was disabled", OFFLINE),
    ("Network connectivity is disabled", OFFLINE),
    ("error sending request", "the package index did not answer. Is there a network?"),
    ("Failed to fetch", "the package index did not answer. Is there a network?"),
    ("dns error", "the package index did not answer. Is there a network?"),
    (
        NO_TOOLS,
        "a source distribution needs a package to build it, and Stele has no hash of that package or of a version that "
        "suits. Choose a release that has a wheel, or name a file that pins the packages with hashes in "
        "UV_BUILD_CONSTRAINT",
    ),
    (UNSOLVABLE, CONFLICT),
    ("not found in the package registry", "the package index does not have the package"),
    ("Failed to query Python interpreter", "the interpreter does not work"),
    ("Querying Python at", "the interpreter does not work"),
    ("No interpreter found", "the interpreter does not exist"),
    ("Failed to inspect Python interpreter", "the interpreter does not work"),
)
# variables of uv that hold paths or addresses, and what separates several of them
PATH_VARIABLES = {
    "UV_FIND_LINKS": ",",
    "UV_CONSTRAINT": " ",
    "UV_OVERRIDE": " ",
    "UV_BUILD_CONSTRAINT": " ",
    "UV_CACHE_DIR": os.pathsep,
    "UV_CONFIG_FILE": os.pathsep,
}
# variables of uv that do not decide which packages it selects: they concern downloads, caches, output, interpreters,
# passwords and other commands. Every other one decides, also one that a later uv will have
HARMLESS = re.compile(
    r"UV_(CACHE_DIR|NO_CACHE|OFFLINE|NO_PROGRESS|HTTP_\w+|REQUEST_TIMEOUT|CONCURRENT_\w+|LINK_MODE|NATIVE_TLS|SYSTEM_CERTS"
    r"|INSECURE_HOST|KEYRING_PROVIDER|INDEX_\w+_(USERNAME|PASSWORD)|NO_CONFIG|NO_ENV_FILE|ENV_FILE|CUSTOM_COMPILE_COMMAND"
    r"|COMPILE_BYTECODE|STACK_SIZE|LOG_\w+|LOCK_TIMEOUT|NO_WRAP|RUN_\w+|INTERNAL_\w+|TOOL_\w+|PUBLISH_\w+|GITHUB_TOKEN"
    r"|PROJECT_ENVIRONMENT|VENV_\w+|SYSTEM_PYTHON|PYTHON_(INSTALL\w*|PREFERENCE|DOWNLOAD\w*|CACHE_DIR|BIN_DIR)"
    r"|MANAGED_PYTHON|NO_MANAGED_PYTHON)"
)
FLAGS = {"--pre": ("--prerelease", "allow"), "--trusted-host": ("--allow-insecure-host",)}  # of pip: of uv
LINES = 12  # of the output that an error shows


class Unsolvable(SteleError):
    """The requirements are in conflict, so another attempt would fail in the same way."""


def run_uv(*arguments: str | Path, purpose: str, text: str | None = None, offline: bool = False) -> str:
    """Run uv and return its output. Raises SteleError with ``purpose``, the cause, and the output of uv if it fails."""
    process = try_uv(*arguments, *(["--offline"] if offline else []), text=text)
    if process.returncode:
        kind = Unsolvable if is_lasting(process.stderr) else SteleError
        raise kind(f"{purpose}: {explain(process.stderr)}")
    return process.stdout


def is_lasting(output: str) -> bool:
    """Return whether another attempt would fail in the same way, with a network and with more hashes too."""
    return UNSOLVABLE in output and NO_TOOLS not in output and "network" not in output.lower()


def try_uv(*arguments: str | Path, text: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run uv and return the finished process, also if it failed."""
    from uv import find_uv_bin  # imported here because most commands do not need it

    command = [find_uv_bin(), "--no-config", "--color", "never", *map(str, arguments)]
    return probe.run(command, text=text, variables=uv_variables())


def uv_variables() -> dict[str, str]:
    """Return the variables that uv needs. Relative paths in them become absolute, because uv runs elsewhere."""
    absolute = {
        name: separator.join(absolute_path(part) for part in os.environ[name].split(separator) if part)
        for name, separator in PATH_VARIABLES.items()
        if name in os.environ
    }
    return {"PATH": search_path(), "UV_NO_PROGRESS": "1", **absolute}


def deciding() -> dict[str, list[str]]:
    """Return the variables of uv that decide which packages it selects, without passwords, by name.

    The value comes first, then a hash of each file that it names.
    """
    chosen = {
        name: value
        for name, value in {**os.environ, **uv_variables()}.items()
        if name.startswith("UV_") and value and not HARMLESS.fullmatch(name)
    }
    return {name: [without_passwords(value), *hashes_in(value)] for name, value in sorted(chosen.items())}


def hashes_in(value: str) -> list[str]:
    """Return a hash of each file that is named in a value, where spaces and commas separate paths."""
    paths = [Path(part) for part in re.split(r"[\s,]+", value) if part]
    return [hashlib.sha256(files.read_bytes(path)).hexdigest() for path in paths if files.is_file(path)]


def is_offline() -> bool:
    """Return whether the user's variable tells uv to use no network."""
    return os.environ.get("UV_OFFLINE", "").lower() in ("1", "true", "yes", "on", "y", "t")


def absolute_path(text: str) -> str:
    return text if "://" in text else str(files.absolute(text))


def in_file(options: Iterable[str]) -> list[str]:
    """Return the options of pip that uv reads in a file, where other users do not see the passwords in them."""
    return [option for option in options if option.partition(" ")[0] not in FLAGS]


def as_arguments(options: Iterable[str]) -> list[str]:
    """Return the other options of pip as arguments of uv.

    Like pip, uv then takes the best version in all indexes; by itself, it takes the first index that has the package.
    """
    arguments: list[str] = []
    for option in options:
        name, _, value = option.partition(" ")
        arguments += [*FLAGS[name], value] if value and name in FLAGS else FLAGS.get(name, ())
    if any("index-url" in option for option in options) and "UV_INDEX_STRATEGY" not in os.environ:
        arguments += ["--index-strategy", "unsafe-best-match"]
    return arguments


def explain(output: str) -> str:
    """Return the cause of a failure of uv, and the end of its output."""
    cause = next((cause for sign, cause in FAILURES if sign.lower() in output.lower()), "uv failed")
    if cause == CONFLICT:
        text = " ".join(output.split())
        cause = next(
            (template.format(*match.groups()) for sign, template in ABSENT if (match := re.search(sign, text))), cause
        )
    tail = "".join(f"\n    {line}" for line in without_passwords(output).strip().splitlines()[-LINES:])
    return f"{cause}{'' if cause.endswith('?') else '.'}\n  Output of uv:{tail}"


@cache
def search_path() -> str:
    """Return PATH with the folder of this interpreter first and the interpreters of pyenv added.

    The folders of pyenv, newest release first, replace its shims and are also appended. A shim is a slow script that
    selects one of these interpreters, and fails if none is selected.
    """
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    versions = sorted((pyenv / "versions").glob("*/bin"), key=release_numbers, reverse=True)
    interpreters = [str(folder) for folder in versions]
    shims = re.escape(str(pyenv)) + "/(.+/)?shims/?"  # pyenv-virtualenv has a second folder of shims
    folders = [str(Path(sys.base_exec_prefix) / "bin")]
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        folders += interpreters if re.fullmatch(shims, folder) else [folder]
    return os.pathsep.join(dict.fromkeys([*folders, *interpreters]))


def release_numbers(folder: Path) -> tuple[int, ...]:
    """Return (3, 10, 2) for the folder .../versions/3.10.2/bin."""
    return tuple(int(number) for number in re.findall(r"\d+", folder.parent.name))


@cache
def find_interpreter(versions: str) -> Path | None:
    """Return the first interpreter in a range such as ==3.8.*: on PATH, in pyenv or in uv's store; else None."""
    command = ["python", "find", "--system", "--no-project", "--no-python-downloads"]
    process = try_uv(*command, "--python-preference", "system", versions)
    return None if process.returncode else Path(process.stdout.strip())


def absence_message(name: str, versions: str) -> str:
    """Return the message for a missing interpreter."""
    number = versions.strip("=<>~.* ").split(",")[0]
    return (
        f"no interpreter for '{name}': Python {versions} is not on PATH, in pyenv or in uv's store. "
        f"Install it, for example with `pyenv install {number}`, or run: stele env make {name} --python PATH"
    )
