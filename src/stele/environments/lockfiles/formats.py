"""Formats: recognize a lock file by its name or its content, and load its TOML, JSON or YAML."""

import json
import re
import sys
from pathlib import PurePath

import yaml

from stele.environments.lockfiles.conda import load_yaml
from stele.environments.lockfiles.source import ADVICE, Source, Table
from stele.errors import SteleError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SUFFIXES = (".txt", ".lock", ".toml", ".yml", ".yaml")
KINDS = {
    "uv.lock": "uv",
    "poetry.lock": "poetry",
    "pdm.lock": "pdm",
    "Pipfile.lock": "pipfile",
    "pyproject.toml": "pyproject",
    "pylock.toml": "pylock",
}
CONTENTS = (  # a kind, and a pattern that only its files contain; the first match decides
    ("pipfile", r"\A\s*\{"),
    ("pylock", r"^\[\[packages\]\]"),
    ("pdm", r"^lock_version\s*="),
    ("poetry", r"^python-versions\s*="),
    ("uv", r"^\[\[package\]\]"),
    ("pyproject", r"^\[(project|tool|build-system|dependency-groups)\b"),
)
# what a repository calls its files of packages, beside KINDS
CONVENTIONAL = r"pylock\..+\.toml|(.*[-_.])?(requirements|constraints)([-_.].*)?\.txt|environment.*\.ya?ml"


def is_lockfile(text: str) -> bool:
    """Return whether an argument names a file that ``read`` reads, also as FILE@REVISION. Only the name counts."""
    parts = text.split("@")
    names = ["@".join(parts[:end]) for end in range(1, len(parts) + 1)]
    return any(PurePath(name).suffix in SUFFIXES and not re.search(r"[=<>~!]=", name) for name in names)


def is_conventional(path: str) -> bool:
    """Return whether a file of a repository holds its packages, by its name or its folder requirements/."""
    name, folder = PurePath(path).name, PurePath(path).parent.name
    in_folder = folder == "requirements" and name.endswith(".txt")
    return in_folder or name in KINDS or re.fullmatch(CONVENTIONAL, name) is not None


def kind_of(name: str, content: str) -> str:
    """Return the kind of a file by its name or, if the name leaves it open, by its content."""
    path = PurePath(name)
    if path.name in KINDS:
        return KINDS[path.name]
    if path.suffix in (".lock", ".toml"):
        kinds = [kind for kind, pattern in CONTENTS if re.search(pattern, content, re.M)]
        return [*kinds, "pylock" if path.suffix == ".toml" else "requirements"][0]
    if path.suffix not in SUFFIXES:
        raise SteleError(f"{name} is not a supported lock file. Supported: {', '.join(KINDS)}, *.txt, *.yml.")
    return "requirements" if path.suffix == ".txt" else "conda"


def load(source: Source, kind: str, content: str) -> Table:
    """Return the content of a TOML, JSON or YAML file. Raises SteleError, with the place, if it is not valid."""
    try:
        if kind == "conda":
            data = load_yaml(source, content)
        else:
            data = json.loads(content) if kind == "pipfile" else tomllib.loads(content)
    # the constructors of YAML raise more than YAMLError, for instance KeyError for "!!bool perhaps"
    except (yaml.YAMLError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise source.error(f"cannot be parsed: {' '.join(str(error).split())[:300]}. {ADVICE}.") from None
    except RecursionError:
        raise source.error(f"cannot be parsed: it is nested too deeply. {ADVICE}.") from None
    return source.get({"the content": data}, "the content", dict)
