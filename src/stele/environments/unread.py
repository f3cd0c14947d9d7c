"""The net below the readers: changed lines that name a framework, in files and forms that no reader understands.

    *.toml, Pipfile              every table, also those of other programs, such as pixi
    setup.py                     what is quoted
    pixi.lock, conda-lock.yml    the URLs of packages
    *.yml with dependencies      every line
    other text                   a line that is a requirement or a wheel

Prose is no requirement, so it is left out.
"""

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import NamedTuple

from packaging.utils import canonicalize_name

from stele.environments import lockfiles
from stele.environments.lockfiles.formats import CONDA_KEY
from stele.environments.lockfiles.requirements import without_hashes
from stele.environments.lockfiles.source import Source, parse_requirement, shorten, with_name
from stele.errors import SteleError

QUOTED = r"""["']\s*{name}\s*(\[[^\]]*\]\s*)?(?=$|["'=<>~!@;%{{(])"""


class Found(NamedTuple):
    """A changed line, or a part of a file, that names a framework."""

    package: str
    message: str


def find(
    name: str, old: str | None, new: str | None, known: re.Pattern[str], revision: str
) -> Iterator[Found]:
    """Yield what changed in a file, once for each package; None is the text of a file that is not there."""
    if old == new:
        return
    path = PurePath(name.lower())
    if is_toml(path):
        yield from in_tables(name, old or "", new or "", known, revision)
    elif path.suffix in (".yml", ".yaml") and not lockfiles.UNREAD_LOCK.fullmatch(name.lower()):
        if any(CONDA_KEY.search(text or "") for text in (old, new)):
            whole = any(is_broken(name, "conda", text or "") for text in (old, new))
            yield from in_lines(name, old or "", new or "", known, revision, whole=whole)
    else:
        yield from in_lines(name, old or "", new or "", known, revision)


def is_toml(path: PurePath) -> bool:
    return path.suffix == ".toml" or path.name == "pipfile"


def is_broken(name: str, kind: str, text: str) -> bool:
    """Return whether a file cannot be parsed."""
    try:
        lockfiles.load(Source(name), kind, text)
    except SteleError:
        return bool(text.strip())
    return False


def in_tables(name: str, old: str, new: str, known: re.Pattern[str], revision: str) -> Iterator[Found]:
    """Yield the packages of which any table says something else; of a broken file, every line that names one."""
    try:
        before, after = (
            lockfiles.mentions(name, text, known, kind="pyproject") if text else {} for text in (old, new)
        )
    except SteleError:
        yield from in_lines(name, old, new, known, revision, whole=True)
        return
    for package in sorted({*before, *after}):
        if before.get(package) != after.get(package):
            yield Found(
                package, f"{name} names {package} in another way, and Stele does not read such a file."
            )


def in_lines(
    name: str, old: str, new: str, known: re.Pattern[str], revision: str, *, whole: bool = False
) -> Iterator[Found]:
    """Yield the changed lines that name a package; with ``whole``, also the others."""
    named, seen = lockfiles.spelled(known), set[str]()
    differing = {*old.splitlines()} ^ {*new.splitlines()}
    if not whole and not any(map(named.search, differing)):
        return
    for text, other, place in ((new, old, name), (old, new, f"{name}@{revision}")):
        kept = set() if whole else {*map(plain, other.splitlines())}
        for number, line in enumerate(text.splitlines(), 1):
            found = () if plain(line) in kept else spellings(name, plain(line), known, named)
            for package in (lockfiles.known_name(one, known) or canonicalize_name(one) for one in found):
                if package not in seen:
                    seen.add(package)
                    what = "cannot be read" if whole else "changed"
                    message = f"{place}, line {number}: {shorten(line.strip())} {what}"
                    yield Found(package, f"{message}, and Stele does not know what it installs.")


def plain(line: str) -> str:
    """Return a line without its comment and with single spaces."""
    return " ".join(re.sub(r"(^|\s)#.*", "", line).split())


def spellings(name: str, line: str, known: re.Pattern[str], named: re.Pattern[str]) -> Iterator[str]:
    """Yield the packages that a line names, if a line of such a file can install them."""
    path = PurePath(name.lower())
    found = [match["name"] for match in named.finditer(line)]
    if not found:
        return
    if path.suffix == ".py":
        yield from (one for one in found if re.search(QUOTED.format(name=re.escape(one)), line))
    elif lockfiles.UNREAD_LOCK.fullmatch(name.lower()) and path.suffix != ".toml":
        yield from found if "://" in line else ()
    elif path.suffix in (".yml", ".yaml"):
        yield from () if re.match(r"(name|prefix):", line) else found
    elif is_toml(path) or line.endswith(".whl") or is_requirement(line, known):
        yield from found


def is_requirement(line: str, known: re.Pattern[str]) -> bool:
    """Return whether a line is a requirement of a known package with a version or a URL."""
    try:
        requirement = parse_requirement(
            with_name(without_hashes(re.sub(r"^-e\s+", "", line.removesuffix("\\"))))
        )
    except (ValueError, RecursionError):
        return False
    is_known = lockfiles.known_name(requirement.name, known) is not None
    return is_known and bool(requirement.specifier or requirement.url)
