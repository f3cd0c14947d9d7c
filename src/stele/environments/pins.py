"""Environments that a user gives on a command line: requirements, or the path of an interpreter.

jax==0.9.2                     the environment jax with this release and the packages that it needs
"jax==0.9.2 jaxlib==0.9.2"     several pins
"jax==0.4.30 python==3.10"     the same, built with a different interpreter
keras-jax@keras==3.14.1        a named environment, if several use the package
/opt/venv/bin/python           an interpreter that has the framework of one environment
torch@/opt/venv/bin/python     an interpreter that has several frameworks
"""

import dataclasses
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from stele import files
from stele.environments import builds, installer, probe
from stele.environments.environment import MODULE, NEEDED, REQUESTED, Environment, Support
from stele.environments.lockfiles import Locked
from stele.environments.lockfiles.source import parse_requirement
from stele.errors import SteleError
from stele.text import unknown_message, without_passwords

# two package names of one framework; the builds for a GPU
ALIASES = {"tensorflow": "tensorflow-cpu"}
FOR_GPU = {"paddlepaddle-gpu": "paddlepaddle", "onnxruntime-gpu": "onnxruntime"}
PREFERRED = ("keras-tensorflow", "keras2-tensorflow")  # if only Keras is pinned: its default backend

Pins = dict[NormalizedName, Requirement]


def parse(text: str, environments: list[Environment]) -> Environment | None:
    """Return the environment that ``text`` pins, or None if it is neither a requirement nor a path.

    Raises SteleError if no environment supports it.
    """
    name, at, rest = text.partition("@")
    named = [environment for environment in environments if at and environment.name == name]
    what = rest if named else text
    # another mode, a build for a GPU, or a worker that is not Python is used only if it is named
    candidates = named or [
        environment
        for environment in environments
        if environment.base is None and environment.command is None and not environment.needs_gpu
    ]
    if "/" in what:
        return from_interpreter(text, files.absolute(what), candidates)
    if not any(sign in what for sign in "=<>~ "):
        return None
    return from_requirements(text, what, candidates)


def from_requirements(text: str, what: str, environments: list[Environment]) -> Environment:
    """Return the environment that uses these packages, with the packages pinned."""
    try:
        requirements = [parse_requirement(part) for part in what.split()]
    except ValueError as error:
        raise SteleError(f"{text!r} is not a requirement such as jax==0.9.2: {error}") from None
    pins = {canonicalize_name(requirement.name): requirement for requirement in requirements}
    python = pins.pop(canonicalize_name("python"), None)
    environment = nearest_environment(pins, environments)
    if environment is None:
        raise SteleError(unsupported_message(what, pins, environments))
    version = str(python.specifier) if python else None
    typed = [str(pin) for pin in pins.values()]
    return with_requirements(environment, text, what, typed, version, needs=tuple(environment.requirements))


def unsupported_message(what: str, pins: Pins, environments: list[Environment]) -> str:
    """Return the error message for pins that no environment supports."""
    if any(shared_requirements(environment, pins) for environment in environments):
        return f"No environment supports {what!r}. List all with: stele env list"
    first = next(iter(pins.values()), None)
    return unknown_framework(first.name if first else what, [environment.name for environment in environments])


def unknown_framework(name: str, names: Sequence[str]) -> str:
    """Return the message for a name that no environment has, with the requirement that was meant."""
    framework, dash, version = name.rpartition("-")
    if dash and framework in names and version[:1].isdigit():
        return f"Unknown framework {name!r}. Did you mean {framework}=={version}?"
    if name[:1].isdigit():
        return f"Unknown framework {name!r}. Write a version with its framework, such as torch=={name}."
    if re.search(r"\.(py|json|toml|ya?ml)$", name):
        return f"{name} is no environment. Name a requirement such as torch==2.13.0, a lock file, or an interpreter."
    first = name.partition("-")[0]
    modes = [each for each in names if each.startswith(f"{first}-")] if dash and first in names else []
    return unknown_message("framework", name, modes or names, command="" if modes else "stele env list")


def with_requirements(
    environment: Environment,
    text: str,
    what: str,
    requirements: list[str],
    python: str | None,
    locked: Locked | None = None,
    *,
    needs: Sequence[str] = (),
) -> Environment:
    """Return the environment with other requirements. Its lock file is in the cache, under their hash.

    ``needs`` are added, except those of which the requirements name the package, perhaps in another build. The
    constraints, the index and the hashes of a ``locked`` file and the variables of uv decide what is installed, so they
    are in the hash. A build for a GPU can be measured on every device.
    """
    python = python or environment.python or f"=={sys.version_info.major}.{sys.version_info.minor}.*"
    constraints, options = (locked.constraints, locked.options) if locked else ((), ())
    hashes = dict(locked.hashes) if locked else {}
    named = {package_name(requirement) for requirement in requirements}
    added = [need for need in needs if named.isdisjoint(same_framework(package_name(need)))]
    decisive: list[object] = [sorted({*requirements, *added}), python]
    if constraints or options:
        decisive += [sorted(constraints), [without_passwords(option) for option in options]]
    if hashes:
        decisive.append(sorted((name, sorted(allowed)) for name, allowed in hashes.items()))
    if variables := installer.deciding():
        decisive.append(variables)
    key = hashlib.sha256(json.dumps(decisive).encode()).hexdigest()[:16]
    return dataclasses.replace(
        environment,
        support=on_any_device(environment) if FOR_GPU.keys() & named else environment.support,
        resolution=dataclasses.replace(
            environment.resolution,
            constraints=constraints,
            options=options,
            hashes=hashes,
            messages=locked.messages if locked else (),
        ),
        name=text,
        label=f"{environment.label}, {what}",
        requirements={**dict.fromkeys(requirements, REQUESTED), **dict.fromkeys(added, NEEDED)},
        python=python,
        lock=builds.locks_folder() / f"{key}.lock",
    )


def nearest_environment(pins: Pins, environments: list[Environment]) -> Environment | None:
    """Return the environment with most of the packages and fewest others, if possible of the same major release."""

    def distance(environment: Environment) -> tuple[int, bool, int, bool]:
        return (
            -len(shared_requirements(environment, pins)),
            differs_in_major_release(environment, pins),
            len(environment.requirements),
            environment.name not in PREFERRED,
        )

    candidates = [environment for environment in environments if shared_requirements(environment, pins)]
    if len(environments) > 1:
        candidates = [environment for environment in candidates if admits_pins(environment, pins)]
    return min(candidates, key=distance, default=None)


def shared_requirements(environment: Environment, pins: Pins) -> list[tuple[Requirement, Requirement]]:
    """Return (requirement, pin) for each package that both the environment and the pins name."""
    required = {package_name(text): Requirement(text) for text in environment.requirements}
    pairs = [
        (required.get(name) or required.get(canonicalize_name(other_names().get(name, name))), pin)
        for name, pin in pins.items()
    ]
    return [(requirement, pin) for requirement, pin in pairs if requirement is not None]


def admits_pins(environment: Environment, pins: Pins) -> bool:
    """Return whether the pins are within the environment's ranges, which are the releases that its recipes support."""
    for requirement, pin in shared_requirements(environment, pins):
        version, required = exact_version(pin), requirement.specifier
        if version and not exact_version(requirement) and not required.contains(version, prereleases=True):
            return False
    return True


def differs_in_major_release(environment: Environment, pins: Pins) -> bool:
    """Return whether a pin is of a different major release than the one that the environment pins."""
    pairs = [
        (exact_version(requirement), exact_version(pin)) for requirement, pin in shared_requirements(environment, pins)
    ]
    return any(required and pinned and required.major != pinned.major for required, pinned in pairs)


def other_names() -> dict[str, str]:
    """Return the names under which the environments know packages that have two."""
    return {**ALIASES, **FOR_GPU}


def same_framework(name: str) -> set[str]:
    """Return the packages that are one framework, this one included: they would overwrite each other's files."""
    names = other_names()
    framework = names.get(name, name)
    return {framework, *(other for other in names if names[other] == framework)}


def exact_version(requirement: Requirement) -> Version | None:
    """Return the version in ``==version``, or None for a range."""
    versions = [part.version for part in requirement.specifier if part.operator == "=="]
    return Version(versions[0].removesuffix(".*")) if versions else None


def package_name(requirement: str) -> NormalizedName:
    """Return the canonical name of the package in a requirement."""
    return canonicalize_name(Requirement(requirement).name)


FINDER = """
import importlib.util, json, sys
print(json.dumps([all(importlib.util.find_spec(name) for name in names) for names in json.loads(sys.argv[1])]))
"""


def from_interpreter(text: str, path: Path, environments: list[Environment]) -> Environment:
    """Return the environment whose framework is installed in this interpreter."""
    command = [str(path), "-c", FINDER, json.dumps([environment.imports for environment in environments])]
    try:
        process = probe.run(command, timeout=60)
        process.check_returncode()
        answers = json.loads(process.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise SteleError(f"{path} is not a working Python interpreter: {error}") from None
    matches = [
        environment
        for environment, installed in zip(environments, answers, strict=True)
        if environment.imports and installed
    ]
    if not matches:
        raise SteleError(f"{path} has no framework that an environment supports. List all with: stele env list")
    if len(matches) > 1:
        choices = " or ".join(f"{environment.name}@{path}" for environment in matches)
        raise SteleError(f"{path} has several frameworks. Choose one: {choices}")
    (environment,) = matches
    replaced = with_interpreter(environment, path)
    return dataclasses.replace(replaced, name=text, label=f"{environment.label}, {path}")


def with_interpreter(environment: Environment, interpreter: Path) -> Environment:
    """Return the environment in an existing interpreter that has its framework, perhaps in a build for a GPU."""
    return dataclasses.replace(
        environment,
        python=None,
        lock=None,
        command=(str(interpreter), *MODULE),
        support=on_any_device(environment),
    )


def on_any_device(environment: Environment) -> Support:
    return dataclasses.replace(environment.support, devices=None)
