"""OLD and NEW in the forms that users have: a requirement, a lock file, a folder or an interpreter.

transformers==5.22.0                 a requirement of any package; several in quotes
dist/kernels-1.5-py3-none-any.whl    a wheel
requirements.txt, uv.lock, …         a lock file; FILE@REVISION reads it from git
.venv                                the folder of a virtual environment
/opt/venv/bin/python                 an interpreter
torch, keras-jax                     an environment of `stele env list`
"""

import contextlib
import dataclasses
import json
import os
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.tags import platform_tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from stele import environments, files
from stele.data import download
from stele.environments import Environment, lockfiles, packages, pins, revisions
from stele.environments.lockfiles import Locked
from stele.environments.lockfiles.source import parse_requirement
from stele.errors import SteleError
from stele.models.spec import Model
from stele.text import without_passwords

# what the models of a library need, beside the packages that the user names
NEEDS = {
    "hf": ("transformers", "torch"),
    "hf-tiny": ("transformers", "torch"),
    "timm": ("timm", "torch"),
    "torchvision": ("torchvision", "torch"),
}
WORKER_NEEDS = ("numpy",)
BACKEND = "KERAS_BACKEND"
BARE = Environment(name="", label="", framework="")  # the inspection of the model finds the framework
HOST = dataclasses.replace(BARE, name="host", label="this interpreter")


class Extras(NamedTuple):
    """What both arms get, beside what OLD and NEW name."""

    requirements: tuple[str, ...] = ()  # --with
    python: str | None = None  # --python: a path or a version
    allow_vcs: bool = False
    names: tuple[str, ...] = ()  # --extra: of the lock files
    options: tuple[str, ...] = ()  # of --with-project: which index is used


def load(text: str, model: Model | None, extras: Extras, *, locked: Locked | None = None) -> Environment:
    """Return the environment of one arm. Raises SteleError, quoting it, if it has none of the known forms.

    If ``locked`` is given, the arm installs that, and ``text`` is only its name.
    """
    if text in environments.names() and not extras.requirements:
        return of_described(environments.load(text), model, extras)
    if locked is not None:
        return required(text, locked.requirements, model, extras, locked=locked)
    if text.endswith(".whl"):
        return required(text, (wheel_requirement(text),), model, extras)
    interpreter = interpreter_of(text)
    if interpreter is not None:
        refuse_extras(text, extras)
        return in_interpreter(text, interpreter, model)
    locked = locked_of(text, extras)
    if locked is not None:
        return required(text, locked.requirements, model, extras, locked=locked)
    name, at, _ = text.partition("@")
    if at and name in environments.names():  # keras-jax@keras==3.14.1, or an interpreter of it
        return of_described(environments.load(text), model, extras)
    return required(text, tuple(split(text, extras)), model, extras)


def of_described(environment: Environment, model: Model | None, extras: Extras) -> Environment:
    """Return a described environment, or one that its name pins; of a model as the user runs it, with what it needs.

    Raises SteleError if it exists already and ``--with`` would change it.
    """
    if model is None:
        return environment
    if environment.name in environments.names():
        return as_user_runs(environment)
    if environment.lock is None:  # an interpreter of the user
        refuse_extras(environment.name, extras)
        return as_user_runs(environment)
    return with_model(environment, model, extras)


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


def interpreter_of(text: str) -> Path | None:
    """Return the interpreter that the text names, as a path or as the folder of a virtual environment."""
    path = files.expand(text)
    if files.is_folder(path):
        python = packages.venv_interpreter(path)
        if python is None:
            raise SteleError(f"{text} is a folder, but not a virtual environment: it has no bin/python.")
        return python.absolute()
    if "/" in text and "@" not in text and not lockfiles.is_lockfile(text):
        if not files.is_file(path):
            raise SteleError(f"There is no interpreter {text}.")
        return path.absolute()
    return None


def in_interpreter(text: str, interpreter: Path, model: Model | None) -> Environment:
    """Return the environment of an interpreter; without a model, the one whose framework it has."""
    if model is None:
        return dataclasses.replace(environments.load(str(interpreter)), name=text)
    return pins.with_interpreter(dataclasses.replace(BARE, name=text, label=text), interpreter)


def refuse_extras(text: str, extras: Extras) -> None:
    if extras.requirements:
        raise SteleError(
            f"--with adds packages to environments that Stele builds, but {text} exists already."
        )


def locked_of(text: str, extras: Extras) -> Locked | None:
    """Return the content of a lock file; None if the text does not name one."""
    file, _ = revisions.split(text)
    if not lockfiles.is_lockfile(str(file)):
        return None
    return revisions.read(text, allow_vcs=extras.allow_vcs, extras=extras.names)


def packages_in(*texts: str) -> set[str]:
    """Return the packages that typed requirements and wheels name."""
    found: set[str] = set()
    for text in texts:
        if text.endswith(".whl"):
            found.add(parse_wheel_filename(Path(text).name)[0])
            continue
        with contextlib.suppress(InvalidRequirement):
            found |= {name_of(part) for part in text.partition("@")[0].split() or [text]}
            found |= {name_of(part) for part in text.rpartition("@")[2].split()}
    return found


def check(text: str, parts: list[str], extras: Extras) -> None:
    """Raise SteleError for what only an installer understands, and for two pins of one package."""
    for part in parts:
        if part.startswith("-"):
            raise SteleError(
                f"{text!r} contains the installer option {part!r}. Name only packages here, and configure the index "
                "with the variables of uv, such as UV_INDEX_URL."
            )
    if "://" in text and not extras.allow_vcs:
        raise SteleError(f"{text!r} installs from a URL. Allow it with: --allow-vcs")


def split(text: str, extras: Extras) -> list[str]:
    """Return the requirements in ``torch==2.4 numpy<2``, separated by spaces."""
    parts = [text] if "://" in text else text.split()
    check(text, parts, extras)
    names: dict[str, str] = {}
    for part in parts:
        if names.setdefault(requirement_name(text, part), part) != part:
            raise SteleError(f"{text!r} pins one package twice: {names[name_of(part)]} and {part}.")
    return parts


def requirement_name(text: str, part: str) -> str:
    """Return the package of a requirement. Raises SteleError, quoting the text, if it is none."""
    try:
        requirement = parse_requirement(part)
        if requirement.url is None or "://" in part:
            return canonicalize_name(requirement.name)
        reason = f"{part} names no version"
    except ValueError as error:
        reason = str(error)
    raise SteleError(
        f"{text!r} is neither a requirement such as transformers==5.22.0, nor a lock file, an interpreter or an "
        f"environment of `stele env list`: {reason}"
    )


def required(
    text: str,
    requirements: tuple[str, ...],
    model: Model | None,
    extras: Extras,
    *,
    python: str | None = None,
    locked: Locked | None = None,
) -> Environment:
    """Return the environment with these requirements, those of both arms, and what the model's library needs.

    Of a ``locked`` file, its constraints, its index and its Python count, too.
    """
    base, wanted = base_of(text, requirements, model), [*requirements, *extras.requirements]
    library = () if model is None else NEEDS.get(model.library or "", ())
    needs = (*base.requirements, *library, *WORKER_NEEDS)
    typed = [one for one in dict.fromkeys(wanted) if name_of(one) != "python"]
    version = extras.python or python_of(wanted) or python or (locked.python if locked else None)
    name = without_passwords(text)
    if extras.options:
        own = locked or Locked((), None, "requirements")
        locked = dataclasses.replace(own, options=tuple(dict.fromkeys([*own.options, *extras.options])))
    built = pins.with_requirements(base, name, name, typed, specifier(version), locked, needs=needs)
    if model is None:
        return built
    untuned = as_user_runs(built)
    return dataclasses.replace(untuned, label=name, framework="", imports=(), modes={}, mode=None)


def as_user_runs(environment: Environment) -> Environment:
    """Return the environment without variables that the user has set to another value, and without tuning.

    Raises SteleError if its name says another backend of Keras than the user's variable.
    """
    backend, own = environment.variables.get(BACKEND), keras_backend()
    if backend and own and backend != own and environment.name.partition("@")[0] in environments.names():
        raise SteleError(
            f"{environment.name} runs Keras on {backend}, but your backend of Keras is {own} ({BACKEND}, or "
            f"keras.json). Name keras-{own}, or set {BACKEND}={backend}."
        )
    kept = {name: value for name, value in environment.variables.items() if name not in os.environ}
    return dataclasses.replace(environment, variables=kept, on_amd={})


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
    """Return the files outside of the project that decide how a model of the user runs. Keras writes its own."""
    return [keras_file()] if environment.framework in ("keras", "tensorflow") else []


def with_model(environment: Environment, model: Model, extras: Extras) -> Environment:
    """Return a release's environment with what a model needs; its name and its framework stay."""
    requirements = tuple(environment.requirements)
    built = required(environment.name, requirements, model, extras, python=environment.python)
    kept = {"label": environment.label, "framework": environment.framework, "imports": environment.imports}
    return dataclasses.replace(built, variables=as_user_runs(environment).variables, **kept)  # type: ignore[arg-type]


def base_of(text: str, requirements: tuple[str, ...], model: Model | None) -> Environment:
    """Return the described environment that the requirements stand for; of a model it may be none.

    Raises SteleError if nothing is described that could measure the built-in tasks.
    """
    candidates = [
        one for one in environments.described().values() if one.base is None and one.command is None
    ]
    named = {canonicalize_name(Requirement(one).name): Requirement(one) for one in requirements}
    few = len(requirements) == 1 or model is None  # a lock file of a model names all that it needs
    if model is not None and keras_backend() is not None:
        candidates = [one for one in candidates if one.variables.get(BACKEND) in (None, keras_backend())]
    found = pins.nearest_environment(named, candidates) if few else None
    if found is None and model is None:
        raise SteleError(pins.unsupported_message(text, named, candidates))
    return found or BARE


def python_of(requirements: list[str]) -> str | None:
    """Return the specifier of ``python==3.10`` among requirements."""
    return next((str(Requirement(one).specifier) for one in requirements if name_of(one) == "python"), None)


def specifier(version: str | None) -> str | None:
    """Return ``==3.11.*`` of ``3.11``; what is a specifier already stays as it is."""
    if version is None or version[:1] in "=<>~!":
        return version
    return f"=={version}.*"


def name_of(requirement: str) -> str:
    return canonicalize_name(Requirement(requirement).name)
