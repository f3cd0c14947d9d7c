"""The net below the readers: changed lines that name a framework, in files and forms that no reader understands.

    *.toml, Pipfile              every table, also those of other programs, such as pixi
    *.py with # /// script       the table in its comment (PEP 723)
    setup.py, noxfile.py         what is quoted
    *.ini, *.cfg                 a package with a version
    pixi.lock, conda-lock.yml    the URLs of packages
    *.yml with dependencies      every line
    other text                   a line that is a requirement, the file of a package, or a package as conda writes it

Prose is no requirement, so it is left out. Of commands and prose, ``shown`` has the lines that a user may want to see.
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

# what follows the name of a package that is required in a certain version
VERSION = re.compile(r"(\[[^\]]*\])?\s*(===?|[<>~!]=|[<>]\s*\d|@\s*\w+[+:])")
CONDA_VERSION = re.compile(r"=\d|-\d")  # also in the name of a wheel
CONDA_LINE = re.compile(r"(\S+::)?[\w.-]+\s?={1,2}\s?[\d*][^\s=]*(=\S+)?")  # of conda list --export, for instance
ARCHIVE = re.compile(r"\S+\.(whl|conda|tar\.bz2|tar\.gz|zip)(#\S*)?")
# settings of uv that decide which versions are installed, and those that the reader of a project knows
RESOLVES = re.compile(
    r"exclude-newer(-package)?|(default-|extra-)?index(-url|-strategy)?|find-links|no-index|prerelease|resolution"
    r"|fork-strategy|(required-)?environments|dependency-metadata|conflicts|torch-backend|no-sources(-package)?"
    r"|(constraint|override|exclude)-dependencies|no-(binary|build)(-package)?|no-build-isolation.*|sources"
)
READ = ("index", "sources")
QUOTED = r"""["']\s*{name}\s*(\[[^\]]*\]\s*)?(?=$|["'=<>~!@;%{{(])"""


class Found(NamedTuple):
    """A changed line, or a part of a file, that names a framework."""

    package: str
    message: str


def find(name: str, old: str | None, new: str | None, frameworks: re.Pattern[str], revision: str) -> Iterator[Found]:
    """Yield what changed in a file, once for each package; None is the text of a file that is not there."""
    if old == new:
        return
    path = PurePath(name.lower())
    if is_toml(path):
        yield from in_tables(name, old or "", new or "", frameworks, revision)
    elif path.suffix == ".py" and not lockfiles.INSTALLER.fullmatch(name.lower()):
        before, after = script_table(old or ""), script_table(new or "")
        if before != after:
            yield from in_tables(name, before, after, frameworks, revision)
    elif lockfiles.COMMANDS.fullmatch(name.lower()):
        return
    elif path.suffix in (".yml", ".yaml") and not lockfiles.UNREAD_LOCK.fullmatch(name.lower()):
        if any(CONDA_KEY.search(text or "") for text in (old, new)):
            whole = any(is_broken(name, "conda", text or "") for text in (old, new))
            yield from in_lines(name, old or "", new or "", frameworks, revision, whole=whole)
    else:
        yield from in_lines(name, old or "", new or "", frameworks, revision)


def script_table(text: str) -> str:
    """Return the table with the packages of a script (PEP 723), as TOML; empty if it has none."""
    start = lockfiles.SCRIPT.search(text)
    lines: list[str] = []
    for line in text[start.end() :].splitlines()[1:] if start else ():
        if not re.match(r"#( |$)", line) or line.rstrip() == "# ///":
            break
        lines.append(line[2:])
    return "\n".join(lines)


def shown(name: str, old: str | None, new: str | None, frameworks: re.Pattern[str], revision: str) -> str | None:
    """Return what to say about a file in which nothing was found: the first changed line that names a package in a
    version, or that packages changed in a list with a known one; None if there is nothing to say.
    """
    if old == new:
        return None
    if not lockfiles.is_searched(name):
        sides = find(name, old, None, frameworks, revision), find(name, None, new, frameworks, revision)
        if any(next(side, None) for side in sides):
            return f"not compared: {name} changed, and Stele does not read such a file"
    if lockfiles.UNREAD_LOCK.fullmatch(name.lower()):
        return None
    named, unchanged_lines = lockfiles.spelled(frameworks), {*map(plain, (old or "").splitlines())}
    for number, line in enumerate((new or "").splitlines(), 1):
        for match in () if plain(line) in unchanged_lines else named.finditer(line):
            if VERSION.match(line, match.end()) or CONDA_VERSION.match(line, match.end()):
                return f"not compared: {name}, line {number}: {shorten(line.strip())} changed"
    return None


def setting(name: str, old: str, new: str) -> str | None:
    """Return the setting of an installer that differs in a file, and that decides which versions are installed."""
    file = PurePath(name.lower()).name
    if file in ("pip.conf", "pip.ini"):
        differ = {*map(plain, old.splitlines())} != {*map(plain, new.splitlines())}
        return "a setting of pip" if differ else None
    if file not in ("pyproject.toml", "uv.toml") or any(is_broken(name, "pyproject", text) for text in (old, new)):
        return None
    before, after = (settings_in(name, text, whole=file == "uv.toml") for text in (old, new))
    return next((key for key in sorted({*before, *after}) if before.get(key) != after.get(key)), None)


def settings_in(name: str, text: str, *, whole: bool) -> dict[str, object]:
    """Return the settings of uv in a file: all of it (uv.toml), or a table of a project, without what is read there."""
    data = lockfiles.load(Source(name), "pyproject", text) if text.strip() else {}
    tool = data.get("tool")
    uv = data if whole else tool.get("uv") if isinstance(tool, dict) else None
    table = uv if isinstance(uv, dict) else {}
    of_pip = table.get("pip")
    settings = {key: value for key, value in table.items() if RESOLVES.fullmatch(key) and (whole or key not in READ)}
    return settings | {f"pip.{key}": value for key, value in (of_pip.items() if isinstance(of_pip, dict) else ())}


def is_toml(path: PurePath) -> bool:
    return path.suffix == ".toml" or path.name == "pipfile"


def is_broken(name: str, kind: str, text: str) -> bool:
    """Return whether a file cannot be parsed."""
    try:
        lockfiles.load(Source(name), kind, text)
    except SteleError:
        return bool(text.strip())
    return False


def in_tables(name: str, old: str, new: str, frameworks: re.Pattern[str], revision: str) -> Iterator[Found]:
    """Yield the packages of which any table says something else; of a broken file, every line that names one."""
    try:
        before, after = (
            lockfiles.mentions(name, text, frameworks, kind="pyproject") if text else {} for text in (old, new)
        )
    except SteleError:
        yield from in_lines(name, old, new, frameworks, revision, whole=True)
        return
    for package in sorted({*before, *after}):
        if before.get(package) != after.get(package):
            yield Found(package, f"{name} names {package} in another way, and Stele does not read such a file.")


def in_lines(
    name: str, old: str, new: str, frameworks: re.Pattern[str], revision: str, *, whole: bool = False
) -> Iterator[Found]:
    """Yield the changed lines that name a package; with ``whole``, also the others."""
    named, packages = lockfiles.spelled(frameworks), set[str]()
    differing = {*old.splitlines()} ^ {*new.splitlines()}
    if not whole and not any(map(named.search, differing)):
        return
    for text, other, place in ((new, old, name), (old, new, f"{name}@{revision}")):
        unchanged_lines = set() if whole else {*map(plain, other.splitlines())}
        for number, line in enumerate(text.splitlines(), 1):
            names = () if plain(line) in unchanged_lines else spellings(name, plain(line), frameworks, named)
            for package in (
                lockfiles.known_name(spelling, frameworks) or canonicalize_name(spelling) for spelling in names
            ):
                if package not in packages:
                    packages.add(package)
                    what = "cannot be read" if whole else "changed"
                    message = f"{place}, line {number}: {shorten(line.strip())} {what}"
                    yield Found(package, f"{message}, and Stele does not know what it installs.")


def plain(line: str) -> str:
    """Return a line without its comment and with single spaces."""
    return " ".join(re.sub(r"(^|\s)#.*", "", line).split())


def spellings(name: str, line: str, frameworks: re.Pattern[str], named: re.Pattern[str]) -> Iterator[str]:
    """Yield the packages that a line names, if a line of such a file can install them."""
    path = PurePath(name.lower())
    names = [match["name"] for match in named.finditer(line)]
    if not names:
        return
    if path.suffix in (".ini", ".cfg", ".conf"):
        yield from (match["name"] for match in named.finditer(line) if VERSION.match(line, match.end()) is not None)
    elif path.suffix == ".py":
        yield from (spelling for spelling in names if re.search(QUOTED.format(name=re.escape(spelling)), line))
    elif lockfiles.UNREAD_LOCK.fullmatch(name.lower()) and path.suffix != ".toml":
        yield from names if "://" in line else ()
    elif path.suffix in (".yml", ".yaml"):
        yield from () if re.match(r"(name|prefix):", line) else names
    elif is_toml(path) or is_package(line) or is_requirement(line, frameworks):
        yield from names


def is_package(line: str) -> bool:
    """Return whether a line is the file of a package, or a package as conda writes it."""
    return ARCHIVE.fullmatch(line) is not None or CONDA_LINE.fullmatch(line) is not None


def is_requirement(line: str, frameworks: re.Pattern[str]) -> bool:
    """Return whether a line is a requirement of a known package with a version or a URL."""
    try:
        requirement = parse_requirement(with_name(without_hashes(re.sub(r"^-e\s+", "", line.removesuffix("\\")))))
    except (ValueError, RecursionError):
        return False
    is_known = lockfiles.known_name(requirement.name, frameworks) is not None
    return is_known and bool(requirement.specifier or requirement.url)
