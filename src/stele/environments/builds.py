"""Built environments: virtual environments in the user's cache, each named after the hash of its lock file.

    environments/<hash>/             a complete virtual environment
    environments/<hash>.building/    an incomplete one, in progress or left by a killed process
    environments/<hash>.guard        locked by the process that builds it
    environments/locks/<hash>.lock   the packages that a requirement on a command line resolved to
Two environments with the same lock file share a build.
"""

import contextlib
import dataclasses
import fcntl
import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from stele import files
from stele.data import cache
from stele.environments import installer, libraries
from stele.environments.description import MODULE, Environment
from stele.errors import SteleError

TIMEOUT = 300.0  # seconds for an import; the first import of Theano compiles


def root_folder() -> Path:
    """Return the folder of all builds."""
    return cache.folder() / "environments"


def folder(environment: Environment) -> Path | None:
    """Return the folder of the build, which may not exist yet; None if the requirements are not resolved."""
    if environment.lock is None or not environment.lock.exists():
        return None
    return root_folder() / hashlib.sha256(environment.lock.read_bytes()).hexdigest()[:16]


def command(environment: Environment) -> tuple[str, ...]:
    """Return the command that starts the worker."""
    if environment.command is not None:
        interpreter = str(python(environment)) if environment.lock is not None else sys.executable
        return tuple(part.replace("{python}", interpreter) for part in environment.command)
    return (sys.executable if environment.python is None else str(python(environment)), *MODULE)


def python(environment: Environment) -> Path:
    """Return the interpreter of the build. Raises SteleError if the requirements are not resolved."""
    target = folder(environment)
    if target is None:
        raise SteleError(f"'{environment.name}' is not built. Build it with: {make_command(environment)}")
    return target / "bin" / "python"


def variables(environment: Environment) -> dict[str, str]:
    """Return the environment variables of the worker."""
    return variables_for(environment, folder(environment))


def variables_for(environment: Environment, target: Path | None) -> dict[str, str]:
    """Return the environment variables of the worker for a build in ``target``; None means that there is no build."""
    values = {
        name: value.replace("{folder}", str(target))
        for name, value in environment.variables.items()
        if target is not None or "{folder}" not in value  # an interpreter of the user has no build folder
    }
    if environment.libraries and target:
        values["LD_LIBRARY_PATH"] = str(links_folder(target))
    return values


def links_folder(target: Path) -> Path:
    """Return the folder with the links to system libraries."""
    return target / "lib" / "stele"


def make_command(environment: Environment) -> str:
    """Return the command that builds the environment."""
    name = environment.name
    return f"stele env make {name if name.replace('-', '').replace('_', '').isalnum() else repr(name)}"


def make(environment: Environment, interpreter: Path | None = None) -> bool:
    """Build the environment unless it exists. Return whether it was built.

    An interruption at any moment leaves no incomplete environment in its folder. Raises SteleError if there is no
    interpreter, a library is missing, the requirements cannot be resolved, or the import of the framework fails.
    """
    base = interpreter or require_interpreter(environment)
    paths = libraries.locate(environment)
    resolve(environment, base)
    target = folder(environment)
    assert target is not None
    with locked(target):
        if (target / "bin" / "python").exists():
            return False
        with building_folder(target) as building:
            install(environment, building, base, paths)
            remove_folder(target)  # it exists only if its interpreter was deleted
            building.rename(target)
    return True


def require_interpreter(environment: Environment) -> Path:
    """Return the interpreter to build with. Raises SteleError, with what to install, if there is none."""
    base = installer.find_interpreter(environment.python or "")
    if base is None:
        raise SteleError(installer.absence_message(environment.name, environment.python or ""))
    return base


def install(environment: Environment, building: Path, base: Path, paths: dict[str, Path]) -> None:
    """Create a virtual environment, install the locked packages, link the libraries and check the imports."""
    name = environment.name
    installer.run_uv("venv", "--python", base, building, purpose=f"Creating '{name}' with {base}")
    target: list[str | Path] = ["--python", building / "bin" / "python"]
    options = ["--require-hashes", "--link-mode", "hardlink"]
    installer.run_uv("pip", "sync", *target, *options, str(environment.lock), purpose=f"Installing '{name}'")
    libraries.link(environment, paths, links_folder(building))
    check_imports(environment, building)


class ImportFailed(SteleError):
    """The framework was installed, but its import failed."""


def check_imports(environment: Environment, building: Path) -> None:
    """Import the framework as its worker does. Raises ImportFailed with the error if the import fails."""
    code = "import " + ", ".join(environment.imports or ("sys",))
    command = [str(building / "bin" / "python"), "-c", code]
    variables = libraries.clean_variables(variables_for(environment, building))
    try:
        process = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        raise SteleError(
            f"'{environment.name}' was installed, but its import took more than {TIMEOUT:g} s."
        ) from None
    if process.returncode:
        tail = "\n    ".join(process.stderr.strip().splitlines()[-installer.LINES :])
        raise ImportFailed(f"'{environment.name}' was installed, but its import failed:\n    {tail}")


def resolve(environment: Environment, base: Path) -> None:
    """Write the lock file unless it exists."""
    if environment.lock is None:
        raise SteleError(f"'{environment.name}' has no requirements, so it cannot be built.")
    if not environment.lock.exists():
        lock(environment, base)


def lock(environment: Environment, base: Path) -> None:
    """Write the lock file: every package that the requirements need, with hashes."""
    assert environment.lock is not None
    options: list[str | Path] = [
        "--generate-hashes",
        "--no-header",
        "--no-annotate",
        "--python",
        base,
        "--quiet",
    ]
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "requirements.txt"
        if environment.prefer is not None:
            shutil.copy(environment.prefer, output)  # uv keeps the versions of an existing output file
        installer.run_uv(
            "pip",
            "compile",
            "-",
            *options,
            "--output-file",
            output,
            purpose=f"Resolving '{environment.name}'",
            text="\n".join(environment.requirements),
        )
        files.write_text(environment.lock, output.read_text(encoding="utf-8"))


def resolved_like(environment: Environment, other: Environment) -> Environment:
    """Return the environment, to be resolved with the versions of ``other`` wherever its requirements allow it.

    Both must be typed requirements: an environment with a lock file of its own stays as it is.
    """
    locks = (environment.lock, other.lock)
    if any(lock is None or lock.parent != locks_folder() for lock in locks) or environment == other:
        return environment
    assert environment.lock is not None and other.lock is not None
    key = hashlib.sha256(environment.lock.name.encode() + other.lock.read_bytes()).hexdigest()[:16]
    return dataclasses.replace(environment, lock=locks_folder() / f"{key}.lock", prefer=other.lock)


def locks_folder() -> Path:
    """Return the folder of the lock files of requirements that a user typed."""
    return root_folder() / "locks"


def remove(environment: Environment) -> bool:
    """Delete the build. Return False if there was none."""
    target = folder(environment)
    if target is None or not target.exists():
        return False
    with locked(target):
        remove_folder(target)
    return True


def remove_folder(target: Path) -> None:
    """Rename a folder, then delete it, so that other processes never see it partly deleted."""
    if target.exists():
        removing = target.with_suffix(".removing")
        shutil.rmtree(removing, ignore_errors=True)
        target.rename(removing)
        shutil.rmtree(removing)


@contextlib.contextmanager
def locked(target: Path) -> Iterator[None]:
    """Hold the file lock of a build. The operating system releases it when the process ends."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_suffix(".guard").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def building_folder(target: Path) -> Iterator[Path]:
    """Yield a folder to build in. It is deleted at the end unless it was renamed."""
    building = target.with_suffix(".building")
    shutil.rmtree(building, ignore_errors=True)
    try:
        yield building
    finally:
        shutil.rmtree(building, ignore_errors=True)
