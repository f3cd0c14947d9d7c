"""Refuse to run programs that other users of this machine can replace. Linux only.

A program is safe if no other user can write to it, to a folder above it, or to a link that leads to it. The owner of a
program is trusted, because the user has chosen the program. A process of root in a container is alone there, and some
CI systems let everybody write to its folders, so nothing is refused.
"""

import contextlib
import functools
import grp
import os
import pwd
import shlex
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from stele import files
from stele.errors import SteleError

CONTAINER_FILES = (Path("/.dockerenv"), Path("/run/.containerenv"))
MOST_LINKS = 40  # as in Linux


def check(program: str, folder: Path | None = None) -> None:
    """Raise SteleError, with the place and what to do, if another user can replace a program.

    ``program`` is a path, which may be relative to ``folder``, or a name on PATH. Anything else is accepted, because
    nothing can be started.
    """
    path = (folder or Path()) / program
    executable = path if files.is_file(path) else shutil.which(program)
    if executable is None or not sys.platform.startswith("linux") or is_root_in_container():
        return
    protected, parent = None, None
    for place in places(Path(executable).absolute()):
        try:
            facts = place.lstat()
        except OSError:
            return  # the start of the program will say what is wrong with it
        if protected is not None and place.is_relative_to(protected):
            continue
        reason = problem(facts, parent)
        if reason is not None:
            raise SteleError(
                f"{executable} is not started, because other users can replace it: {place} {reason}. "
                f"Run: chmod go-w {shlex.quote(str(place))}. If that is not permitted, install the program in a folder "
                "that only you can write to."
            )
        protected, parent = place if is_closed(facts) else None, facts


def is_root_in_container() -> bool:
    """Return whether this process belongs to root in a container."""
    in_container = any(file.exists() for file in CONTAINER_FILES) or "KUBERNETES_SERVICE_HOST" in os.environ
    return os.geteuid() == 0 and in_container


def places(path: Path, links: int = MOST_LINKS) -> Iterator[Path]:
    """Yield every folder, link and file that decides what an absolute path leads to, from the root on."""
    current = Path(path.anchor)
    yield current
    for index, part in enumerate(path.parts[1:], 2):
        current = current.parent if part == ".." else current / part
        yield current
        if current.is_symlink() and links:
            target = current.parent / current.readlink()
            yield from places(target.joinpath(*path.parts[index:]), links - 1)
            return


def problem(facts: os.stat_result, parent: os.stat_result | None) -> str | None:
    """Return why a file or a folder is unsafe, or None. ``parent`` is the folder that contains it."""
    if parent is not None and is_writable(parent) and facts.st_uid not in (0, os.geteuid()):
        return "belongs to another user, in a folder that all users can write to"
    # in a folder with the sticky bit, such as /tmp, only the owner of a file can replace it
    sticky_folder = stat.S_ISDIR(facts.st_mode) and facts.st_mode & stat.S_ISVTX
    return "can be written by other users" if is_writable(facts) and not sticky_folder else None


def is_writable(facts: os.stat_result) -> bool:
    """Return whether other users can write to a file or a folder."""
    return not stat.S_ISLNK(facts.st_mode) and others_have(facts, stat.S_IWOTH, stat.S_IWGRP)


def is_closed(facts: os.stat_result) -> bool:
    """Return whether other users cannot enter a folder, so that they cannot write to anything below it."""
    is_trusted = stat.S_ISDIR(facts.st_mode) and facts.st_uid in (0, os.geteuid())
    return is_trusted and not others_have(facts, stat.S_IXOTH, stat.S_IXGRP)


def others_have(facts: os.stat_result, of_all: int, of_group: int) -> bool:
    """Return whether other users have a permission, by its bits for all and for the group."""
    return bool(facts.st_mode & of_all or (facts.st_mode & of_group and has_other_members(facts.st_gid)))


@functools.cache
def has_other_members(group: int) -> bool:
    """Return whether a group has a member that is neither root nor this user. Many users have a group of their own."""
    accounts = pwd.getpwall()
    members = {account.pw_name for account in accounts if account.pw_gid == group}
    # the group of a volume may have no entry
    with contextlib.suppress(KeyError):
        members.update(grp.getgrgid(group).gr_mem)
    return bool(members - {account.pw_name for account in accounts if account.pw_uid in (0, os.geteuid())})
