"""Which packages of frameworks changed between a revision and the working tree, in every file that names packages.

A file is compared together with the files that it includes. Of a project and its lock file, the lock file counts: it
says what is installed. Nothing is executed.
"""

import contextlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name, canonicalize_version

from stele.environments import lockfiles
from stele.environments.lockfiles import Locked
from stele.environments.trees import Tree, trees_of
from stele.errors import SteleError
from stele.text import without_passwords

SIMILAR = 0.5  # share of the packages of a renamed file that both of its names have


class Change(NamedTuple):
    """A package that a file requires in one way in the revision (old) and in another way in the working tree (new)."""

    package: str
    old: str  # one requirement
    new: str
    file: str  # with the changed line
    required: bool  # False if the file only limits its versions


class Ungated(NamedTuple):
    """A change that cannot be gated. If it ``blocks``, no gate says anything about what is now installed."""

    package: str
    message: str
    blocks: bool


@dataclass
class Compared:
    """A file that names packages, under its name in each tree, and what changed in it."""

    old_name: str | None
    new_name: str | None
    old: Locked | None = None
    new: Locked | None = None
    failure: str | None = None  # why it cannot be read
    changes: list[Change] = field(default_factory=list)
    ungated: list[Ungated] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.new_name or self.old_name or ""

    @property
    def is_input(self) -> bool:
        """Whether a lock file is made from it."""
        kind = self.new.kind if self.new else None
        return kind in lockfiles.MANIFESTS or self.name.lower().endswith(".in")


@dataclass(frozen=True)
class Comparison:
    """The files that were compared."""

    revision: str
    old: Tree
    new: Tree
    files: tuple[Compared, ...]

    def names(self) -> list[str]:
        """Return the names of the files, the changed ones first, each followed by the files that it includes."""
        found: dict[str, str] = {}
        for one in sorted(self.files, key=lambda one: not (one.changes or one.ungated)):
            renamed = one.old_name and one.new_name and one.old_name != one.new_name
            found.setdefault(one.name, f"{one.name} (was {one.old_name})" if renamed else one.name)
            for locked in (one.new, one.old):
                for included in locked.included if locked else ():
                    found.setdefault(included, f"{included} (included by {one.name})")
        return list(found.values())

    def read(self, one: Compared, *, new: bool, allow_vcs: bool, extras: Iterable[str]) -> Locked:
        """Return the packages of a file to install them, without those in local folders."""
        tree, name = (self.new, one.new_name) if new else (self.old, one.old_name)
        assert name is not None
        text, revision = tree.texts[name], None if new else self.revision
        declared = {canonicalize_name(extra) for extra in lockfiles.extras_of(name, text)}
        with at(revision):
            return lockfiles.read(
                name,
                text,
                tree.sibling(name),
                extras=declared & {canonicalize_name(extra) for extra in extras},
                allow_vcs=allow_vcs,
                skip_local=True,
                base=self.new.root,
                revision=revision,
            )


@contextlib.contextmanager
def at(revision: str | None) -> Iterator[None]:
    """Add the revision to the message of an error."""
    try:
        yield
    except SteleError as error:
        raise SteleError(f"At revision {revision!r}: {error}" if revision else str(error)) from None


def compare(
    revision: str,
    folder: Path,
    known: re.Pattern[str],
    extras: Iterable[str] = (),
    *,
    python: str | None = None,
    allow_vcs: bool = False,
) -> Comparison:
    """Compare all files of a repository that name packages, with these extras and for a Python such as 3.11.

    ``known`` matches the names of frameworks. Raises SteleError for an unknown revision, and if neither tree has such a
    file.
    """
    old, new = trees_of(folder, revision, known)
    if not (old.texts or new.texts):
        raise SteleError(
            f"There is nothing to compare: neither {revision!r} nor the working tree has a file in Git that names "
            "packages, such as requirements.txt, pyproject.toml or uv.lock. Name OLD and NEW: stele gate OLD NEW"
        )
    pairs = [parse(one, old, new, revision, tuple(extras)) for one in paired(old, new)]
    files = [one for one in pairs if not is_included(one, pairs)]
    for one in files:
        find_failure(one, old, new, known)
        find_changes(one, known, python=python, allow_vcs=allow_vcs)
        try:
            find_unselected(one, old, new, known)
        except SteleError as error:
            one.ungated.append(Ungated("", str(error), blocks=True))
    for one in files:
        let_lock_count(one, files)
    leave_out_limits(files)
    return Comparison(revision, old, new, tuple(files))


def paired(old: Tree, new: Tree) -> list[Compared]:
    """Return the files of both trees. A deleted and a new file that name mostly the same packages are one."""
    common = sorted(old.texts.keys() & new.texts.keys())
    removed = {name: packages_in(old, name) for name in sorted(old.texts.keys() - new.texts.keys())}
    added = {name: packages_in(new, name) for name in sorted(new.texts.keys() - old.texts.keys())}
    shares = sorted(
        (-len(removed[before] & added[after]) / len(removed[before] | added[after]), before, after)
        for before in removed
        for after in added
        if removed[before] & added[after]
    )
    pairs = [Compared(name, name) for name in common]
    for share, before, after in shares:
        if share <= -SIMILAR and before in removed and after in added:
            pairs.append(Compared(before, after))
            del removed[before], added[after]
    return [*pairs, *(Compared(name, None) for name in removed), *(Compared(None, name) for name in added)]


def packages_in(tree: Tree, name: str) -> set[str]:
    """Return the packages that a file names; none if it cannot be read."""
    try:
        return packages_of(lockfiles.outline(name, tree.texts[name], tree.sibling(name)))
    except SteleError:
        return set()


def packages_of(locked: Locked | None) -> set[str]:
    lines = (*locked.requirements, *locked.constraints) if locked else ()
    return {canonicalize_name(Requirement(line).name) for line in lines}


def parse(one: Compared, old: Tree, new: Tree, revision: str, extras: tuple[str, ...]) -> Compared:
    """Read the file in each tree that has it."""
    try:
        if one.new_name is not None:
            text = new.texts[one.new_name]
            one.new = lockfiles.outline(one.new_name, text, new.sibling(one.new_name), extras=extras)
        if one.old_name is not None:
            with at(revision):
                text = old.texts[one.old_name]
                one.old = lockfiles.outline(one.old_name, text, old.sibling(one.old_name), extras=extras)
    except SteleError as error:
        one.failure = str(error)
    return one


def is_included(one: Compared, files: Iterable[Compared]) -> bool:
    """Return whether another file includes it, so that it is compared as a part of that file.

    Files with requirements are also used as constraints of others, and then count themselves.
    """
    options = ("-r",) if "requirements" in one.name.lower() else ("-r", "-c")
    for other in files:
        if other is not one and other.old and other.new:
            before, after = (
                name is None or locked.included.get(name) in options
                for name, locked in ((one.old_name, other.old), (one.new_name, other.new))
            )
            if before and after:
                return True
    return False


def find_failure(one: Compared, old: Tree, new: Tree, known: re.Pattern[str]) -> None:
    """Note that a file cannot be read, if it changed and if its text has the name of a framework."""
    texts = [tree.texts.get(name or "", "") for tree, name in ((old, one.old_name), (new, one.new_name))]
    named = re.compile(rf"(?<![\w.-])(?:{known.pattern})(?![\w-])", re.I)
    if one.failure and texts[0] != texts[1] and any(map(named.search, texts)):
        one.ungated.append(Ungated("", one.failure, blocks=True))


def find_changes(one: Compared, known: re.Pattern[str], *, python: str | None, allow_vcs: bool) -> None:
    """Find the frameworks whose lines differ, and why one of them cannot be gated."""
    if one.failure:
        return
    other_index = bool(one.old and one.new and one.old.options != one.new.options)
    for package in sorted(packages_of(one.old) | packages_of(one.new)):
        if not known.fullmatch(package):
            continue
        old, new = (Lines(locked, package, python) for locked in (one.old, one.new))
        if old.wanted and new.wanted and (meaning(old.wanted) != meaning(new.wanted) or other_index):
            url = next((side for side in (new, old) if " @ " in (side.wanted or "")), None)
            if url is None or allow_vcs:
                file = new.file or one.name
                where = one.name if file == one.name else f"{one.name} ({file})"
                change = Change(package, old.wanted, new.wanted, where, old.required and new.required)
                one.changes.append(change)
            else:
                message = (
                    f"{url.place(one.name)} is installed from a URL. Pass --allow-vcs to gate this change."
                )
                one.ungated.append(Ungated(package, message, blocks=True))
        elif bool(old.wanted) != bool(new.wanted):
            side, where = (new, "the revision") if new.wanted else (old, "the working tree")
            message = (
                f"{side.place(one.name)} has nothing to be compared with: {where} does not name {package}."
            )
            one.ungated.append(Ungated(package, message, blocks=False))
        elif {*old.elsewhere.values()} != {*new.elsewhere.values()}:
            side, other = (new, old) if {*new.elsewhere.values()} - {*old.elsewhere.values()} else (old, new)
            known_there = {*other.elsewhere.values()}
            line = next(line for line, value in side.elsewhere.items() if value not in known_there)
            place = side.place(one.name, line)
            message = f"{place} changed, and its marker does not hold here. Try another --python."
            one.ungated.append(Ungated(package, message, blocks=False))


class Lines:
    """The lines of a file that name a package, and what they require for a Python."""

    def __init__(self, locked: Locked | None, package: str, python: str | None) -> None:
        self.places = locked.places if locked else {}
        lines = (*locked.requirements, *locked.constraints) if locked else ()
        named = [line for line in lines if canonicalize_name(Requirement(line).name) == package]
        version = python or minor_release(locked.python if locked else None)
        here = [line for line in named if holds(Requirement(line), version)]
        other = [line for line in named if line not in here]
        # of the lines that hold here, the one with a pin decides
        self.line = next((line for line in here if lockfiles.pinned_version(line)), [*here, *other, ""][0])
        self.required = any(line in here for line in (locked.requirements if locked else ()))
        self.wanted = combined(package, [Requirement(line) for line in here]) if here else None
        self.elsewhere = {line: meaning(line) for line in other}

    @property
    def file(self) -> str:
        """The file that has the line which decides."""
        return self.places.get(self.line, "").rpartition(", line ")[0]

    def place(self, name: str, line: str | None = None) -> str:
        """Return the file, the number and the text of a line; by default of the one that decides."""
        line = line or self.line
        return f"{self.places.get(line, name)}: {without_passwords(line)!r}"


def minor_release(python: str | None) -> str | None:
    """Return 3.11 of ==3.11.*, None of a range."""
    match = re.fullmatch(r"==(3\.\d+)\.\*", python or "")
    return match and match[1]


def holds(requirement: Requirement, python: str | None) -> bool:
    """Return whether the marker holds here, for this Python; True if that cannot be evaluated."""
    values = {"extra": ""}
    if python:
        values |= {"python_version": python, "python_full_version": f"{python}.0"}
    try:
        return requirement.marker is None or requirement.marker.evaluate(values)
    except ValueError:
        return True


def combined(package: str, requirements: list[Requirement]) -> str:
    """Return all requirements of one package as one. A pin or a URL makes the others needless."""
    extras = sorted({extra for one in requirements for extra in one.extras})
    name = package + (f"[{','.join(extras)}]" if extras else "")
    url = next((one.url for one in requirements if one.url), None)
    if url:
        return f"{name} @ {url}"
    pins = {pin for one in requirements if (pin := lockfiles.pinned_version(str(one)))}
    if len(set(map(canonicalize_version, pins))) == 1:
        return f"{name}=={max(pins)}"
    specifier = SpecifierSet()
    for one in requirements:
        specifier &= one.specifier
    return f"{name}{specifier}"


def meaning(line: str) -> tuple[object, ...]:
    """Return what two texts of equal requirements share: 1.0 and 1.0.0 are equal."""
    requirement = Requirement(line)
    parts = frozenset((part.operator, canonicalize_version(part.version)) for part in requirement.specifier)
    return frozenset(requirement.extras), requirement.url, parts


def find_unselected(one: Compared, old: Tree, new: Tree, known: re.Pattern[str]) -> None:
    """Find the frameworks that changed only in groups and extras which are not installed."""
    if one.failure or one.old_name is None or one.new_name is None:
        return
    texts = old.texts[one.old_name], new.texts[one.new_name]
    if texts[0] == texts[1]:
        return
    before = lockfiles.mentions(one.old_name, texts[0], known)
    after = lockfiles.mentions(one.new_name, texts[1], known)
    seen = {change.package for change in one.changes} | {each.package for each in one.ungated}
    for package in sorted({*before, *after} - seen):
        if before.get(package) != after.get(package):
            extras = ", ".join(lockfiles.extras_of(one.new_name, texts[1]))
            advice = f"Select one: --extra NAME, of {extras}." if extras else "Name OLD and NEW."
            message = (
                f"{one.name}: {package} changed only in an extra or a group that is not installed. {advice}"
            )
            one.ungated.append(Ungated(package, message, blocks=True))


def let_lock_count(one: Compared, files: Iterable[Compared]) -> None:
    """Leave out the changes of a project that its lock file decides, if that allows it."""
    if not one.is_input:
        return
    locks = [other for other in files if is_lock_of(other, one)]
    for lock in sorted(locks, key=lambda lock: -lock.name.count("/")):  # the nearest first
        for package in sorted(
            {change.package for change in one.changes} | {each.package for each in one.ungated}
        ):
            pin = Lines(lock.new, package, None)
            version = lockfiles.pinned_version(pin.wanted) if pin.wanted else None
            if version is None:
                continue
            allowed = [change for change in one.changes if change.package == package]
            stale = [change for change in allowed if not allows(change.new, version)]
            one.changes = [change for change in one.changes if change.package != package]
            one.ungated = [each for each in one.ungated if each.package != package]
            if stale:
                message = f"{one.name} requires {stale[0].new}, but {lock.name} has {version}. Lock again."
                one.ungated.append(Ungated(package, message, blocks=True))


def allows(requirement: str, version: str) -> bool:
    return Requirement(requirement).specifier.contains(version, prereleases=True)


def is_lock_of(lock: Compared, one: Compared) -> bool:
    """Return whether a lock file is made from a project or from a file such as requirements.in."""
    if lock.is_input or lock.new is None:
        return False
    path, source = PurePath(lock.name), PurePath(one.name)
    if source.suffix.lower() == ".in":
        return path == source.with_suffix(".txt")
    if lock.new.kind == "uv":  # that of a workspace is above its members
        return path.parent in (source.parent, *source.parent.parents)
    is_locked = lock.new.kind not in ("requirements", "conda") or path.name.lower() == "requirements.txt"
    return path.parent == source.parent and is_locked


def leave_out_limits(files: Iterable[Compared]) -> None:
    """Leave out files that only limit the versions of packages which change in a file that requires one of them."""
    requiring = [one for one in files if any(change.required for change in one.changes)]
    gated = {change.package for one in requiring for change in one.changes}
    for one in files:
        if not any(change.required for change in one.changes):
            for change in one.changes:
                if change.package in gated:
                    message = f"{one.name} does not name {change.package}, but limits its version."
                    one.ungated.append(Ungated(change.package, message, blocks=False))
            one.changes = [change for change in one.changes if change.package not in gated]
