"""The ledger: a git repository in the cache whose commits are releases: asv walks commits, and so walks releases.

A branch for each framework, a commit and a tag, ``jax-0.9.2``, for each release, dated as the release was. Its content
is requirements.txt. What is in the ledger stays, so that results keep their commit: releases are only ever added.
"""

import os
import subprocess
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from stele.data import cache
from stele.environments import Environment
from stele.errors import SteleError
from stele.releases.index import Release

NAME = "Stele", "stele@localhost"
SYNCED = "synced"  # a file, of the time when the index was last read


def folder() -> Path:
    return cache.folder() / "ledger"


def tag(framework: str, version: str) -> str:
    return f"{framework}-{version}"


def tags(framework: str) -> list[str]:
    """The recorded releases of a framework, in the order of the ledger."""
    if not (folder() / "HEAD").exists():
        return []
    listed = git("log", "--reverse", "--format=%s", f"refs/heads/{framework}", missing="")
    return listed.split()


def age() -> str:
    """When the index was last read."""
    return datetime.fromtimestamp((folder() / SYNCED).stat().st_mtime).isoformat(sep=" ", timespec="minutes")


def add(framework: str, row: Environment, releases: Sequence[Release]) -> list[str]:
    """Record those releases that are not yet, in their order; returns their tags."""
    if not (folder() / "HEAD").exists():
        folder().mkdir(parents=True, exist_ok=True)
        git("init", "--quiet", "--bare", "--initial-branch=none")
    known = set(tags(framework))
    new = [release for release in releases if tag(framework, release.version) not in known]
    if new:
        git("fast-import", "--quiet", text=stream(framework, row, new, begun=bool(known)))
    (folder() / SYNCED).touch()
    return [tag(framework, release.version) for release in new]


def stream(framework: str, row: Environment, releases: Sequence[Release], *, begun: bool) -> str:
    """Commits for ``git fast-import``: the same releases make the same commits, everywhere."""
    parts = []
    for count, release in enumerate(releases):
        name, content = tag(framework, release.version), requirements(row, release)
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


def requirements(row: Environment, release: Release) -> str:
    """requirements.txt: the release, and what else the row requires."""
    own = canonicalize_name(release.package)
    others = [text for text in row.requirements if canonicalize_name(Requirement(text).name) != own]
    return "".join(f"{line}\n" for line in (f"{release.package}=={release.version}", *others))


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
