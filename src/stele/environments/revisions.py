"""Read lock files as they were in an earlier revision, FILE@REVISION, with a git that starts no other program."""

import codecs
import difflib
import functools
import os
import posixpath
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from stele import files, git
from stele.environments import lockfiles
from stele.environments.lockfiles import Locked
from stele.errors import SteleError
from stele.text import without_passwords

DOWNLOADS = "file:git:http:https:ssh"  # what a partial clone may use; ext starts a program
PROGRAMS = re.compile(r"core\.(sshcommand|askpass|gitproxy)|credential\.(.*\.)?helper|remote\..*\.(uploadpack|vcs)")
LINK = "120000"  # the mode of a symbolic link
MOST_LINKS = 10


class TreeEntry(NamedTuple):
    """A file of a commit."""

    mode: str
    identity: str


def split(text: str) -> tuple[Path, str | None]:
    """Return the file and the revision of FILE@REVISION; the revision is None if ``text`` names only a file.

    The last @ separates them for which the file exists, in the working tree or in the revision. If there is none, the
    last one after the name of a lock file does, so that the error names the part that is wrong.
    """
    ends = [index for index, letter in enumerate(text) if letter == "@" and 0 < index < len(text) - 1][::-1]
    pairs = [(Path(text[:end]), text[end + 1 :]) for end in ends]
    for file, revision in pairs:
        if files.is_file(file) or in_revision(file, revision):
            return file, revision
    whole = Path(text)
    exists = files.is_file(whole) or files.is_folder(whole)
    named = [] if exists else [pair for pair in pairs if pair[0].suffix in lockfiles.SUFFIXES]
    return named[0] if named else (whole, None)


def in_revision(file: Path, revision: str) -> bool:
    """Return whether the file exists in the revision; False if there is no such revision or repository."""
    try:
        show(file, revision)
    except SteleError:
        return False
    return True


def read(text: str, *, allow_vcs: bool = False, extras: Iterable[str] = ()) -> Locked:
    """Return the packages in FILE or FILE@REVISION. Files that it includes are read at the same revision."""
    file, revision = split(text)
    try:
        content = show(file, revision) if revision else read_text(file)
        sibling = sibling_reader(file, revision)
        options = {"allow_vcs": allow_vcs, "revision": revision}
        return lockfiles.read(str(file), content, sibling, extras=extras, **options)
    except SteleError as error:
        has_revision = revision is None or repr(revision) in str(error)
        raise SteleError(str(error) if has_revision else f"At revision {revision!r}: {error}") from None


def read_text(file: Path) -> str:
    """Return the text of a file of the working tree. Raises SteleError if it cannot be read."""
    try:
        return decode(file, files.read_bytes(file, files.LARGEST_TEXT))
    except files.ReadError as error:
        raise SteleError(str(error)) from None
    except OSError as error:
        raise SteleError(f"{file} cannot be read: {error.strerror}. Name an existing file.") from None


def sibling_reader(file: Path, revision: str | None) -> Callable[[str], str]:
    """Return a function that reads a file next to ``file``, at the same revision."""

    def read_sibling(path: str) -> str:
        return show(file.parent / path, revision) if revision else read_text(file.parent / path)

    return read_sibling


def decode(file: Path, content: bytes) -> str:
    """Return text in UTF-8, or in UTF-16 with a byte order mark, which PowerShell writes."""
    marked = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return content.decode("utf-16" if marked else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise SteleError(f"{file} is not text in UTF-8: {error}. Save it in UTF-8.") from None


def show(file: Path, revision: str) -> str:
    """Return the text of a file in a revision of its Git repository. Links lead where they led in that revision.

    Raises SteleError if there is no repository, no such revision, or no such file in it.
    """
    root, name = located(file, revision)
    entries = entries_of(root, commit_of(root, revision))
    target = followed(root, entries, name)
    if target is None:
        raise SteleError(f"{file} does not exist in revision {revision!r}. List files: git ls-tree -r {revision}")
    [(_, content)] = contents_of(root, [entries[target].identity])
    return decode(file, content)


def located(file: Path, revision: str) -> tuple[Path, str]:
    """Return the folder of the repository that has a file, and the name of the file in it.

    A link to the repository, and one in it that Git does not list, leads where it leads now. Raises SteleError if there
    is no repository.
    """
    path = files.without_dots(file)
    for _ in range(MOST_LINKS):
        root = next((folder for folder in path.parents if files.exists(folder / ".git")), None)
        links = [place for place in (path, *path.parents) if files.is_link(place) and place != root]
        inside = [link for link in links if root is None or link.is_relative_to(root)]
        if not inside or (root is not None and is_listed(root, inside[-1], revision)):
            break
        link = inside[-1]  # the outermost
        target = link.parent.resolve() / link.readlink()
        path = files.without_dots(target / path.relative_to(link))
    if root is None:
        folder = next(folder for folder in path.parents if files.is_folder(folder))
        require_repository(folder)
        raise SteleError(f"{folder} has no working tree of Git. Name a file of a clone.")
    return root, path.relative_to(root).as_posix()


def is_listed(root: Path, link: Path, revision: str) -> bool:
    """Return whether a link belongs to a repository: now, or in the revision."""
    name = link.relative_to(root).as_posix()
    listed = run_git(root, "ls-files", "-z", "--", f":(literal){name}").stdout
    return bool(listed) or name in entries_of(root, commit_of(root, revision))


@functools.cache
def entries_of(root: Path, commit: str) -> Mapping[str, TreeEntry]:
    """Return each file of a commit, with its mode and the hash of its content."""
    entries = {}
    for line in os.fsdecode(run_git(root, "ls-tree", "-r", "-z", commit).stdout).split("\0"):
        facts, _, name = line.partition("\t")
        mode, _, identity = facts.partition(" blob ")
        if identity:
            entries[name] = TreeEntry(mode, identity)
    return entries


def followed(root: Path, entries: Mapping[str, TreeEntry], name: str) -> str | None:
    """Return the file to which a name leads in a commit, also through links to folders; None if there is none."""
    for _ in range(MOST_LINKS):
        parts = name.split("/")
        paths = ["/".join(parts[: count + 1]) for count in range(len(parts))]
        link = next((path for path in paths if path in entries and entries[path].mode == LINK), None)
        if link is None:
            return name if name in entries else None
        [(_, target)] = contents_of(root, [entries[link].identity])
        place = posixpath.join(posixpath.dirname(link), os.fsdecode(target))
        name = posixpath.normpath(place + name.removeprefix(link))
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
        identity, _, size = output[start:end].decode().partition(" blob ")
        if not size.isdigit():
            raise SteleError(f"git cannot read the object {identity} of {root}. Fetch the complete revision.")
        start = end + int(size) + 2
        yield identity, output[end + 1 : start - 1]


def batch(root: Path, option: str, identities: Iterable[str]) -> bytes:
    """Return what ``git cat-file`` says about objects. Raises SteleError, with the message of git, if it fails."""
    process = run_git(root, "cat-file", option, text="".join(f"{identity}\n" for identity in identities).encode())
    if process.returncode:
        raise SteleError(f"git cannot read the files of {root}. git says: {git_error(process)}")
    return process.stdout


def commit_of(folder: Path, revision: str) -> str:
    """Return the hash of a revision. Raises SteleError, with similar names, if the repository does not have it."""
    if revision.startswith("-") or not revision.isprintable() or not revision:
        raise SteleError(f"{revision!r} is not a revision. Write a branch, a tag or a commit, such as main.")
    require_repository(folder)
    process = run_git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if process.returncode:
        raise SteleError(f"Unknown revision {revision!r} in {folder}. {revision_advice(folder, revision)}")
    return process.stdout.decode().strip()


def require_repository(folder: Path) -> None:
    """Raise SteleError, with the message of git, if the folder is not in a repository that git reads."""
    process = run_git(folder, "rev-parse", "--git-dir")
    if process.returncode:
        message = git_error(process)
        raise SteleError(f"{folder} is not in a Git repository that can be read. git says: {message}")


def git_error(process: subprocess.CompletedProcess[bytes]) -> str:
    """Return the start of what git says about an error."""
    return without_passwords(" ".join(process.stderr.decode(errors="replace").split()[:40]))


def revision_advice(folder: Path, revision: str) -> str:
    """Return what to do about an unknown revision: similar branches and tags, and how to fetch it."""
    listing = run_git(folder, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads", "refs/tags", "refs/remotes")
    names = listing.stdout.decode(errors="replace").split("\n")
    similar = difflib.get_close_matches(revision, names, n=3)
    similar += [name for name in names if name.endswith(f"/{revision}") and name not in similar]
    if similar:
        return f"Did you mean {' or '.join(map(repr, similar))}?"
    if run_git(folder, "rev-parse", "--is-shallow-repository").stdout.strip() == b"true":
        return f"The clone is shallow. Fetch the revision first: git fetch --depth 1 origin {revision}"
    return "List branches and tags with: git branch --all; git tag"


def run_git(folder: Path, *arguments: str, text: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder and return the finished process, also if it failed. ``text`` is its input.

    Nothing that the configuration of the repository names is started. If it names a program for downloads, a partial
    clone downloads nothing.
    """
    return git.run(folder, *arguments, text=text, protocols="none" if names_program(folder) else DOWNLOADS)


@functools.cache
def names_program(folder: Path) -> bool:
    """Return whether the configuration of the repository itself names a program with which git downloads."""
    process = git.run(folder, "config", "--list", "--name-only", "--show-scope", "-z", protocols="none")
    words = process.stdout.decode(errors="replace").split("\0")
    scoped = zip(words[::2], words[1::2], strict=False)
    return any(scope in ("local", "worktree") and PROGRAMS.fullmatch(name) for scope, name in scoped)
