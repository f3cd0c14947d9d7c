"""The files of a repository that name packages, in a revision and in the working tree. No filter of git is started."""

import codecs
import functools
import hashlib
import os
import posixpath
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from re import Pattern
from typing import NamedTuple

from stele.environments import lockfiles, revisions
from stele.errors import SteleError

LARGEST = 2**24  # bytes of a file
LARGEST_UNNAMED = 2**21  # bytes of a file whose content decides whether it names packages
LINK = "120000"  # the mode of a symbolic link
MOST_LINKS = 10


class Entry(NamedTuple):
    """A file of a commit."""

    mode: str
    identity: str


@dataclass(frozen=True)
class Tree:
    """The text of each file that names packages, and how any file is read."""

    root: Path
    texts: Mapping[str, str]
    load: Callable[[str], str]

    def sibling(self, name: str) -> Callable[[str], str]:
        """Return a function that reads a file by its path relative to the folder of ``name``."""

        def read(path: str) -> str:
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
            if target.startswith("../"):
                raise SteleError(f"{target} is outside of the repository.")
            return self.load(target)

        return read


def trees_of(folder: Path, revision: str, known: Pattern[str]) -> tuple[Tree, Tree]:
    """Return the files that name packages in a revision and in the working tree.

    ``known`` matches the names of packages that show without a version that a text names packages.
    """
    commit = revisions.commit_of(folder, revision)
    top = revisions.run_git(folder, "rev-parse", "--show-toplevel")
    if top.returncode:
        raise SteleError(f"{folder} has no working tree. git says: {revisions.said(top)}")
    root = Path(os.fsdecode(top.stdout.removesuffix(b"\n")))
    entries = dict(entries_of(root, commit))
    present = dict(working_files(root))
    changed = {
        name
        for name, entry in entries.items()
        if lockfiles.is_possible(name) and not is_same(present.get(name), entry)
    }
    earlier = {name: present[name] for name in entries if name in present and name not in changed}
    earlier |= committed_files(root, entries, {name: limit_of(name) for name in changed})
    read_old = functools.partial(load_committed, root, entries, revision)
    read_new = functools.partial(load_working, root)
    return (
        Tree(root, dict(texts_of(earlier, known)), read_old),
        Tree(root, dict(texts_of(present, known)), read_new),
    )


def entries_of(root: Path, commit: str) -> Iterator[tuple[str, Entry]]:
    """Yield the name of each file of a commit, with its mode and the hash of its content."""
    for line in os.fsdecode(revisions.run_git(root, "ls-tree", "-r", "-z", commit).stdout).split("\0"):
        facts, _, name = line.partition("\t")
        mode, _, identity = facts.partition(" blob ")
        if identity:
            yield name, Entry(mode, identity)


def working_files(root: Path) -> Iterator[tuple[str, bytes]]:
    """Yield each file of the working tree that Git lists and that may name packages.

    What a sparse checkout leaves out has the content of Git's index.
    """
    listing = os.fsdecode(revisions.run_git(root, "ls-files", "-z", "-t").stdout)
    for line in sorted({*listing.split("\0")} - {""}):
        tag, name = line[:1], line[2:]
        if not lockfiles.is_possible(name):
            continue
        if tag == "S" and not (root / name).exists():
            yield name, revisions.run_git(root, "cat-file", "blob", f":{name}").stdout
        elif (content := read_bounded(root, name, limit_of(name))) is not None:
            yield name, content


def limit_of(name: str) -> int:
    """Return the size of the largest file that is read: data may have a name like that of a file with packages."""
    return LARGEST if lockfiles.is_conventional(name) else LARGEST_UNNAMED


def read_bounded(root: Path, name: str, limit: int) -> bytes | None:
    """Return the content of a regular file in the repository; None if it is another one.

    Raises SteleError if it is larger than LARGEST.
    """
    path = Path(os.path.realpath(root / name))
    try:
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode) or not path.is_relative_to(root):
            return None
        return path.read_bytes() if is_small(name, facts.st_size, limit) else None
    except OSError:
        return None


def is_small(name: str, size: int, limit: int) -> bool:
    """Return whether a file is within the limit. Raises SteleError if it must be read and is not."""
    if size > limit == LARGEST:
        raise SteleError(f"{name} has {size} bytes; at most {LARGEST} are read. Name OLD and NEW.")
    return size <= limit


def is_same(content: bytes | None, entry: Entry) -> bool:
    """Return whether a file of the working tree has the content of a commit; False if that is not certain."""
    if content is None or entry.mode == LINK:
        return False
    algorithm = hashlib.sha256 if len(entry.identity) == 64 else hashlib.sha1
    return algorithm(b"blob %d\0" % len(content) + content).hexdigest() == entry.identity


def committed_files(root: Path, entries: Mapping[str, Entry], limits: Mapping[str, int]) -> dict[str, bytes]:
    """Return the content of files of a commit, without those that are larger than their limit."""
    targets = {name: target for name in limits if (target := followed(root, entries, name)) is not None}
    identities = {name: entries[target].identity for name, target in targets.items()}
    sizes = dict(sizes_of(root, {*identities.values()}))
    small = {name: one for name, one in identities.items() if is_small(name, sizes[one], limits[name])}
    contents = dict(contents_of(root, {*small.values()}))
    return {name: contents[identity] for name, identity in small.items()}


def followed(root: Path, entries: Mapping[str, Entry], name: str) -> str | None:
    """Return the file to which a name leads in a commit; None if there is none."""
    for _ in range(MOST_LINKS):
        if name not in entries or entries[name].mode != LINK:
            return name if name in entries else None
        [(_, target)] = contents_of(root, [entries[name].identity])
        name = posixpath.normpath(posixpath.join(posixpath.dirname(name), os.fsdecode(target)))
    return None


def sizes_of(root: Path, identities: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yield each hash with the size of its content. Raises SteleError if git cannot read one."""
    for line in batch(root, "--batch-check=%(objectname) %(objectsize)", identities).decode().splitlines():
        identity, _, size = line.partition(" ")
        if not size.isdigit():
            raise SteleError(f"git cannot read the object {identity} of {root}. Fetch the complete revision.")
        yield identity, int(size)


def contents_of(root: Path, identities: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Yield each hash with its content."""
    output, start = batch(root, "--batch", identities), 0
    while start < len(output):
        end = output.index(b"\n", start)
        identity, _, size = output[start:end].decode().split(" ")
        start = end + int(size) + 2
        yield identity, output[end + 1 : start - 1]


def batch(root: Path, option: str, identities: Iterable[str]) -> bytes:
    """Return what ``git cat-file`` says about objects. Raises SteleError, with the message of git, if it fails."""
    process = revisions.run_git(
        root, "cat-file", option, text="".join(f"{one}\n" for one in identities).encode()
    )
    if process.returncode:
        raise SteleError(f"git cannot read the files of {root}. git says: {revisions.said(process)}")
    return process.stdout


def texts_of(files: Mapping[str, bytes], known: Pattern[str]) -> Iterator[tuple[str, str]]:
    """Yield the text of each file that names packages."""
    for name, content in sorted(files.items()):
        text = decode(content)
        if lockfiles.holds_packages(name, text, known):
            yield name, text


def decode(content: bytes) -> str:
    """Return text in UTF-8, or in UTF-16 with a byte order mark. What cannot be decoded is replaced."""
    marked = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return content.decode("utf-16" if marked else "utf-8-sig", errors="replace")


def load_committed(root: Path, entries: Mapping[str, Entry], revision: str, name: str) -> str:
    """Return the text of any file of a commit. Raises SteleError if it does not have it."""
    content = committed_files(root, entries, {name: LARGEST}).get(name)
    if content is None:
        raise SteleError(
            f"{name} does not exist in revision {revision!r}. List files: git ls-tree -r {revision}"
        )
    return decode(content)


def load_working(root: Path, name: str) -> str:
    """Return the text of any file of the working tree. Raises SteleError if it cannot be read."""
    content = read_bounded(root, name, LARGEST)
    if content is None:
        raise SteleError(f"{name} is not a file of the working tree.")
    return decode(content)
