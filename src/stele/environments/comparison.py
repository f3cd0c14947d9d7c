"""Which packages of frameworks changed between a revision and the working tree, in every file that names packages.

A file is compared together with the files that it includes. Of a project and its lock file, the lock file counts: it
says what is installed. Nothing is executed.
"""

import contextlib
import functools
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.specifiers import Specifier, SpecifierSet
from packaging.utils import canonicalize_name, canonicalize_version

from stele.environments import lockfiles, submodules, trees, unread
from stele.environments.lockfiles import Locked
from stele.environments.lockfiles.requirements import INCLUDE
from stele.environments.lockfiles.source import PYPI
from stele.environments.trees import Tree, trees_of
from stele.errors import SteleError
from stele.text import without_passwords

# what the names of builds of one package end with
BUILD = re.compile(r"(-(cpu|gpu|intel|macos|nightly|cu\d+\w*|rocm\d*|mkl|directml|openvino|training))+$")
ELSEWHERE = re.compile(r"\w+:|/|~|.*\$")  # a URL, or a path that does not begin in the folder of its file
COMMIT = re.compile(r"(?<![0-9a-f])[0-9a-f]{40}(?![0-9a-f])")
SHORTEST = 7  # letters of a commit
SIMILAR = 0.5  # share of the packages of a renamed file that both of its names have


class Change(NamedTuple):
    """A package that a file requires in one way in the revision (old) and in another way in the working tree (new).

    One of them is empty if the file does not name the package there; of a framework, that is Ungated. ``package`` is
    its name in the working tree. In the revision, it may be that of another build, as tensorflow-cpu is.
    """

    package: str
    old: str  # one requirement
    new: str
    file: str  # with the changed line
    required: bool  # False if the file only limits its versions
    how: str = ""  # of equal requirements: what differs


class Ungated(NamedTuple):
    """A change that cannot be gated. If it ``blocks``, no gate says anything about what is now installed.

    If it is ``added``, the package has no counterpart in the revision: it is measured only with the whole file.
    """

    package: str
    message: str
    blocks: bool
    added: bool = False


@dataclass
class Compared:
    """A file that names packages, under its name in each tree, and what changed in it."""

    old_name: str | None
    new_name: str | None
    old: Locked | None = None
    new: Locked | None = None
    failure: str | None = None  # why it cannot be read
    changes: list[Change] = field(default_factory=list)  # of frameworks
    others: list[Change] = field(default_factory=list)  # of other packages
    ungated: list[Ungated] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # why it was not compared
    names_framework: bool = False
    is_environment: bool = True  # whether a model may be run with what it names

    @property
    def name(self) -> str:
        return self.new_name or self.old_name or ""

    def named_packages(self) -> set[str]:
        """Return the packages with a change, or with one that no gate measures."""
        changed = {change.package for change in (*self.changes, *self.others)}
        return changed | {each.package for each in self.ungated}

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
        titles: dict[str, str] = {}
        compared = [file for file in self.files if file.changes or file.ungated or not file.notes]
        for file in sorted(compared, key=lambda file: not (file.changes or file.ungated)):
            renamed = file.old_name and file.new_name and file.old_name != file.new_name
            titles.setdefault(file.name, f"{file.name} (was {file.old_name})" if renamed else file.name)
            for locked in (file.new, file.old):
                for included in locked.included if locked else ():
                    titles.setdefault(included, f"{included} (included by {file.name})")
        return list(titles.values())

    def paths(self) -> list[Path]:
        """Return the paths of the files, and of all that they include."""
        included = {
            name for file in self.files for locked in (file.new, file.old) if locked for name in locked.included
        }
        names = {*self.new.texts, *self.old.texts, *included, *(file.name for file in self.files)}
        return [self.new.root / name for name in sorted(names)]

    def read(self, file: Compared, *, new: bool, allow_vcs: bool, extras: Iterable[str]) -> Locked:
        """Return the packages of a file to install them, without those in local folders."""
        tree, name = (self.new, file.new_name) if new else (self.old, file.old_name)
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
    frameworks: re.Pattern[str],
    extras: Iterable[str] = (),
    *,
    python: str | None = None,
    allow_vcs: bool = False,
) -> Comparison:
    """Compare all files of a repository that name packages, with these extras and for a Python such as 3.11.

    ``frameworks`` matches the names of frameworks. Raises SteleError for an unknown revision, and if neither tree
    has such a file.
    """
    old, new = trees_of(folder, revision, frameworks)
    if not (old.texts or new.texts):
        raise SteleError(
            f"There is nothing to compare: neither {revision!r} nor the working tree has a file in Git that names "
            "packages, such as requirements.txt, pyproject.toml or uv.lock. Name OLD and NEW: stele gate OLD NEW"
        )
    pairs = [parse(file, old, new, revision, tuple(extras)) for file in paired(old, new)]
    files = [file for file in pairs if not is_included(file, pairs)]
    naming = [names_framework(file, old, new, frameworks) for file in files]
    for file, names in zip(files, naming, strict=True):
        file.names_framework, file.is_environment = names, names or not any(naming)
        find_failure(file, old, new)
        find_changes(file, frameworks, python=python, allow_vcs=allow_vcs)
        try:
            find_unselected(file, old, new, frameworks)
        except SteleError as error:
            file.ungated.append(Ungated("", str(error), blocks=True))
    not_read = find_unread(files, old, new, frameworks, revision)
    for file in files:
        let_lock_count(file, files, python)
    leave_out_limits(files)
    files += [
        *not_read,
        *find_links(old, new, lonely=not any(naming)),
        *find_submodules(old.root, revision, frameworks),
    ]
    find_settings(files, old, new)
    for name in sorted(old.large | new.large):
        note = f"not compared: {name} is larger than {trees.LARGEST} bytes"
        files.append(Compared(name, name, notes=[note]))
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
    return set(map(name_of, lines))


@functools.cache
def name_of(line: str) -> str:
    """Return the normalized name of the package of a requirement."""
    return canonicalize_name(Requirement(line).name)


def parse(file: Compared, old: Tree, new: Tree, revision: str, extras: tuple[str, ...]) -> Compared:
    """Read the file in each tree that has it."""
    try:
        if file.new_name is not None:
            text = new.texts[file.new_name]
            file.new = lockfiles.outline(file.new_name, text, new.sibling(file.new_name), extras=extras)
        if file.old_name is not None:
            with at(revision):
                text = old.texts[file.old_name]
                file.old = lockfiles.outline(file.old_name, text, old.sibling(file.old_name), extras=extras)
    except SteleError as error:
        file.failure = str(error)
    return file


def is_included(file: Compared, files: Iterable[Compared]) -> bool:
    """Return whether another file includes it, so that it is compared as a part of that file.

    Files with requirements are also used as constraints of others, and then count themselves.
    """
    options = ("-r",) if "requirements" in file.name.lower() else ("-r", "-c")
    for other in files:
        if other is not file and other.old and other.new:
            before, after = (
                name is None or locked.included.get(name) in options
                for name, locked in ((file.old_name, other.old), (file.new_name, other.new))
            )
            if before and after:
                return True
    return False


def names_framework(file: Compared, old: Tree, new: Tree, frameworks: re.Pattern[str]) -> bool:
    """Return whether a file, or one that it includes, names a framework."""
    if file.failure is None:
        return any(map(frameworks.fullmatch, packages_of(file.old) | packages_of(file.new)))
    sides = (with_included(old, file.old_name), with_included(new, file.new_name))
    return any(map(lockfiles.spelled(frameworks).search, (text for side in sides for text in side.values())))


def find_failure(file: Compared, old: Tree, new: Tree) -> None:
    """Note that a file cannot be read. It blocks if the file changed, or if what it includes may have changed."""
    if file.failure is None:
        return
    before, after = (with_included(tree, name) for tree, name in ((old, file.old_name), (new, file.new_name)))
    changed = [*before.values()] != [*after.values()]
    if changed or (file.is_environment and any(map(is_elsewhere, before))):
        more = "" if changed else " The line is the same, but the content may be another."
        file.ungated.append(Ungated("", file.failure + more, blocks=True))
    else:
        file.notes.append(f"not compared: {file.failure}")


def is_elsewhere(path: str) -> bool:
    """Return whether an included file is not in the repository, and no commit in its URL says what it contains."""
    outside = path.startswith("../") or ELSEWHERE.match(path) is not None
    return outside and not COMMIT.search(path)


def with_included(tree: Tree, name: str | None) -> dict[str, str]:
    """Return the text of a file, which may not be valid, and of the files that it includes; "" of what is not there."""
    texts: dict[str, str] = {}
    names = [] if name is None else [name]
    while names:
        name = names.pop()
        texts[name] = ""
        with contextlib.suppress(SteleError):
            texts[name] = tree.texts.get(name) or tree.load(name)
        for line in texts[name].splitlines():
            include = INCLUDE.fullmatch(re.sub(r"(^-\s+(?=-)|\s#.*)", "", line.strip()))
            path = included_path(name, include[3]) if include else name
            names += [path] if path not in {*texts, *names} else []
    return texts


def included_path(name: str, reference: str) -> str:
    """Return the path from the root of the repository, or what was written if it does not lead into the repository."""
    if ELSEWHERE.match(reference):
        return reference
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), reference))


def find_changes(file: Compared, frameworks: re.Pattern[str], *, python: str | None, allow_vcs: bool) -> None:
    """Find the frameworks whose lines differ, and why one of them cannot be gated."""
    if file.failure:
        return
    packages = filter(frameworks.fullmatch, sorted(packages_of(file.old) | packages_of(file.new)))
    sides = {name: (Lines(file.old, name, python), Lines(file.new, name, python)) for name in packages}
    for package, (old, new) in with_other_names(sides).items():
        how = other_files(file, package)
        if old.requirement and new.requirement and (meaning(old.requirement) != meaning(new.requirement) or how):
            url = next((side for side in (new, old) if " @ " in (side.requirement or "")), None)
            if url is None or allow_vcs:
                place = new.file or file.name
                where = file.name if place == file.name else f"{file.name} ({place})"
                change = Change(package, old.requirement, new.requirement, where, old.required and new.required, how)
                file.changes.append(change)
            else:
                message = f"{url.place(file.name)} is installed from a URL. Pass --allow-vcs to gate this change."
                file.ungated.append(Ungated(package, message, blocks=True))
        elif bool(old.requirement) != bool(new.requirement):
            side, where = (new, "the revision") if new.requirement else (old, "the working tree")
            message = f"{side.place(file.name)} has nothing to be compared with: {where} does not name {package}."
            file.ungated.append(Ungated(package, message, blocks=False, added=bool(new.requirement)))
        elif {*old.elsewhere.values()} != {*new.elsewhere.values()}:
            side, other = (new, old) if {*new.elsewhere.values()} - {*old.elsewhere.values()} else (old, new)
            known_there = {*other.elsewhere.values()}
            line = next(line for line, value in side.elsewhere.items() if value not in known_there)
            place = side.place(file.name, line)
            message = f"{place} changed, and its marker does not hold here. Try another --python."
            file.ungated.append(Ungated(package, message, blocks=False))
    find_others(file, frameworks, python)
    find_local(file, frameworks)


def find_others(file: Compared, frameworks: re.Pattern[str], python: str | None) -> None:
    """Find the other packages whose lines differ, also those that only one side names.

    What differs of their files counts if it does not differ for a framework, which stands for all.
    """
    common = {change.how for change in file.changes}
    for package in sorted(packages_of(file.old) | packages_of(file.new)):
        if frameworks.fullmatch(package):
            continue
        old, new = Lines(file.old, package, python), Lines(file.new, package, python)
        how = other_files(file, package) if old.requirement and new.requirement else ""
        before, after = (meaning(side.requirement) if side.requirement else None for side in (old, new))
        if before != after or (how and how not in common):
            place = new.file or old.file or file.name
            where = file.name if place == file.name else f"{file.name} ({place})"
            required = old.required or new.required
            file.others.append(Change(package, old.requirement or "", new.requirement or "", where, required, how))


def find_local(file: Compared, frameworks: re.Pattern[str]) -> None:
    """Find the frameworks in local folders and files. They are left out of both arms, so no gate measures them."""
    before, after = (locked.local if locked else {} for locked in (file.old, file.new))
    lines: dict[str, str] = {}
    for line in (*after, *before):
        match = lockfiles.spelled(frameworks).search(line)
        if match is not None and (file.changes or (line in before) != (line in after)):
            lines.setdefault(lockfiles.known_name(match["name"], frameworks) or match["name"], line)
    for package, line in lines.items():
        place = f"{after.get(line) or before[line]}: {without_passwords(line)!r}"
        message = f"{place} is a local package, which is not measured. Name OLD and NEW."
        file.ungated.append(Ungated(package, message, blocks=True))


def with_other_names(sides: Mapping[str, tuple["Lines", "Lines"]]) -> dict[str, tuple["Lines", "Lines"]]:
    """Return the packages with OLD and NEW; of a framework that changed its name, they are the two names."""
    renamed = dict(sides)
    removed = [name for name, (old, new) in sides.items() if old.requirement and not new.requirement]
    for name, (old, new) in sides.items():
        other = next((each for each in removed if same_framework(each) == same_framework(name)), None)
        if new.requirement and not old.requirement and other is not None:
            renamed[name] = (sides[other][0], new)
            removed.remove(other)
            del renamed[other]
    return renamed


def same_framework(name: str) -> str:
    """Return one name for all builds of a package, such as tensorflow for tensorflow-cpu."""
    name = re.sub(r"(cuda|rocm)\d+", r"\1", BUILD.sub("", name))
    return "tensorflow" if name == "tf" else name


def other_files(file: Compared, package: str) -> str:
    """Return what differs of the files of a package, as far as both sides say it: the index or the hashes; or ""."""
    if file.old is None or file.new is None:
        return ""
    registries = [locked.registries.get(package) for locked in (file.old, file.new)]
    if all(registries) or (any(registries) and file.old.kind == file.new.kind):
        from_another = registries[0] != registries[1]
    else:
        from_another = file.old.options != file.new.options
    hashes = [locked.hashes.get(package) for locked in (file.old, file.new)]
    if from_another:
        return "from another index"
    return "with other hashes" if all(hashes) and hashes[0] != hashes[1] else ""


class Lines:
    """The lines of a file that name a package, and what they require for a Python."""

    def __init__(self, locked: Locked | None, package: str, python: str | None) -> None:
        self.places = locked.places if locked else {}
        lines = (*locked.requirements, *locked.constraints) if locked else ()
        named = [line for line in lines if name_of(line) == package]
        version = python or minor_release(locked.python if locked else None)
        here = [line for line in named if holds(Requirement(line), version)]
        other = [line for line in named if line not in here]
        # of the lines that hold here, the one with a pin decides
        self.line = next((line for line in here if lockfiles.pinned_version(line)), [*here, *other, ""][0])
        self.required = any(line in here for line in (locked.requirements if locked else ()))
        self.requirement = combined(package, [Requirement(line) for line in here]) if here else None
        self.elsewhere = {line: meaning(line) for line in other}

    @property
    def file(self) -> str:
        """The file that has the line which decides."""
        return self.places.get(self.line, "").rpartition(", line ")[0]

    def place(self, name: str, line: str | None = None) -> str:
        """Return the file, the number and the text of a line; by default of the one that decides."""
        line = line or self.line
        return f"{self.places.get(line, name)}: {without_passwords(line)!r}"


def requirements_of(locked: Locked, names: Iterable[str], python: str | None) -> tuple[str, ...]:
    """Return what a file requires of the packages whose names match a pattern, one requirement for each."""
    pattern = re.compile("|".join(names))
    packages = filter(pattern.fullmatch, sorted(packages_of(locked)))
    return tuple(line for name in packages if (line := Lines(locked, name, python).requirement))


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
    extras = sorted({extra for each in requirements for extra in each.extras})
    name = package + (f"[{','.join(extras)}]" if extras else "")
    url = next((each.url for each in requirements if each.url), None)
    if url:
        return f"{name} @ {url}"
    specifier = SpecifierSet()
    for each in requirements:
        specifier &= each.specifier
    pins = {pin for each in requirements if (pin := lockfiles.pinned_version(str(each)))}
    if len(set(map(canonicalize_version, pins))) == 1 and "===" not in str(specifier):
        return f"{name}=={max(pins)}"
    return f"{name}{specifier}"


def meaning(line: str) -> tuple[object, ...]:
    """Return what two texts of equal requirements share: ==1.0 and ==1.0.0 are equal, ~=1.0 and ~=1.0.0 are not."""
    requirement = Requirement(line)
    parts = frozenset((part.operator, normalized(part)) for part in requirement.specifier)
    return canonicalize_name(requirement.name), frozenset(requirement.extras), requirement.url, parts


def normalized(part: Specifier) -> str:
    """Return the version of a part of a specifier as packaging compares it."""
    if part.operator == "===":
        return part.version
    return canonicalize_version(part.version, strip_trailing_zero=part.operator != "~=")


def find_unselected(file: Compared, old: Tree, new: Tree, frameworks: re.Pattern[str]) -> None:
    """Find the frameworks that changed only in groups and extras which are not installed."""
    if file.failure or file.old_name is None or file.new_name is None:
        return
    texts = old.texts[file.old_name], new.texts[file.new_name]
    if texts[0] == texts[1]:
        return
    before = lockfiles.mentions(file.old_name, texts[0], frameworks)
    after = lockfiles.mentions(file.new_name, texts[1], frameworks)
    reported = {change.package for change in file.changes} | {each.package for each in file.ungated}
    for package in sorted({*before, *after} - reported):
        if before.get(package) != after.get(package):
            extras = ", ".join(lockfiles.extras_of(file.new_name, texts[1]))
            advice = f"Select one: --extra NAME, of {extras}." if extras else "Name OLD and NEW."
            message = f"{file.name}: {package} changed only in an extra or a group that is not installed. {advice}"
            file.ungated.append(Ungated(package, message, blocks=True))


def let_lock_count(file: Compared, files: Iterable[Compared], python: str | None) -> None:
    """Leave out the changes of a project that its lock file decides, if what is locked is what the project wants."""
    if not file.is_input:
        return
    locks = [other for other in files if is_lock_of(other, file)]
    for lock in sorted(locks, key=lambda lock: -lock.name.count("/")):  # the nearest first
        of_lock = lock.named_packages()
        for package in sorted(file.named_packages()):
            locked = Lines(lock.new, package, python).requirement
            if locked is None or not (" @ " in locked or lockfiles.pinned_version(locked)):
                continue
            required = Lines(file.new, package, python).requirement
            indexes = [each.new.registries.get(package, frozenset()) for each in (file, lock) if each.new]
            fits = required is None or (
                satisfies(locked, required, changed=package in of_lock)
                and (not all(indexes) or not indexes[0].isdisjoint(indexes[1]))
            )
            if fits:
                file.others = [change for change in file.others if change.package != package]
            if any(change.package == package for change in file.others):
                continue  # the file itself is what counts
            file.changes = [change for change in file.changes if change.package != package]
            file.ungated = [
                each
                for each in file.ungated
                if each.package != package or (each.blocks and (required is None or not fits))
            ]
            if not fits and not any(each.package == package for each in file.ungated):
                message = (
                    f"{file.name} requires {from_index(str(required), file, package)}, but {lock.name} has "
                    f"{from_index(of_pin(locked), lock, package)}. Lock again."
                )
                file.ungated.append(Ungated(package, message, blocks=True))


def of_pin(locked: str) -> str:
    """Return the version of a locked package, or all of it if it comes from a URL."""
    return lockfiles.pinned_version(locked) or locked


def from_index(requirement: str, file: Compared, package: str) -> str:
    """Return a requirement with the index that it comes from, if that is not PyPI."""
    indexes = {*(file.new.registries.get(package, ()) if file.new else ())} - {*PYPI}
    return without_passwords(requirement + "".join(f" from {url}" for url in sorted(indexes)))


def satisfies(locked: str, required: str, *, changed: bool) -> bool:
    """Return whether a locked package is what a project wants: an allowed version, or a commit of the same source.

    A lock file has commits, and a project may name a branch: if the lock file ``changed``, the repository decides.
    """
    pin, requirement = Requirement(locked), Requirement(required)
    if requirement.url is None or pin.url is None:
        version = lockfiles.pinned_version(locked)
        return requirement.url is pin.url and requirement.specifier.contains(version or "", prereleases=True)
    (source, commit), (other, reference) = map(source_of, (pin.url, requirement.url))
    return source == other and (changed or (len(reference) >= SHORTEST and commit.startswith(reference)))


def source_of(url: str) -> tuple[str, str]:
    """Return the URL of a repository and what is checked out, or a URL and an empty text."""
    whole = re.sub(r"://[^/@]*@", "://", url).partition("#")[0]
    if "+" not in whole.partition("://")[0]:
        return whole, whole
    source, _, reference = whole.partition("@")
    return source.rstrip("/").removesuffix(".git"), reference


def is_lock_of(lock: Compared, file: Compared) -> bool:
    """Return whether a lock file is made from a project or from a file such as requirements.in."""
    if lock.is_input or lock.new is None:
        return False
    path, source = PurePath(lock.name), PurePath(file.name)
    if source.suffix.lower() == ".in":
        return path == source.with_suffix(".txt")
    if lock.new.kind == "uv":  # that of a workspace is above its members, and lists them
        return str(source.parent) in {posixpath.normpath(path.parent / member) for member in lock.new.members}
    is_locked = lock.new.kind not in ("requirements", "conda") or path.name.lower() == "requirements.txt"
    return path.parent == source.parent and is_locked


def find_unread(
    files: Iterable[Compared], old: Tree, new: Tree, frameworks: re.Pattern[str], revision: str
) -> list[Compared]:
    """Return the files with changed lines that name a framework, of which no reader said anything."""
    kinds = ("conda", "setup.py")  # of which a reader leaves out parts
    partly = {file.name for file in files if file.failure is None and file.new and file.new.kind in kinds}
    texts = [{**tree.texts, **tree.others} for tree in (old, new)]
    files_with_changes = []
    for name in sorted({*old.others, *new.others, *partly}):
        named = {same_framework(package) for file in covering(name, files) for package in file.named_packages()}
        file = Compared(name, name)
        for package, message in unread.find(name, texts[0].get(name), texts[1].get(name), frameworks, revision):
            if same_framework(package) not in named:
                file.ungated.append(Ungated(package, message, blocks=True))
        if not file.ungated and name not in partly:
            before, after = (side.get(name) for side in texts)
            file.notes += filter(None, [unread.shown(name, before, after, frameworks, revision)])
        if file.ungated or file.notes:
            files_with_changes.append(file)
    return files_with_changes


def find_links(old: Tree, new: Tree, *, lonely: bool) -> Iterator[Compared]:
    """Yield the links that lead out of the repository. One that changed blocks, and each if no file has a framework."""
    for name in sorted({*old.links, *new.links}):
        before, after = old.links.get(name), new.links.get(name)
        message = f"{name} is a link to {after or before}, which is not a file of the repository."
        if lockfiles.is_conventional(name) and (before != after or lonely):
            yield Compared(name, name, ungated=[Ungated("", message, blocks=True)])
        elif lockfiles.is_conventional(name) or before != after:
            yield Compared(name, name, notes=[f"not compared: {message}"])


def find_submodules(root: Path, revision: str, frameworks: re.Pattern[str]) -> Iterator[Compared]:
    """Yield the submodules that changed. One whose files of packages name a framework blocks."""
    for path, message, blocks in submodules.find(root, revision, lockfiles.spelled(frameworks)):
        ungated = [Ungated("", message, blocks=True)] if blocks else []
        yield Compared(path, path, ungated=ungated, notes=[] if blocks else [f"not compared: {message}"])


def find_settings(files: Sequence[Compared], old: Tree, new: Tree) -> None:
    """Find the settings of installers that differ, where a file that no lock file decides names a framework."""
    texts = [{**tree.texts, **tree.others} for tree in (old, new)]
    for name in sorted({*texts[0], *texts[1]}):
        before, after = (side.get(name, "") for side in texts)
        setting = None if before == after else unread.setting(name, before, after)
        free = (
            file
            for file in files
            if setting is not None
            and file.new is not None
            and file.names_framework
            and file.new.kind in (*lockfiles.MANIFESTS, "requirements")
            and PurePath(file.name).is_relative_to(PurePath(name).parent)
            and (file.name == name or PurePath(name).name != "pyproject.toml")
            and not (file.is_input and any(is_lock_of(lock, file) for lock in files))
        )
        if (file := next(free, None)) is not None:
            message = f"{name}: {setting} changed, and it decides what {file.name} installs. Name OLD and NEW."
            file.ungated.append(Ungated("", message, blocks=True))


def covering(name: str, files: Iterable[Compared]) -> Iterator[Compared]:
    """Yield the files that say what a file installs: itself, those that include it, and the lock file of a Pipfile."""
    for file in files:
        included = {*(file.old.included if file.old else ()), *(file.new.included if file.new else ())}
        if name in (file.old_name, file.new_name, *included) or file.name == f"{name}.lock":
            yield file


def leave_out_limits(files: Iterable[Compared]) -> None:
    """Leave out files that only limit the versions of packages which change in a file that requires one of them."""
    requiring = [file for file in files if any(change.required for change in (*file.changes, *file.others))]
    gated = {change.package for file in requiring for change in file.changes}
    others = {change.package for file in requiring if file.is_environment for change in file.others}
    for file in files:
        if file not in requiring:
            for change in file.changes:
                if change.package in gated:
                    message = f"{file.name} does not name {change.package}, but limits its version."
                    file.ungated.append(Ungated(change.package, message, blocks=False))
            file.changes = [change for change in file.changes if change.package not in gated]
            file.others = [change for change in file.others if change.package not in others]
