"""The ledger: a git repository in the cache whose commits are releases: asv walks commits, and so walks releases.

A branch for each framework, a commit and a tag, ``jax-0.9.2``, for each release, dated as the release was. Its content
is requirements.txt. What is in the ledger stays, so that results keep their commit: releases are only ever added.
"""

import difflib
import functools
import os
import subprocess
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from stele.data import cache
from stele.environments import Environment
from stele.errors import SteleError
from stele.releases.index import Release

NAME = "Stele", "stele@localhost"
PYTHON = (
    "# Requires-Python: "  # a comment to pip, which looks at it in the wheel; here nothing is downloaded yet
)
EMPTY = "nothing yet"  # the commit of a branch without releases: asv wants all branches of its configuration
LINK = Path(".stele/ledger")  # as asv.conf.json calls it
SYNCED = "synced"  # a file, of the time when the index was last read


def folder() -> Path:
    return cache.folder() / "ledger"


def tag(framework: str, version: str) -> str:
    return f"{framework}-{version}"


def tags(framework: str) -> list[str]:
    """The recorded releases of a framework, in the order of the ledger."""
    if not known():
        return []
    listed = git("log", "--reverse", "--format=%s", f"refs/heads/{framework}", missing="")
    return [name for name in listed.splitlines() if name != EMPTY]


def branches() -> list[str]:
    """The frameworks in the ledger."""
    return refs("refs/heads")


def refs(kind: str) -> list[str]:
    return git("for-each-ref", "--format=%(refname:short)", kind).split() if known() else []


def begin(frameworks: Iterable[str]) -> None:
    """A ledger with a branch for each framework, and a link to it for asv."""
    if not (folder() / "HEAD").exists():
        folder().mkdir(parents=True, exist_ok=True)
        git("init", "--quiet", "--bare", "--initial-branch=none")
    there = branches()
    stamp = f"{NAME[0]} <{NAME[1]}> 0 +0000"
    for framework in frameworks:
        if framework not in there:
            ref = f"commit refs/heads/{framework}\n"
            git("fast-import", "--quiet", text=f"{ref}committer {stamp}\ndata {len(EMPTY)}\n{EMPTY}\n")
    LINK.parent.mkdir(exist_ok=True)
    if LINK.is_symlink() or not LINK.exists():
        LINK.unlink(missing_ok=True)
        LINK.symlink_to(folder().absolute(), target_is_directory=True)


def span(text: str) -> list[str]:
    """The releases, oldest first, that ``text`` names: a framework, a tag, or ``jax-0.9.2..jax-0.10.2``, which is git's
    range and leaves out its beginning. Raises SteleError, with the nearest, if it names none."""
    if text in branches():
        return tags(text)
    everything = refs("refs/tags")
    first, dots, last = text.partition("..")
    for name in (first, last) if dots else (text,):
        if name not in everything:
            raise SteleError(nearest(name, everything))
    if not dots:
        return [text]
    found = git("log", "--reverse", "--format=%s", f"{first}..{last}").splitlines()
    if first.rpartition("-")[0] != last.rpartition("-")[0] or not found:
        raise SteleError(f"{text} spans no releases: say OLDER..NEWER, of one framework.")
    return found


def nearest(name: str, everything: Sequence[str]) -> str:
    if not everything:
        return f"The ledger is empty, so {name!r} is not in it. Type: stele releases sync"
    near = difflib.get_close_matches(name, everything, n=3, cutoff=0.5)
    meant = f" Did you mean {' or '.join(near)}?" if near else ""
    return f"Unknown release {name!r}.{meant} What there is: stele releases list FRAMEWORK"


def known() -> bool:
    return (folder() / "HEAD").exists()


def commit(name: str) -> tuple[str, int]:
    """The hash of a release's commit, and its date in seconds."""
    return immutable(folder(), name)


@functools.cache
def immutable(place: Path, name: str) -> tuple[str, int]:
    """The same of the ledger in a folder: no commit of it ever changes, and each number on record asks for one."""
    found, date = git("log", "-1", "--format=%H %at", name).split()
    return found, int(date)


def tag_of(commit: str) -> str:
    """The release that a commit is. Raises SteleError if it is none."""
    found = git("tag", "--points-at", f"{commit}^0", missing="").split()
    if not found:
        raise SteleError(f"{commit} is no release in the ledger {folder()}. Type: stele releases sync")
    return found[0]


def content(name: str) -> str:
    """requirements.txt of a release."""
    return git("show", f"{name}:requirements.txt")


def age() -> str:
    """When the index was last read."""
    return datetime.fromtimestamp((folder() / SYNCED).stat().st_mtime).isoformat(sep=" ", timespec="minutes")


def add(
    framework: str, row: Environment, releases: Sequence[Release], others: Sequence[Release] = ()
) -> list[str]:
    """Record those releases that are not yet, in their order; returns their tags.

    ``others`` are the releases of what else the row requires: each is pinned as it was on the day of a release.
    """
    begin([framework])
    recorded = set(tags(framework))
    new = [release for release in releases if tag(framework, release.version) not in recorded]
    if new:
        # what is empty is replaced, not gone on from
        git(
            "fast-import",
            "--quiet",
            "--force",
            text=stream(framework, row, new, others, begun=bool(recorded)),
        )
    (folder() / SYNCED).touch()
    return [tag(framework, release.version) for release in new]


def stream(
    framework: str,
    row: Environment,
    releases: Sequence[Release],
    others: Sequence[Release],
    *,
    begun: bool,
) -> str:
    """Commits for ``git fast-import``: the same releases make the same commits, everywhere."""
    parts = []
    for count, release in enumerate(releases):
        name, content = tag(framework, release.version), requirements(row, release, others)
        stamp = f"{NAME[0]} <{NAME[1]}> {int(datetime.fromisoformat(release.date).timestamp())} +0000"
        parts += [
            f"commit refs/heads/{framework}",
            f"mark :{count + 1}",
            f"author {stamp}",
            f"committer {stamp}",
        ]
        parts += [f"data {len(name.encode())}", name]
        parts += [f"from refs/heads/{framework}^0"] if begun and count == 0 else []
        parts += ["M 100644 inline requirements.txt", f"data {len(content.encode())}", content]
        parts += [f"reset refs/tags/{name}", f"from :{count + 1}", ""]
    return "\n".join(parts)


def requirements(row: Environment, release: Release, others: Sequence[Release]) -> str:
    """requirements.txt: the release, and what else the row requires, as it was on that day."""
    wanted = [Requirement(text) for text in row.requirements]
    rest = [one for one in wanted if canonicalize_name(one.name) != canonicalize_name(release.package)]
    lines = [f"{release.package}=={release.version}", *(of_day(one, release.date, others) for one in rest)]
    needs = [f"{PYTHON}{release.python}"] if release.python else []
    return "".join(f"{line}\n" for line in [*needs, *lines])


def of_day(wanted: Requirement, date: str, releases: Sequence[Release]) -> str:
    """The newest release that was there on a day, pinned; as it is required where there was none."""
    there = [
        Version(one.version)
        for one in releases
        if one.package == wanted.name and one.date <= date and wanted.specifier.contains(one.version)
    ]
    return f"{wanted.name}=={max(there)}" if there else str(wanted)


def git(*arguments: str, text: str | None = None, missing: str | None = None) -> str:
    """Run git in the ledger and return what it prints; ``missing`` in place of an error, where that is allowed."""
    # nothing of the user's own configuration, and no other repository that happens to be current
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    surroundings |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    try:
        done = subprocess.run(
            ["git", *arguments],
            cwd=folder(),
            env=surroundings,
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise SteleError(
            f"git does not start: {error}. Install it: the ledger is a git repository."
        ) from None
    if done.returncode == 0:
        return done.stdout
    if missing is not None:
        return missing
    raise SteleError(f"git {arguments[0]} failed in {folder()}: {done.stderr.strip()}")
