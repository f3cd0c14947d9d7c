"""Submodules: what changed in the files of packages of another repository, as far as it is here."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from stele.environments import lockfiles, trees
from stele.environments.revisions import commit_of, contents_of, entries_of, run_git
from stele.errors import SteleError
from stele.text import without_passwords

MODE = "160000"


def find(root: Path, revision: str, named: re.Pattern[str]) -> Iterator[tuple[str, str, bool]]:
    """Yield each submodule of a repository that changed since a revision.

    As its path, what is known, and whether it may install another framework; ``named`` finds their names in a text.
    """
    before = dict(listed(root, "ls-tree", "-r", "-z", commit_of(root, revision)))
    after = dict(listed(root, "ls-files", "-s", "-z"))
    for path in sorted({*before, *after}):
        is_here = (root / path / ".git").exists()
        if is_here and path in before and path in after:
            yield from compared(root / path, path, before[path], named)
        elif before.get(path) != after.get(path):
            yield (
                path,
                f"the submodule {path} changed, and its files cannot be compared. Name OLD and NEW.",
                True,
            )


def listed(root: Path, *arguments: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the commit of each submodule in a listing of git."""
    for line in os.fsdecode(run_git(root, *arguments).stdout).split("\0"):
        facts, _, path = line.partition("\t")
        if facts.startswith(MODE):
            yield path, next(word for word in facts.split() if len(word) >= 40)


def compared(root: Path, path: str, commit: str, named: re.Pattern[str]) -> Iterator[tuple[str, str, bool]]:
    """Yield the files of packages in a submodule that differ from one of its commits."""
    try:
        commit_of(root, commit)
    except SteleError as error:
        yield path, f"the submodule {path}: {without_passwords(str(error))}", True
        return
    entries = entries_of(root, commit)
    names = {*entries, *os.fsdecode(run_git(root, "ls-files", "-z").stdout).split("\0")}
    for name in sorted(filter(lockfiles.is_lock, names)):
        content, entry = trees.read_bounded(root, name), entries.get(name)
        if (content is None and entry is None) or (entry is not None and trees.is_same(content, entry)):
            continue
        old = b"" if entry is None else dict(contents_of(root, [entry.identity]))[entry.identity]
        names_one = any(named.search(trees.decode(text)) for text in (old, content or b""))
        yield (
            path,
            f"{path}/{name} changed, and files of a submodule are not read. Name OLD and NEW.",
            names_one,
        )
