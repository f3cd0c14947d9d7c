"""Kinds: recognize a lock file by its name and, if the name leaves it open, by its content."""

import re
from pathlib import PurePath

from stele.errors import SteleError
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
