"""What a user types in a row's place: requirements, or the path of an interpreter.

jax==0.9.2                     the row jax with that release, and what it then needs
"jax==0.9.2 jaxlib==0.9.2"     several pins at once
"jax==0.4.30 python==3.10"     built with another interpreter than this one
keras-jax@keras==3.14.1        of the rows that use a package, that one
/opt/venv/bin/python           an interpreter that has one row's framework
torch@/opt/venv/bin/python     the same, where it has several
"""

import dataclasses
import hashlib
import json
import subprocess
import sys
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

from stele.environments import builds
from stele.environments.description import MODULE, Environment
from stele.environments.libraries import clean
from stele.errors import SteleError

ALIASES = {"tensorflow": "tensorflow-cpu"}  # the same framework under another name
PREFERRED = ("keras-tensorflow", "keras2-tensorflow")  # Keras' own default, where only Keras is named

Pins = dict[NormalizedName, Requirement]


def environment(text: str, rows: list[Environment]) -> Environment | None:
    """What ``text`` pins; None if it reads like neither. Raises SteleError if no row is written for it."""
    row, at, rest = text.partition("@")
    named = [known for known in rows if at and known.name == row]
    what = rest if named else text
    # unless it is named, a row that is shown as shipped, or whose worker is no Python, is not meant
    meant = named or [known for known in rows if known.tuned and known.command is None]
    if "/" in what:
        return interpreter(text, Path(what), meant)
    if not any(sign in what for sign in "=<>~ "):
        return None
    return requirements(text, what, meant)


def requirements(text: str, what: str, rows: list[Environment]) -> Environment:
    """The row that uses these packages, with them pinned."""
    try:
        typed = [Requirement(part) for part in what.split()]
    except InvalidRequirement as error:
        raise SteleError(f"{text!r} is no requirement such as jax==0.9.2: {error}") from None
    pins = {canonicalize_name(requirement.name): requirement for requirement in typed}
    asked = pins.pop(canonicalize_name("python"), None)
    row = nearest(pins, rows)
    if row is None:
        raise SteleError(f"No row is written for {what!r}. Rows: {', '.join(row.name for row in rows)}.")
    gone = {*pins, *(ALIASES[name] for name in pins if name in ALIASES)}
    kept = {known: why for known, why in row.requirements.items() if package(known) not in gone}
    return pinned(row, text, what, [*map(str, pins.values()), *kept], str(asked.specifier) if asked else None)


def pinned(row: Environment, text: str, what: str, wanted: list[str], python: str | None) -> Environment:
    """The row with other requirements; its lock lies in the cache, under the hash of what was asked for."""
    python = python or row.python or f"=={sys.version_info.major}.{sys.version_info.minor}.*"
    key = hashlib.sha256(json.dumps([sorted(wanted), python]).encode()).hexdigest()[:16]
    return dataclasses.replace(
        row,
        name=text,
        label=f"{row.label}, {what}",
        requirements=dict.fromkeys(wanted, "asked for"),
        python=python,
        lock=builds.room() / "locks" / f"{key}.lock",
    )


def nearest(pins: Pins, rows: list[Environment]) -> Environment | None:
    """The row that has most of the packages and fewest others, of this major series where there is one."""

    def distance(row: Environment) -> tuple[int, bool, int, bool]:
        return -len(shared(row, pins)), foreign(row, pins), len(row.requirements), row.name not in PREFERRED

    order = sorted(rows, key=distance)
    return next((row for row in order if shared(row, pins) and (admits(row, pins) or len(rows) == 1)), None)


def shared(row: Environment, pins: Pins) -> list[tuple[Requirement, Requirement]]:
    """What the row requires of a package beside what is asked of it."""
    own = {package(text): Requirement(text) for text in row.requirements}
    pairs = [
        (own.get(name) or own.get(canonicalize_name(ALIASES.get(name, name))), pin)
        for name, pin in pins.items()
    ]
    return [(requirement, pin) for requirement, pin in pairs if requirement is not None]


def admits(row: Environment, pins: Pins) -> bool:
    """Whether the releases lie in the row's ranges, which say what its recipes are written for."""
    for requirement, pin in shared(row, pins):
        wanted = exact(pin)
        if wanted and not exact(requirement) and not requirement.specifier.contains(wanted, prereleases=True):
            return False
    return True


def foreign(row: Environment, pins: Pins) -> bool:
    """Whether a release is of another major series than the one that the row pins."""
    pairs = [(exact(requirement), exact(pin)) for requirement, pin in shared(row, pins)]
    return any(known and wanted and known.major != wanted.major for known, wanted in pairs)


def exact(requirement: Requirement) -> Version | None:
    found = [part.version for part in requirement.specifier if part.operator == "=="]
    return Version(found[0].removesuffix(".*")) if found else None


def package(requirement: str) -> NormalizedName:
    return canonicalize_name(Requirement(requirement).name)


FINDER = """
import importlib.util, json, sys
print(json.dumps([all(importlib.util.find_spec(name) for name in names) for names in json.loads(sys.argv[1])]))
"""


def interpreter(text: str, path: Path, rows: list[Environment]) -> Environment:
    """The row whose framework this interpreter has."""
    asked = [str(path), "-c", FINDER, json.dumps([row.imports for row in rows])]
    try:
        done = subprocess.run(asked, env=clean({}), capture_output=True, text=True, check=True, timeout=60)
        answers = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise SteleError(f"{path} is no Python interpreter that works: {error}") from None
    found = [row for row, has in zip(rows, answers, strict=True) if row.imports and has]
    if len(found) != 1:
        what = (
            "or ".join(f"{row.name}@{path} " for row in found).strip()
            or "no framework that a row is written for"
        )
        raise SteleError(f"{path} has {what}" + (": say which of them is meant." if found else "."))
    (row,) = found
    return dataclasses.replace(inside(row, path), name=text, label=f"{row.label}, {path}")


def inside(row: Environment, interpreter: Path) -> Environment:
    """The row in an interpreter that has its framework already."""
    return dataclasses.replace(row, python=None, lock=None, command=(str(interpreter), *MODULE))
