"""The files of a repository that name packages, in a revision and in the working tree. No filter of git is started."""

import codecs
import functools
import hashlib
import os
import posixpath
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from re import Pattern

from stele.environments import lockfiles, revisions
from stele.environments.revisions import LINK, TreeEntry, contents_of, entries_of, followed, sizes_of
from stele.errors import SteleError

LARGEST = 2**24  # bytes of a file
LARGEST_UNNAMED = 2**21  # bytes of a file whose content decides whether it names packages


@dataclass(frozen=True)
class Tree:
    """The text of each file that names packages, of ``others`` that perhaps do, and how any file is read.

    ``links`` are those that do not lead to a file of the repository: their names and targets. ``large`` are the names
    of files that are larger than LARGEST.
    """

    root: Path
    texts: Mapping[str, str]
    others: Mapping[str, str]
    load: Callable[[str], str]
    links: Mapping[str, str]
    large: frozenset[str]

    def sibling(self, name: str) -> Callable[[str], str]:
        """Return a function that reads a file by its path relative to the folder of ``name``."""

        def read(path: str) -> str:
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
            if target.startswith("../"):
                raise SteleError(f"{target} is outside of the repository.")
            return self.load(target)

        return read


def trees_of(folder: Path, revision: str, frameworks: Pattern[str]) -> tuple[Tree, Tree]:
    """Return the files that name packages in a revision and in the working tree.

    ``frameworks`` matches the names of packages that show without a version that a text names packages.
    """
    commit = revisions.commit_of(folder, revision)
    top = revisions.run_git(folder, "rev-parse", "--show-toplevel")
    if top.returncode:
        raise SteleError(f"{folder} has no working tree. git says: {revisions.git_error(top)}")
    root = Path(os.fsdecode(top.stdout.removesuffix(b"\n")))
    entries = entries_of(root, commit)
    named = lockfiles.spelled(frameworks)
    present: dict[str, bytes] = {}
    earlier: dict[str, bytes] = {}
    unread, same = [], set()
    for name, content in working_files(root):
        if content is None:
            unread.append(name)
        elif name in entries and is_same(content, entries[name]):
            same.add(name)
            if len(content) <= LARGEST_UNNAMED and not lockfiles.is_searched(name):
                present[name] = earlier[name] = content
        elif is_relevant(name, content, named):
            present[name] = content
    links = {name: str((root / name).readlink()) for name in unread if (root / name).is_symlink()}
    large = {name for name in unread if name not in links and (root / name).is_file()}
    changed = [name for name in entries if lockfiles.is_possible(name) and name not in same]
    old_links, old_large = dict(dead_links(root, entries, changed)), set()
    for name, content in committed_files(root, entries, changed):
        if content is None:
            old_large.add(name)
        elif is_relevant(name, content, named):
            earlier[name] = content
    read_old = functools.partial(load_committed, root, entries, revision)
    read_new = functools.partial(load_working, root)
    return (
        tree_of(root, earlier, frameworks, read_old, old_links, old_large),
        tree_of(root, present, frameworks, read_new, links, large),
    )


def is_relevant(name: str, content: bytes, named: Pattern[str]) -> bool:
    """Return whether a changed file can name packages: data may have a name like that of a file with packages."""
    if lockfiles.is_lock(name):
        return True
    if PurePath(name).suffix == ".py" and not lockfiles.INSTALLER.fullmatch(name.lower()):
        return lockfiles.SCRIPT.search(decode(content)) is not None
    return len(content) <= LARGEST_UNNAMED or named.search(decode(content)) is not None


def dead_links(root: Path, entries: Mapping[str, TreeEntry], names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the links of a commit that do not lead to a file of it, with their targets."""
    for name in names:
        if entries[name].mode == LINK and followed(root, entries, name) is None:
            [(_, target)] = contents_of(root, [entries[name].identity])
            yield name, os.fsdecode(target)


def working_files(root: Path) -> Iterator[tuple[str, bytes | None]]:
    """Yield each file of the working tree that Git lists and that may name packages; None of one that is not read.

    What a sparse checkout leaves out has the content of Git's index.
    """
    listing = os.fsdecode(revisions.run_git(root, "ls-files", "-z", "-t").stdout)
    for line in sorted({*listing.split("\0")} - {""}):
        tag, name = line[:1], line[2:]
        if not lockfiles.is_possible(name):
            continue
        if tag == "S" and not (root / name).exists():
            yield name, revisions.run_git(root, "cat-file", "blob", f":{name}").stdout
        else:
            yield name, read_bounded(root, name)


def read_bounded(root: Path, name: str) -> bytes | None:
    """Return the content of a regular file in the repository; None if it is another one, or too large.

    Raises SteleError if it is a file of packages by its name, and larger than LARGEST.
    """
    path = Path(os.path.realpath(root / name))
    try:
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode) or not path.is_relative_to(root):
            return None
        return path.read_bytes() if is_small(name, facts.st_size) else None
    except OSError:
        return None


def is_small(name: str, size: int) -> bool:
    """Return whether a file is within the limit. Raises SteleError if it must be read and is not."""
    if size > LARGEST and lockfiles.is_lock(name):
        raise SteleError(f"{name} has {size} bytes; at most {LARGEST} are read. Name OLD and NEW.")
    return size <= LARGEST


def is_same(content: bytes | None, entry: TreeEntry) -> bool:
    """Return whether a file of the working tree has the content of a commit; False if that is not certain."""
    if content is None or entry.mode == LINK:
        return False
    algorithm = hashlib.sha256 if len(entry.identity) == 64 else hashlib.sha1
    return algorithm(b"blob %d\0" % len(content) + content).hexdigest() == entry.identity


def committed_files(
    root: Path, entries: Mapping[str, TreeEntry], names: Iterable[str]
) -> Iterator[tuple[str, bytes | None]]:
    """Yield the content of files of a commit; None of one that is too large."""
    targets = {name: target for name in names if (target := followed(root, entries, name)) is not None}
    identities = {name: entries[target].identity for name, target in targets.items()}
    sizes = dict(sizes_of(root, {*identities.values()}))
    small = [name for name, identity in identities.items() if is_small(name, sizes[identity])]
    yield from ((name, None) for name in identities.keys() - {*small})
    while small:  # together as many as are surely within the memory
        part, total = [small.pop()], 0
        while small and total <= LARGEST:
            total += sizes[identities[small[-1]]]
            part.append(small.pop())
        contents = dict(contents_of(root, {identities[name] for name in part}))
        yield from ((name, contents[identities[name]]) for name in part)


def tree_of(
    root: Path,
    files: Mapping[str, bytes],
    frameworks: Pattern[str],
    load: Callable[[str], str],
    links: Mapping[str, str],
    large: Iterable[str],
) -> Tree:
    """Return the files, apart by whether their text names packages. What is no text is left out."""
    texts = {name: decode(content) for name, content in sorted(files.items())}
    named = {name: text for name, text in texts.items() if lockfiles.holds_packages(name, text, frameworks)}
    others = {name: text for name, text in texts.items() if name not in named and "\0" not in text}
    return Tree(root, named, others, load, links, frozenset(large))


def decode(content: bytes) -> str:
    """Return text in UTF-8, or in UTF-16 with a byte order mark. What cannot be decoded is replaced."""
    marked = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return content.decode("utf-16" if marked else "utf-8-sig", errors="replace")


def load_committed(root: Path, entries: Mapping[str, TreeEntry], revision: str, name: str) -> str:
    """Return the text of any file of a commit. Raises SteleError if it does not have it."""
    content = dict(committed_files(root, entries, [name])).get(name)
    if content is None:
        raise SteleError(f"{name} does not exist in revision {revision!r}. List files: git ls-tree -r {revision}")
    return decode(content)


def load_working(root: Path, name: str) -> str:
    """Return the text of any file of the working tree. Raises SteleError if it cannot be read."""
    content = read_bounded(root, name)
    if content is None:
        raise SteleError(f"{name} is not a file of the working tree.")
    return decode(content)
