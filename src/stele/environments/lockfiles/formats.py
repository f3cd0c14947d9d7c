"""Formats: recognize a lock file by its name or its content, and load its TOML, JSON or YAML."""

import json
import re
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

import yaml

from stele import files
from stele.environments.lockfiles.conda import NAME as CONDA_NAME
from stele.environments.lockfiles.conda import is_conda, load_yaml
from stele.environments.lockfiles.requirements import is_requirements
from stele.environments.lockfiles.setuptools import load_cfg, load_py
from stele.environments.lockfiles.source import ADVICE, Source, Table
from stele.errors import SteleError

SUFFIXES = (".txt", ".in", ".lock", ".toml", ".yml", ".yaml")
KINDS = {
    "uv.lock": "uv",
    "poetry.lock": "poetry",
    "pdm.lock": "pdm",
    "pipfile.lock": "pipfile",
    "pyproject.toml": "pyproject",
    "pylock.toml": "pylock",
    "setup.cfg": "setup.cfg",
    "setup.py": "setup.py",
}
MANIFESTS = (
    "pyproject",
    "setup.cfg",
    "setup.py",
)  # kinds that say what a project accepts, not what is installed
# of those that are not TOML
LOADERS: dict[str, Callable[[str], Any]] = {"pipfile": json.loads, "setup.cfg": load_cfg, "setup.py": load_py}
CONTENTS = (  # a kind, and a pattern that only its files contain; the first match decides
    ("pipfile", r"\A\s*\{"),
    ("pylock", r"^\[\[packages\]\]"),
    ("pdm", r"^lock_version\s*="),
    ("poetry", r"^python-versions\s*="),
    ("uv", r"^\[\[package\]\]"),
    ("pyproject", r"^\[(project|tool|build-system|dependency-groups)\b"),
)
# what a repository calls its files of packages, beside KINDS; a path in lower case
CONVENTIONAL = re.compile(
    r"(.*/)?(pylock\..+\.toml|(.*[-_.])?(requirements|constraints)([-_.].*)?\.(txt|in)|environment.*\.ya?ml)"
    r"|(.*/)?requirements/[^/]+\.(txt|in)"
)
# names that may be those of such a file, so that the content decides
POSSIBLE = re.compile(
    r".*\.(txt|in|lock|toml|ya?ml|pip|ini|cfg|py)|(.*/)?(pipfile|pip\.conf)"
    r"|(.*/)?(.*[-_.])?(req(uirement)?s?|pins?|deps|dependencies|constraints?|packages)([-_.][^/]*)?"
)
# lock files that no reader here understands, and those of other languages
UNREAD_LOCK = re.compile(r"(.*/)?(pixi\.(lock|toml)|([^/]*[-_.])?conda-lock([-_.][^/]*)?\.ya?ml)")
FOREIGN = re.compile(
    r"(.*/)?(cargo|gopkg|chart|bun|deno|flake|mix|pubspec|yarn|gemfile|podfile|composer)\.(lock|toml)"
    r"|(.*/)?pnpm-lock\.yaml"
)
# files with commands, of which nothing is read; a changed line that names a package is shown
COMMANDS = re.compile(
    r"(.*/)?((docker|container|make|jenkins)file([-_.][^/]*)?|[^/]*\.(dockerfile|sh|bash|ps1|bat|cmd|mk|nix|ipynb))"
)
SCRIPT = re.compile(r"^# /// script\s*$", re.M)  # the first line of the packages of a script (PEP 723)
INSTALLER = re.compile(r"(.*/)?(setup|noxfile)\.py")  # programs that install the packages which they name
UNSTRUCTURED = (".toml", ".ini", ".cfg", ".py", ".conf")  # suffixes of files with more than packages
CONDA_KEY = re.compile(r"^dependencies\s*:", re.M)
ANY = re.compile(r".*")
ANNOUNCED = {  # a kind, and what its lock files with another name have, beside what CONTENTS says
    "uv": re.compile(r"^requires-python\s*=", re.M),
    "pipfile": re.compile(r'^\s*"pipfile-spec"', re.M),
}


def is_lockfile(text: str) -> bool:
    """Return whether an argument names a file that ``read`` reads, also as FILE@REVISION. Only the name counts."""
    parts = text.split("@")
    paths = [PurePath("@".join(parts[:end])) for end in range(1, len(parts) + 1)]
    return any(
        (path.suffix.lower() in SUFFIXES or path.name in KINDS) and not re.search(r"[=<>~!]=", str(path))
        for path in paths
    )


def is_conventional(path: str) -> bool:
    """Return whether a file of a repository holds packages, by its name or its folder requirements/."""
    name = path.lower()
    return PurePath(name).name in KINDS or CONVENTIONAL.fullmatch(name) is not None


def is_possible(path: str) -> bool:
    """Return whether a file of a repository with this name may name packages of Python: its content decides."""
    name = path.lower()
    possible = POSSIBLE.fullmatch(name) or COMMANDS.fullmatch(name)
    return is_conventional(path) or (possible is not None and FOREIGN.fullmatch(name) is None)


def is_lock(path: str) -> bool:
    """Return whether a file is one of packages by its name, whatever its size."""
    return is_conventional(path) or UNREAD_LOCK.fullmatch(path.lower()) is not None


def is_searched(path: str) -> bool:
    """Return whether a file, by its name, has more than packages, so that only its changed lines are searched."""
    name = path.lower()
    searched = PurePath(name).suffix in UNSTRUCTURED or COMMANDS.fullmatch(name) is not None
    return searched and not is_conventional(path)


def holds_packages(path: str, content: str, names: re.Pattern[str]) -> bool:
    """Return whether a file of a repository names packages: by its name or, if that leaves it open, by its content.

    ``names`` matches the name of a package that shows it without a version.
    """
    if is_conventional(path):
        return True
    suffix = PurePath(path).suffix.lower()
    if is_searched(path) or UNREAD_LOCK.fullmatch(path.lower()):
        return False
    if suffix in (".yml", ".yaml"):
        return CONDA_KEY.search(content) is not None and is_environment(path, content)
    if suffix == ".lock":
        kind = kind_of(path, content)
        if kind != "requirements":
            return kind not in ANNOUNCED or ANNOUNCED[kind].search(content) is not None
    return is_requirements(content, names)


def is_environment(path: str, content: str) -> bool:
    """Return whether a YAML file is an environment of conda."""
    try:
        return is_conda(PurePath(path).name, load(Source(path), "conda", content))
    except SteleError:
        return CONDA_NAME.fullmatch(PurePath(path).name) is not None


def kind_of(name: str, content: str) -> str:
    """Return the kind of a file by its name or, if the name leaves it open, by its content."""
    path = PurePath(name.lower())
    if path.name in KINDS:
        return KINDS[path.name]
    if path.suffix in (".lock", ".toml"):
        kinds = [kind for kind, pattern in CONTENTS if re.search(pattern, content, re.M)]
        return [*kinds, "pylock" if path.suffix == ".toml" else "requirements"][0]
    if path.suffix in (".yml", ".yaml"):
        return "conda"
    if path.suffix in SUFFIXES or is_requirements(content, ANY):
        return "requirements"
    raise SteleError(f"{name} is not a supported lock file. Supported: {', '.join(KINDS)}, *.txt, *.yml.")


def load(source: Source, kind: str, content: str) -> Table:
    """Return the content of a TOML, JSON or YAML file. Raises SteleError, with the place, if it is not valid."""
    try:
        load_text: Callable[[str], Any] = LOADERS.get(kind, files.parse_toml)
        data = load_yaml(source, content) if kind == "conda" else load_text(content)
    # the constructors of YAML raise more than YAMLError, for instance KeyError for "!!bool perhaps"
    except (yaml.YAMLError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        advice = "Write it as a list, or name a lock file" if kind == "setup.py" else ADVICE
        raise source.error(f"cannot be parsed: {' '.join(str(error).split())[:300]}. {advice}.") from None
    except RecursionError:
        raise source.error(f"cannot be parsed: it is nested too deeply. {ADVICE}.") from None
    return source.get({"the content": data}, "the content", dict)
