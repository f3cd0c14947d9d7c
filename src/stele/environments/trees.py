"""The files of a repository that name packages, in a revision and in the working tree. No filter of git is started."""

import codecs
import functools
import hashlib
import os
import posixpath
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from re import Pattern

from stele.environments import lockfiles, revisions
from stele.environments.revisions import LINK, Entry, contents_of, entries_of, followed, sizes_of
from stele.errors import SteleError

LARGEST = 2**24  # bytes of a file
LARGEST_UNNAMED = 2**21  # bytes of a file whose content decides whether it names packages


@dataclass(frozen=True)
class Tree:
    """The text of each file that names packages, of ``others`` that perhaps do, and how any file is read."""

    root: Path
    texts: Mapping[str, str]
    others: Mapping[str, str]
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
    entries = entries_of(root, commit)
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
    return tree_of(root, earlier, known, read_old), tree_of(root, present, known, read_new)


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
    return LARGEST if lockfiles.is_lock(name) else LARGEST_UNNAMED


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


def tree_of(root: Path, files: Mapping[str, bytes], known: Pattern[str], load: Callable[[str], str]) -> Tree:
    """Return the files, apart by whether their text names packages. What is no text is left out."""
    texts = {name: decode(content) for name, content in sorted(files.items())}
    named = {name: text for name, text in texts.items() if lockfiles.holds_packages(name, text, known)}
    others = {name: text for name, text in texts.items() if name not in named and "\0" not in text}
    return Tree(root, named, others, load)


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
