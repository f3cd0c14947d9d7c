"""OLD and NEW in the forms that users have: a requirement, a lock file, a folder or an interpreter.

transformers==5.22.0                 a requirement of any package; several in quotes
dist/kernels-1.5-py3-none-any.whl    a wheel
requirements.txt, uv.lock, …         a lock file; FILE@REVISION reads it from git
.venv                                the folder of a virtual environment
/opt/venv/bin/python                 an interpreter
torch, keras-jax                     an environment of `stele env list`
keras-jax@keras==3.14.1              such an environment with other packages, or in another interpreter
"""

import contextlib
import dataclasses
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.tags import platform_tags
from packaging.utils import InvalidWheelFilename, NormalizedName, canonicalize_name, parse_wheel_filename

from stele import environments, files
from stele.data import download
from stele.environments import Environment, lockfiles, packages, pins, revisions
from stele.environments.lockfiles import Locked
from stele.environments.lockfiles.source import parse_requirement
from stele.errors import SteleError
from stele.text import without_passwords

Kind = Literal["environment", "pinned environment", "wheel", "folder", "interpreter", "lock file", "requirements"]

WORKER_NEEDS = ("numpy",)
BACKEND = "KERAS_BACKEND"
BARE = Environment(name="", label="", framework="")  # the worker says which framework the user's code needs
HOST = dataclasses.replace(BARE, name="host", label="this interpreter")


class Needs(NamedTuple):
    """What a subject needs of the environment of an arm."""

    # packages, beside those that the user names
    packages: tuple[str, ...] = ()
    # whether it is measured in an environment of `stele env list`, with its modes and its tuning. Code of the user runs
    # as the user runs it, in any environment
    described: bool = False


TASKS = Needs(described=True)


class Extras(NamedTuple):
    """What options add to both arms."""

    requirements: tuple[str, ...] = ()  # --with
    python: str | None = None  # --python: a path or a version
    allow_vcs: bool = False
    names: tuple[str, ...] = ()  # --extra: of the lock files
    options: tuple[str, ...] = ()  # of --with-project: which index is used


def load(text: str, needs: Needs, extras: Extras, *, locked: Locked | None = None) -> Environment:
    """Return the environment of one arm. Raises SteleError, quoting the text, if it has none of the known forms.

    If ``locked`` is given, the arm installs that, and ``text`` is only its name.
    """
    kind = kind_of(text)
    if locked is not None and (kind != "environment" or extras.requirements):
        return installed(text, locked.requirements, needs, extras, locked=locked)
    match kind:
        case "environment" if not extras.requirements:
            environment = environments.load(text)
            return environment if needs.described else as_user_runs(environment)
        case "pinned environment":
            return of_pinned(environments.load(text), needs, extras)
        case "wheel":
            return installed(text, [wheel_requirement(text)], needs, extras)
        case "folder" | "interpreter":
            path = interpreter_in(text) if kind == "folder" else interpreter_at(text)
            return of_interpreter(text, path, needs, extras)
        case "lock file":
            content = revisions.read(text, allow_vcs=extras.allow_vcs, extras=extras.names)
            return installed(text, content.requirements, needs, extras, locked=content)
        case _:
            return installed(text, requirements_in(text, extras), needs, extras)


def kind_of(text: str) -> Kind:
    """Return what a text names. Its form decides, and which folders, files and revisions exist."""
    name, at, _ = text.partition("@")
    if text in environments.names():
        return "environment"
    if text.endswith(".whl"):
        return "wheel"
    if files.is_folder(files.expand(text)):
        return "folder"
    if "/" in text and not at and not lockfiles.is_lockfile(text):
        return "interpreter"
    if lockfiles.is_lockfile(str(revisions.split(text)[0])):
        return "lock file"
    return "pinned environment" if at and name in environments.names() else "requirements"


def of_pinned(environment: Environment, needs: Needs, extras: Extras) -> Environment:
    """Return a described environment that the name of the arm pins, such as ``keras-jax@keras==3.14.1``.

    Raises SteleError if it is in an interpreter of the user and ``--with`` would change it.
    """
    if environment.lock is None and not needs.described:
        refuse_requirements(environment.name, extras)
        return as_user_runs(environment)
    return with_needs(environment, needs, extras)


def wheel_requirement(text: str) -> str:
    """Return the requirement of a wheel file, with its hash, so that one that is built again is installed again.

    Raises SteleError if there is none, or if it is for another platform.
    """
    path = files.absolute(text)
    if not files.is_file(path):
        raise SteleError(f"There is no wheel {text}.")
    try:
        name, _, _, _ = parse_wheel_filename(path.name)
    except InvalidWheelFilename as error:
        raise SteleError(f"{text} is not the name of a wheel: {error}.") from None
    platforms = lockfiles.wheel_platforms(path.as_uri())
    if platforms.isdisjoint({"any", *platform_tags()}):
        raise SteleError(f"{text} is a wheel for {' and '.join(sorted(platforms))}, not for this machine.")
    return f"{name} @ {path.as_uri()}#sha256={download.sha256_of(path)}"


def interpreter_in(text: str) -> Path:
    """Return the interpreter in the folder of a virtual environment."""
    python = packages.venv_interpreter(files.expand(text))
    if python is None:
        raise SteleError(f"{text} is a folder, but not a virtual environment: it has no bin/python.")
    return python.absolute()


def interpreter_at(text: str) -> Path:
    path = files.expand(text)
    if not files.is_file(path):
        raise SteleError(f"There is no interpreter {text}.")
    return path.absolute()


def of_interpreter(text: str, interpreter: Path, needs: Needs, extras: Extras) -> Environment:
    """Return the environment of an interpreter; for the built-in tasks, the described one whose framework it has."""
    refuse_requirements(text, extras)
    if needs.described:
        return dataclasses.replace(environments.load(str(interpreter)), name=text)
    return pins.with_interpreter(dataclasses.replace(BARE, name=text, label=text), interpreter)


def refuse_requirements(text: str, extras: Extras) -> None:
    if extras.requirements:
        raise SteleError(f"--with adds packages to environments that Stele builds, but {text} exists already.")


def packages_in(*texts: str) -> set[str]:
    """Return the packages that typed requirements and wheels name."""
    names: set[str] = set()
    for text in texts:
        if text.endswith(".whl"):
            names.add(parse_wheel_filename(Path(text).name)[0])
            continue
        with contextlib.suppress(InvalidRequirement):
            names |= {name_of(part) for part in text.partition("@")[0].split() or [text]}
            names |= {name_of(part) for part in text.rpartition("@")[2].split()}
    return names


def requirements_in(text: str, extras: Extras) -> list[str]:
    """Return the requirements in ``torch==2.4 numpy<2``, separated by spaces.

    Raises SteleError for what only an installer understands, and for two pins of one package.
    """
    parts = [text] if "://" in text else text.split()
    for part in parts:
        if part.startswith("-"):
            raise SteleError(
                f"{text!r} contains the installer option {part!r}. Name only packages here, and configure the index "
                "with the variables of uv, such as UV_INDEX_URL."
            )
    if "://" in text and not extras.allow_vcs:
        raise SteleError(f"{text!r} installs from a URL. Allow it with: --allow-vcs")
    names: dict[str, str] = {}
    for part in parts:
        first = names.setdefault(checked_name(text, part), part)
        if first != part:
            raise SteleError(f"{text!r} pins one package twice: {first} and {part}.")
    return parts


def checked_name(text: str, part: str) -> str:
    """Return the package of a requirement. Raises SteleError, quoting the text, if it is none."""
    try:
        requirement = parse_requirement(part)
        if requirement.url is None or "://" in part:
            return canonicalize_name(requirement.name)
        reason = f"{part} names no version"
    except ValueError as error:
        reason = str(error)
    name, equals, version = part.partition("=")
    if equals and version[:1].isdigit():
        raise SteleError(f"{text!r} has one =. Did you mean {name}=={version}?")
    raise SteleError(
        f"{text!r} is neither a requirement such as transformers==5.22.0, nor a lock file, an interpreter or an "
        f"environment of `stele env list`: {reason}"
    )


def installed(
    text: str,
    requirements: Sequence[str],
    needs: Needs,
    extras: Extras,
    *,
    python: str | None = None,
    locked: Locked | None = None,
) -> Environment:
    """Return the environment with these requirements, those of both arms, and what the subject needs.

    Of a ``locked`` file, its constraints, its index and its Python count, too.
    """
    base = base_of(text, requirements, needs)
    typed = dict.fromkeys([*requirements, *extras.requirements])
    interpreters = [line for line in typed if name_of(line) == "python"]  # ``python==3.10``
    stated = str(Requirement(interpreters[0]).specifier) if interpreters else None
    version = extras.python or stated or python or (locked.python if locked else None)
    if extras.options:
        locked = locked or Locked((), None, "requirements")
        locked = dataclasses.replace(locked, options=tuple(dict.fromkeys([*locked.options, *extras.options])))
    name = without_passwords(text)
    environment = pins.with_requirements(
        base,
        name,
        name,
        [line for line in typed if line not in interpreters],
        specifier(version),
        locked,
        needs=(*base.requirements, *needs.packages, *WORKER_NEEDS),
    )
    if needs.described:
        return environment
    untuned = as_user_runs(environment)
    return dataclasses.replace(untuned, label=name, framework="", imports=(), modes={}, mode=None)


def base_of(text: str, requirements: Sequence[str], needs: Needs) -> Environment:
    """Return the described environment that the requirements stand for; for code of the user it may be none.

    Raises SteleError if nothing is described that could measure the built-in tasks.
    """
    candidates = [each for each in environments.described().values() if each.base is None and each.command is None]
    named = {name_of(line): Requirement(line) for line in requirements}
    backend = keras_backend()
    if not needs.described and backend is not None:
        candidates = [each for each in candidates if each.variables.get(BACKEND) in (None, backend)]
    # a lock file for code of the user names all that it needs
    is_partial = len(requirements) == 1 or needs.described
    nearest = pins.nearest_environment(named, candidates) if is_partial else None
    if nearest is None and needs.described:
        if len(named) == 1 and not any(pin.specifier for pin in named.values()):
            raise SteleError(pins.unknown_framework(text, environments.names()))
        raise SteleError(pins.unsupported_message(text, named, candidates))
    return nearest or BARE


def with_needs(environment: Environment, needs: Needs, extras: Extras) -> Environment:
    """Return a release's environment with what a subject needs; its name and its framework stay.

    What an environment of the tables has is enough for the built-in tasks.
    """
    if needs.described:
        return environment
    requirements = tuple(environment.requirements)
    return dataclasses.replace(
        installed(environment.name, requirements, needs, extras, python=environment.python),
        variables=as_user_runs(environment).variables,
        label=environment.label,
        framework=environment.framework,
        imports=environment.imports,
    )


def as_user_runs(environment: Environment) -> Environment:
    """Return the environment without variables that the user has set to another value, and without tuning.

    Raises SteleError if its name says another backend of Keras than the user's variable.
    """
    backend, chosen = environment.variables.get(BACKEND), keras_backend()
    if backend and chosen and backend != chosen and environment.name.partition("@")[0] in environments.names():
        raise SteleError(
            f"{environment.name} runs Keras on {backend}, but your backend of Keras is {chosen} ({BACKEND}, or "
            f"keras.json). Name keras-{chosen}, or set {BACKEND}={backend}."
        )
    unset = {name: value for name, value in environment.variables.items() if name not in os.environ}
    return dataclasses.replace(environment, variables=unset, on_amd={})


def keras_backend() -> str | None:
    """Return the backend of Keras that the user has chosen, by variable or in keras.json; None for Keras' default."""
    if os.environ.get(BACKEND):
        return os.environ[BACKEND]
    try:
        chosen = json.loads(files.read_text(keras_file())).get("backend")
    except (OSError, ValueError, AttributeError, SteleError):
        return None
    return chosen if isinstance(chosen, str) else None


def keras_file() -> Path:
    """Return the path of the user's settings of Keras."""
    return files.absolute(os.environ.get("KERAS_HOME") or "~/.keras") / "keras.json"


def config_files(environment: Environment) -> list[Path]:
    """Return the files outside of the project that decide how code of the user runs. Keras writes its own."""
    return [keras_file()] if environment.framework in ("keras", "tensorflow") else []


def specifier(version: str | None) -> str | None:
    """Return ``==3.11.*`` of ``3.11``; what is a specifier already stays as it is."""
    if version is None or version[:1] in "=<>~!":
        return version
    return f"=={version}.*"


def name_of(requirement: str) -> NormalizedName:
    return canonicalize_name(Requirement(requirement).name)
