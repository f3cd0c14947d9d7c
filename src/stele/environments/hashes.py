"""Lock files with the hashes of those files only that the Python of an environment can install on Linux or macOS.

An index has up to a hundred files of one release, for other Pythons and platforms. Without their hashes the lock files
of the built-in environments are much smaller. Of a user's lock file, only the hashes in it are allowed.
"""

import re
import sys
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from stele.errors import SteleError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PLATFORM = re.compile(r"any|linux_.*|manylinux.*_(x86_64|aarch64)|macosx_.*_(x86_64|arm64|universal2)")
MINORS = range(5, 20)  # of Python 3


def keep_installable(requirements: str, pylock: str, python: str) -> str:
    """Return the text of a lock file without the hashes of files that a Python in the range ``python`` cannot install.

    ``pylock`` is the text of a pylock.toml, which has the name and the hash of each file (PEP 751). A package of which
    nothing can be installed keeps all.
    """
    minors = {minor for minor in MINORS if SpecifierSet(python).contains(f"3.{minor}.99", prereleases=True)}
    packages = tomllib.loads(pylock)["packages"]
    kept = {one for package in packages for one in hashes_of(package, minors)}
    return "".join(line + "\n" for entry in entries(requirements) for line in trimmed(entry, kept))


def without(requirements: str) -> str:
    """Return the text of a lock file without hashes."""
    return "".join(f"{entry[0]}\n" for entry in entries(requirements))


def keep_allowed(requirements: str, allowed: Mapping[str, Collection[str]]) -> str:
    """Return the text of a lock file with only those hashes of a package that are allowed for it.

    Of a package that is not in ``allowed``, all are. Raises SteleError if none of a package is left: then the index has
    other files than the user's lock file.
    """
    if not allowed:
        return requirements
    lines = []
    for first, *hashes in entries(requirements):
        name = canonicalize_name(re.split(r"[\s=@\[;]", first)[0]) if first[:1].isalnum() else ""
        known = {one for one in allowed.get(name, ()) if one.startswith("sha256:")}
        chosen = [line for line in hashes if not known or line.strip().removeprefix("--hash=") in known]
        if hashes and not chosen:
            raise SteleError(
                f"{first}: the package index has other files than the lock file, none with a hash that it allows. Lock "
                "again, or name the index that the file was locked with: UV_DEFAULT_INDEX."
            )
        lines.append(" \\\n".join([first, *chosen]))
    return "".join(f"{line}\n" for line in lines)


def hashes_of(package: dict[str, Any], minors: set[int]) -> Iterator[str]:
    """Yield the hashes of the files of a package that can be installed.

    A source distribution is only built where no wheel can be installed, so not beside a wheel for all platforms.
    """
    wheels = {name_of(file): file["hashes"]["sha256"] for file in package.get("wheels", ())}
    installable = {name: value for name, value in wheels.items() if is_installable(name, minors)}
    yield from installable.values()
    if "sdist" in package and not any(name.endswith("-any.whl") for name in installable):
        yield package["sdist"]["hashes"]["sha256"]


def name_of(file: dict[str, Any]) -> str:
    return str(file.get("name") or (file.get("url") or file["path"]).rpartition("/")[2])


def is_installable(name: str, minors: set[int]) -> bool:
    """Return whether a wheel is for one of the minor releases of Python 3, on Linux or macOS."""
    try:
        tags = parse_wheel_filename(name)[3]
    except InvalidWheelFilename:
        return True
    return any(PLATFORM.fullmatch(tag.platform) and suits(tag, minors) for tag in tags)


def suits(tag: Tag, minors: set[int]) -> bool:
    match = re.fullmatch(r"(py|cp)3(\d*)", tag.interpreter)
    if match is None:
        return False
    if not match[2]:
        return True
    later_too = match[1] == "py" or tag.abi in ("abi3", "none")
    return int(match[2]) in minors or (later_too and int(match[2]) < max(minors))


def entries(requirements: str) -> Iterator[list[str]]:
    """Yield the lines of each requirement, without the signs of continuation."""
    entry: list[str] = []
    for line in requirements.splitlines():
        entry.append(line.rstrip(" \\"))
        if not line.endswith("\\"):
            yield entry
            entry = []


def trimmed(entry: list[str], kept: Collection[str]) -> list[str]:
    """Return the lines of a requirement with the hashes that are kept."""
    first, *hashes = entry
    chosen = [line for line in hashes if line.rpartition(":")[2] in kept] or hashes
    return [" \\\n".join([first, *chosen])]
