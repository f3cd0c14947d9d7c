"""OLD and NEW in the forms that users have: a requirement, a lock file, a folder or an interpreter.

transformers==5.22.0                 a requirement of any package; several in quotes
requirements.txt, uv.lock, …         a lock file; FILE@REVISION reads it from git
.venv                                the folder of a virtual environment
/opt/venv/bin/python                 an interpreter
torch, keras-jax                     an environment of `stele env list`
"""

import dataclasses
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from stele import environments
from stele.environments import Environment, lockfiles, packages, pins, revisions
from stele.environments.lockfiles import Locked
from stele.errors import SteleError
from stele.models.spec import Model

# what the models of a library need, beside the packages that the user names
NEEDS = {
    "hf": ("transformers", "torch"),
    "hf-tiny": ("transformers", "torch"),
    "timm": ("timm", "torch"),
    "torchvision": ("torchvision", "torch"),
}
WORKER_NEEDS = ("numpy",)
BARE = Environment(name="", label="", framework="")  # the inspection of the model finds the framework


class Extras(NamedTuple):
    """What both arms get, beside what OLD and NEW name."""

    requirements: tuple[str, ...] = ()  # --with
    python: str | None = None  # --python: a path or a version
    allow_vcs: bool = False


def load(text: str, model: Model, extras: Extras) -> Environment:
    """Return the environment of one arm. Raises SteleError, quoting it, if it has none of the known forms."""
    if text in environments.names() and not extras.requirements:
        return environments.load(text)
    interpreter = interpreter_of(text, model.folder)
    if interpreter is not None:
        refuse_extras(text, extras)
        return pins.with_interpreter(dataclasses.replace(BARE, name=text, label=text), interpreter)
    locked = locked_of(text, extras)
    if locked is not None:
        return required(text, locked.requirements, model, extras, python=locked.python)
    return required(text, tuple(split(text)), model, extras)


def interpreter_of(text: str, folder: Path) -> Path | None:
    """Return the interpreter that the text names, as a path or as the folder of a virtual environment."""
    path = folder / Path(text).expanduser()
    if path.is_dir():
        python = packages.venv_interpreter(path)
        if python is None:
            raise SteleError(f"{text} is a folder, but not a virtual environment: it has no bin/python.")
        return python.absolute()
    return path.absolute() if "/" in text and path.is_file() and path.name.startswith("python") else None


def refuse_extras(text: str, extras: Extras) -> None:
    if extras.requirements:
        raise SteleError(
            f"--with adds packages to environments that Stele builds, but {text} exists already."
        )


def locked_of(text: str, extras: Extras) -> Locked | None:
    """Return the content of a lock file; None if the text does not name one."""
    file, _ = revisions.split(text)
    return revisions.read(text, allow_vcs=extras.allow_vcs) if lockfiles.is_lockfile(str(file)) else None


def split(text: str) -> list[str]:
    """Return the requirements in ``torch==2.4 "numpy<2"``: separated by spaces or commas between names."""
    parts = text.split()
    for part in parts:
        try:
            Requirement(part)
        except InvalidRequirement as error:
            raise SteleError(
                f"{text!r} is not a requirement such as transformers==5.22.0, nor a lock file, an interpreter "
                f"or an environment of `stele env list`: {error}"
            ) from None
    return parts


def required(
    text: str, requirements: tuple[str, ...], model: Model, extras: Extras, *, python: str | None = None
) -> Environment:
    """Return the environment with these requirements, those of both arms, and what the model's library needs."""
    base, wanted = base_of(requirements), [*requirements, *extras.requirements]
    pinned = {name_of(one) for one in wanted}
    needs = (*base.requirements, *NEEDS.get(model.library or "", ()), *WORKER_NEEDS)
    wanted += [need for need in needs if not pinned & {name_of(need), alias(name_of(need))}]
    version = extras.python if extras.python and not Path(extras.python).exists() else None
    built = pins.with_requirements(base, text, text, list(dict.fromkeys(wanted)), version or python)
    return dataclasses.replace(built, label=text, framework="", imports=(), as_shipped=None)


def base_of(requirements: tuple[str, ...]) -> Environment:
    """Return the described environment that a single requirement such as keras==3.14.1 stands for."""
    if len(requirements) == 1:
        candidates = [one for one in environments.described().values() if one.tuned and one.command is None]
        named = {canonicalize_name(Requirement(requirements[0]).name): Requirement(requirements[0])}
        found = pins.nearest_environment(named, candidates)
        if found is not None:
            return found
    return BARE


def alias(name: str) -> str:
    """Return the other name of a framework: tensorflow-cpu of tensorflow, and the other way round."""
    names = {**pins.ALIASES, **{second: first for first, second in pins.ALIASES.items()}}
    return names.get(name, name)


def name_of(requirement: str) -> str:
    return canonicalize_name(Requirement(requirement).name)
