"""Built environments: virtual environments in the user's cache, named after a hash of the lock file and of the Python.

    environments/<hash>/             a complete virtual environment
    environments/<hash>.building/    an incomplete one, in progress or left by a killed process
    environments/<hash>.guard        locked by the process that builds it
    environments/locks/<hash>.lock   the packages that a requirement on a command line resolved to
Two environments with the same lock file and the same Python share a build.
"""

import contextlib
import dataclasses
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import filelock
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from stele import files, temporary
from stele.data import cache
from stele.environments import installer, libraries, lock_text, probe, revisions
from stele.environments.environment import MODULE, REQUESTED, Environment
from stele.errors import SteleError
from stele.text import without_passwords

TIMEOUT = 300.0  # seconds for an import; the first import of Theano compiles
BUILD_TOOLS = "builds.txt"
COMMON_TOOLS = Path(__file__).parent / "descriptions" / BUILD_TOOLS
# a package without a hash: Git itself verifies the content of a commit
COMMIT = re.compile(r"\S+ @ git\+\S+@[0-9a-f]{40}(#\S*)?")
SAME_CONTENT = re.compile(r"git\+\S+@[0-9a-f]{40}(#.*)?|\S+#(.*&)?sha(256|384|512)=\S+")  # of a URL, on every day


def root_folder() -> Path:
    return cache.folder() / "environments"


def folder(environment: Environment) -> Path | None:
    """Return the folder of the build, which may not exist yet; None if the requirements are not resolved."""
    if environment.lock is None or not environment.lock.exists():
        return None
    # a lock file lists the wheels of every Python, so two Pythons may have the same one
    content = (environment.python or "").encode() + environment.lock.read_bytes()
    return root_folder() / hashlib.sha256(content).hexdigest()[:16]


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
    """Return the environment variables of the environment's worker, with those of its build if there is one."""
    return variables_for(environment, folder(environment))


def variables_for(environment: Environment, target: Path | None) -> dict[str, str]:
    """Return the environment variables of the worker for a build in ``target``; None means that there is no build."""
    chosen = {**environment.variables, **(environment.on_amd if libraries.is_amd() else {})}
    values = {
        name: value.replace("{folder}", str(target))
        for name, value in chosen.items()
        if target is not None or "{folder}" not in value  # an interpreter of the user has no build folder
    }
    if environment.libraries and target:
        values["LD_LIBRARY_PATH"] = str(links_folder(target))
    return values


def links_folder(target: Path) -> Path:
    """Return the folder with the links to system libraries."""
    return target / "lib" / "stele"


def has_dangling_links(folder: Path) -> bool:
    """Return whether a link in the folder leads to a file that does not exist."""
    return folder.exists() and not all(path.exists() for path in folder.iterdir())


def make_command(environment: Environment) -> str:
    """Return the command that builds the environment, as it can be pasted into a shell."""
    name = environment.name
    return f"stele env make {name if name.replace('-', '').replace('_', '').isalnum() else repr(name)}"


def make(
    environment: Environment, interpreter: Path | None = None, *, offline: bool = False, fresh: bool = False
) -> bool:
    """Build the environment unless it exists. Return whether it was built. ``offline`` uses only uv's cache.

    ``fresh`` is that of ``resolve``.

    An interruption at any moment leaves no incomplete environment in its folder. Raises SteleError if there is no
    interpreter, a library is missing, the requirements cannot be resolved, or the import of the framework fails.
    """
    base = interpreter or require_interpreter(environment)
    paths = libraries.locate(environment)
    resolve(environment, base, offline=offline, fresh=fresh)
    target = folder(environment)
    assert target is not None
    with locked(target):
        if (target / "bin" / "python").exists() and not has_dangling_links(links_folder(target)):
            return False
        with building_folder(target) as building:
            install(environment, building, base, paths, offline=offline)
            remove_folder(target)  # it exists only if its interpreter or a library was deleted
            building.rename(target)
    return True


def require_interpreter(environment: Environment) -> Path:
    """Return the interpreter to build with. Raises SteleError, with what to install, if there is none."""
    base = installer.find_interpreter(environment.python or "")
    if base is None:
        raise SteleError(installer.absence_message(environment.name, environment.python or ""))
    return base


def install(
    environment: Environment, building: Path, base: Path, paths: dict[str, Path], *, offline: bool = False
) -> None:
    """Create a virtual environment, install the locked packages, link the libraries and check the imports."""
    installer.run_uv("venv", "--python", base, building, purpose=f"Creating '{environment.name}' with {base}")
    install_locked(environment, building / "bin" / "python", offline=offline)
    libraries.link(environment, paths, links_folder(building))
    check_imports(environment, building)


def install_locked(environment: Environment, python: Path, *, offline: bool) -> None:
    """Install the packages of the lock file. Each has a hash, or is a commit of a Git repository."""
    lock = environment.lock
    assert lock is not None
    lines = revisions.read_text(lock).splitlines()
    commits = [line for line in lines if COMMIT.fullmatch(line)]
    options: list[str | Path] = ["--python", python, "--link-mode", "hardlink", *verified_tools(lock)]
    options += installer.as_arguments(environment.resolution.options)
    indexes = installer.in_file(environment.resolution.options)
    purpose = f"Installing '{environment.name}' from {lock}"
    with temporary.folder() as folder:
        hashed = folder / "requirements.txt"
        packages = [line for line in lines if line not in commits]
        hashed.write_text("\n".join([*indexes, *packages]), encoding="utf-8")
        command: list[str | Path] = [
            "pip",
            "install",
            "--no-deps",
            "--require-hashes",
            "--requirements",
            hashed,
        ]
        installer.run_uv(*command, *options, purpose=purpose, offline=offline)
        if commits:
            sources = folder / "commits.txt"
            sources.write_text("\n".join([*indexes, *commits]), encoding="utf-8")
            command = ["pip", "install", "--no-deps", "--requirements", sources]
            installer.run_uv(*command, *options, purpose=purpose, offline=offline)


def verified_tools(lock: Path) -> list[str | Path]:
    """Return the options of uv with which every package that builds a source distribution must have a known hash.

    The hashes are in ``builds.txt`` beside the lock file; else in the files that UV_BUILD_CONSTRAINT names, which uv
    reads; else in the ``builds.txt`` of this package.
    """
    options: list[str | Path] = ["--preview-features", "build-dependency-hashes", "--require-build-hashes"]
    beside = lock.with_name(BUILD_TOOLS)
    if not beside.exists() and os.environ.get("UV_BUILD_CONSTRAINT"):
        return options
    return [*options, "--build-constraints", beside if beside.exists() else COMMON_TOOLS]


class ImportFailed(SteleError):
    """The framework was installed, but its import failed."""


def check_imports(environment: Environment, building: Path) -> None:
    """Import the framework as its worker does. Raises ImportFailed with the error if the import fails."""
    error = import_error(environment, building / "bin" / "python", building)
    if error is not None:
        raise ImportFailed(f"'{environment.name}' was installed, but its import failed:\n    {error}")


def import_error(environment: Environment, python: Path, target: Path | None) -> str | None:
    """Return the end of the output if the framework's import fails in an interpreter, else None.

    ``target`` is the folder of the build. Raises SteleError if the import takes more than TIMEOUT.
    """
    command = [str(python), "-c", "import " + ", ".join(environment.imports or ("sys",))]
    try:
        process = probe.run(command, timeout=TIMEOUT, variables=variables_for(environment, target))
    except subprocess.TimeoutExpired:
        raise SteleError(f"'{environment.name}' was installed, but its import took more than {TIMEOUT:g} s.") from None
    if process.returncode == 0:
        return None
    return "\n    ".join(process.stderr.strip().splitlines()[-installer.LINES :])


def import_error_now(environment: Environment) -> str | None:
    """Return why the import fails in an environment that exists; None if it works, or its worker is no Python."""
    interpreter, *arguments = command(environment)
    if tuple(arguments) != MODULE:
        return None
    return import_error(environment, Path(interpreter), folder(environment))


def resolve(environment: Environment, base: Path, *, offline: bool = False, fresh: bool = False) -> None:
    """Write the lock file unless it exists. With ``fresh``, write it again if its packages depend on the day.

    Offline, a lock file that exists is used.
    """
    if environment.lock is None:
        raise SteleError(f"'{environment.name}' has no requirements, so it cannot be built.")
    again = fresh and is_dated(environment) and not (offline or installer.is_offline())
    if again or not environment.lock.exists():
        lock(environment, base, offline=offline)
    elif environment.requirements and not environment.lock.read_bytes().strip():
        raise SteleError(
            f"{environment.lock} contains no packages. Lock them again with: stele env lock {environment.name}"
        )


def is_dated(environment: Environment) -> bool:
    """Return whether typed requirements may select other packages on another day: a range, a branch, a URL."""
    typed = [text for text, reason in environment.requirements.items() if reason == REQUESTED]
    return environment.lock is not None and is_typed(environment) and not all(map(is_exact, typed))


def is_exact(text: str) -> bool:
    """Return whether a requirement always selects the same files: one version, a commit, or a URL with a hash."""
    requirement = Requirement(text)
    if requirement.url:
        return SAME_CONTENT.fullmatch(requirement.url) is not None
    return any(
        part.operator == "===" or (part.operator == "==" and not part.version.endswith(".*"))
        for part in requirement.specifier
    )


def is_typed(environment: Environment) -> bool:
    """Return whether the packages are those of requirements that a user typed, and not of a lock file of Stele."""
    return environment.lock is not None and environment.lock.parent == locks_folder()


def lock(environment: Environment, base: Path, *, offline: bool = False) -> None:
    """Write the lock file: every package that the requirements need, with hashes."""
    assert environment.lock is not None
    resolution = environment.resolution
    options: list[str | Path] = [
        "--generate-hashes",
        "--no-header",
        "--no-annotate",
        "--python",
        base,
        "--quiet",
        *verified_tools(environment.lock),
        *installer.as_arguments(resolution.options),
    ]
    with temporary.folder() as folder:
        output = folder / "requirements.txt"
        if resolution.prefer is not None:
            # uv keeps the versions of an existing output file, and their hashes
            output.write_text(lock_text.without_hashes(resolution.prefer.read_text(encoding="utf-8")), encoding="utf-8")
            options += [word for name in resolution.upgraded for word in ("--upgrade-package", name)]
        if resolution.constraints:
            limits = folder / "constraints.txt"
            limits.write_text("\n".join(resolution.constraints), encoding="utf-8")
            options += ["--constraints", limits]
        installer.run_uv(
            "pip",
            "compile",
            "-",
            *options,
            "--output-file",
            output,
            purpose=f"Resolving '{environment.name}'",
            text="\n".join([*installer.in_file(resolution.options), *environment.requirements]),
            offline=offline,
        )
        text = output.read_text(encoding="utf-8")
        files.write_text(environment.lock, lock_text.keep_allowed(text, resolution.hashes))


def resolved_like(environment: Environment, other: Environment) -> Environment:
    """Return the environment, to be resolved with the versions of ``other`` wherever its requirements allow it.

    A package that they state differently is what the user upgrades: its version in ``other`` is not taken. Both must be
    typed requirements: an environment with a lock file of its own stays as it is.
    """
    if not (is_typed(environment) and is_typed(other)) or environment == other:
        return environment
    assert environment.lock is not None and other.lock is not None
    upgraded = tuple(stated_differently(environment, other))
    words = [environment.lock.name, *upgraded]
    key = hashlib.sha256(" ".join(words).encode() + b"\n" + other.lock.read_bytes()).hexdigest()[:16]
    resolution = dataclasses.replace(environment.resolution, prefer=other.lock, upgraded=upgraded)
    return dataclasses.replace(environment, lock=locks_folder() / f"{key}.lock", resolution=resolution)


def stated_differently(environment: Environment, other: Environment) -> list[str]:
    """Return the packages that two environments require or limit with different words, or from another index."""
    here, there = stated(environment), stated(other)
    return [name for name in sorted({*here, *there}) if here.get(name) != there.get(name)]


def stated(environment: Environment) -> dict[str, list[str]]:
    """Return what an environment says about each package that it names, by canonical name, with the index options."""
    options = [without_passwords(option) for option in environment.resolution.options]
    lines_of: dict[str, set[str]] = {}
    for kind, texts in (("require", environment.requirements), ("limit", environment.resolution.constraints)):
        for text in texts:
            requirement = Requirement(text)
            requirement.name = canonicalize_name(requirement.name)
            lines_of.setdefault(requirement.name, set()).add(f"{kind} {requirement}")
    return {name: [*options, *sorted(lines)] for name, lines in lines_of.items()}


def have_same_files(lock: Path, other: Path) -> bool:
    """Return whether two lock files select the same versions, and files that are equal as far as both list them."""
    here, there = hashes_in(lock), hashes_in(other)
    pairs = [(here[package], there[package]) for package in here if package in there]
    return here.keys() == there.keys() and all(ours & theirs or ours == theirs for ours, theirs in pairs)


def hashes_in(lock: Path) -> dict[str, set[str]]:
    """Return the hashes of each package, ``name==version``, in a lock file."""
    pinned_lines = (entry for entry in lock_text.entries(revisions.read_text(lock)) if entry[0])
    return {first: {line.strip() for line in lines} for first, *lines in pinned_lines}


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
    """Rename a folder, then delete it, so that other processes never see it partly deleted.

    Of a link, only the link is deleted.
    """
    if target.is_symlink():
        target.unlink()
    elif target.exists():
        removing = target.with_suffix(".removing")
        shutil.rmtree(removing, ignore_errors=True)
        target.rename(removing)
        shutil.rmtree(removing)


@contextlib.contextmanager
def locked(target: Path) -> Iterator[None]:
    """Hold the file lock of a build. The operating system releases it when the process ends."""
    cache.create()
    target.parent.mkdir(mode=0o700, exist_ok=True)
    with filelock.FileLock(target.with_suffix(".guard")):
        yield


@contextlib.contextmanager
def building_folder(target: Path) -> Iterator[Path]:
    """Yield a folder to build in. It is deleted at the end unless it was renamed."""
    building = target.with_suffix(".building")
    shutil.rmtree(building, ignore_errors=True)
    building.mkdir(mode=0o700)  # only this user can enter it
    try:
        yield building
    finally:
        shutil.rmtree(building, ignore_errors=True)
