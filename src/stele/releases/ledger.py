"""The ledger: a git repository in the cache with one commit for each release, because asv iterates over commits.

Each framework is a branch. Each release is a commit with a tag such as ``jax-0.9.2`` and the date of the release. Its
content is requirements.txt. Releases are added and never changed or removed, so that results keep their commit.
"""

import difflib
import functools
import os
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from stele import git
from stele.data import cache
from stele.environments import Environment
from stele.errors import SteleError
from stele.releases.index import Release

NAME = "Stele", "stele@localhost"
# a comment for pip, which reads Requires-Python from the wheel; Stele needs it before it downloads the wheel
PYTHON = "# Requires-Python: "
EMPTY = "nothing yet"  # the commit of a branch without releases: asv needs all branches of its configuration
LINK = Path(".stele/ledger")  # the path in asv.conf.json
WITHOUT_CONFIGURATION = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
SYNCED = "synced"  # a file; its time is when the index was last read


def folder() -> Path:
    return cache.folder() / "ledger"


def tag(framework: str, version: str) -> str:
    return f"{framework}-{version}"


def tags(framework: str) -> list[str]:
    """Return the tags of a framework's releases, in the order of the ledger."""
    if not exists():
        return []
    listed = run("log", "--reverse", "--format=%s", f"refs/heads/{framework}", missing="")
    return [name for name in listed.splitlines() if name != EMPTY]


def branches() -> list[str]:
    """Return the frameworks in the ledger."""
    return refs("refs/heads")


def refs(kind: str) -> list[str]:
    """Return the short names of all git references of a kind, such as ``refs/tags``."""
    return run("for-each-ref", "--format=%(refname:short)", kind).split() if exists() else []


def create(frameworks: Iterable[str]) -> None:
    """Create the ledger if it is missing, a branch for each framework, and the link for asv."""
    if not (folder() / "HEAD").exists():
        cache.create()
        folder().mkdir(exist_ok=True)
        run("init", "--quiet", "--bare", "--initial-branch=none")
    existing = branches()
    stamp = f"{NAME[0]} <{NAME[1]}> 0 +0000"
    for framework in frameworks:
        if framework not in existing:
            ref = f"commit refs/heads/{framework}\n"
            run("fast-import", "--quiet", text=f"{ref}committer {stamp}\ndata {len(EMPTY)}\n{EMPTY}\n")
    LINK.parent.mkdir(exist_ok=True)
    if LINK.is_symlink() or not LINK.exists():
        LINK.unlink(missing_ok=True)
        LINK.symlink_to(folder().absolute(), target_is_directory=True)


def span(text: str) -> list[str]:
    """Return the releases that ``text`` names, oldest first: a framework, a tag, or ``jax-0.9.2..jax-0.10.2``.

    A range excludes its start, as in git. Raises SteleError, with the nearest names, if it names no release.
    """
    if text in branches():
        return tags(text)
    all_tags = refs("refs/tags")
    older, dots, newer = text.partition("..")
    for name in (older, newer) if dots else (text,):
        if name not in all_tags:
            raise SteleError(unknown_release(name, all_tags))
    if not dots:
        return [text]
    releases = run("log", "--reverse", "--format=%s", f"{older}..{newer}").splitlines()
    if older.rpartition("-")[0] != newer.rpartition("-")[0] or not releases:
        raise SteleError(
            f"The range {text} contains no releases. Write OLDER..NEWER, with two releases of one framework."
        )
    return releases


def unknown_release(name: str, all_tags: Sequence[str]) -> str:
    """Return the message for a release that is not in the ledger, with the nearest names."""
    if not all_tags:
        return f"The ledger is empty, so it has no release {name!r}. Fill the ledger with: stele releases sync"
    near = difflib.get_close_matches(name, all_tags, n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return f"Unknown release {name!r}.{hint} List all with: stele releases list FRAMEWORK"


def exists() -> bool:
    """Return whether the ledger was created."""
    return (folder() / "HEAD").exists()


def commit(name: str) -> tuple[str, int]:
    """Return the hash of a release's commit, and its date in seconds."""
    return cached_commit(folder(), name)


@functools.cache
def cached_commit(folder: Path, name: str) -> tuple[str, int]:
    """Return the same for the ledger in ``folder``. Cached: commits never change, and every saved number needs one."""
    commit_hash, date = run("log", "-1", "--format=%H %at", name).split()
    return commit_hash, int(date)


def tag_of(commit: str) -> str:
    """Return the release of a commit. Raises SteleError if the commit is not a release."""
    if not exists():
        raise SteleError(unknown_release(commit, ()))
    tags_of_commit = run("tag", "--points-at", f"{commit}^0", missing="").split()
    if not tags_of_commit:
        raise SteleError(
            f"{commit} is not a release in the ledger {folder()}. Update the ledger with: stele releases sync"
        )
    return tags_of_commit[0]


def content(name: str) -> str:
    """Return the requirements.txt of a release."""
    return run("show", f"{name}:requirements.txt")


def pack(path: Path) -> bytes:
    """Return the whole ledger as a git bundle. It is first written to ``path``."""
    run("bundle", "create", "--quiet", str(path.absolute()), "--all")
    return path.read_bytes()


def unpack(content: bytes, path: Path) -> None:
    """Add the releases of another machine's ledger to this one, from a git bundle, which is written to ``path``."""
    create(())
    path.write_bytes(content)
    run("fetch", "--quiet", "--force", str(path.absolute()), "refs/*:refs/*")


def last_sync() -> str:
    """Return the date and time when the index was last read."""
    return datetime.fromtimestamp((folder() / SYNCED).stat().st_mtime).isoformat(sep=" ", timespec="minutes")


def add(
    framework: str,
    environment: Environment,
    releases: Sequence[Release],
    dependencies: Sequence[Release] = (),
) -> list[str]:
    """Add the releases that are not in the ledger yet, in their order, and return their tags.

    ``dependencies`` are the releases of the environment's other requirements. Each is pinned to its newest release on
    the day of a framework's release.
    """
    create([framework])
    recorded = set(tags(framework))
    new = [release for release in releases if tag(framework, release.version) not in recorded]
    if new:
        # --force, because the first release replaces the commit of an empty branch
        run(
            "fast-import",
            "--quiet",
            "--force",
            text=stream(framework, environment, new, dependencies, append=bool(recorded)),
        )
    (folder() / SYNCED).touch()
    return [tag(framework, release.version) for release in new]


def stream(
    framework: str,
    environment: Environment,
    releases: Sequence[Release],
    dependencies: Sequence[Release],
    *,
    append: bool,
) -> str:
    """Return the input for ``git fast-import``: one commit for each release, with the same hash on every machine.

    With ``append``, the commits follow the last one of the branch.
    """
    parts = []
    for count, release in enumerate(releases):
        name, content = tag(framework, release.version), requirements(environment, release, dependencies)
        stamp = f"{NAME[0]} <{NAME[1]}> {int(datetime.fromisoformat(release.date).timestamp())} +0000"
        parts += [
            f"commit refs/heads/{framework}",
            f"mark :{count + 1}",
            f"author {stamp}",
            f"committer {stamp}",
        ]
        parts += [f"data {len(name.encode())}", name]
        parts += [f"from refs/heads/{framework}^0"] if append and count == 0 else []
        parts += ["M 100644 inline requirements.txt", f"data {len(content.encode())}", content]
        parts += [f"reset refs/tags/{name}", f"from :{count + 1}", ""]
    return "\n".join(parts)


def requirements(environment: Environment, release: Release, dependencies: Sequence[Release]) -> str:
    """Return requirements.txt: the release, and the environment's other requirements as of that day."""
    required = [Requirement(text) for text in environment.requirements]
    rest = [item for item in required if canonicalize_name(item.name) != canonicalize_name(release.package)]
    pins = [pin_of_day(item, release.date, dependencies) for item in rest]
    lines = [f"{release.package}=={release.version}", *pins]
    needs = [f"{PYTHON}{release.python}"] if release.python else []
    return "".join(f"{line}\n" for line in [*needs, *lines])


def pin_of_day(requirement: Requirement, date: str, releases: Sequence[Release]) -> str:
    """Return a pin of the newest matching release on a day; the requirement itself if there was none."""
    name, specifier = requirement.name, requirement.specifier
    versions = [
        Version(release.version)
        for release in releases
        if release.package == name and release.date <= date and specifier.contains(release.version)
    ]
    return f"{name}=={max(versions)}" if versions else str(requirement)


def run(*arguments: str, text: str = "", missing: str | None = None) -> str:
    """Run git in the ledger, without the user's configuration, and return its output.

    ``text`` is its input. If git fails, returns ``missing``, or raises SteleError if that is None.
    """
    done = git.run(folder(), *arguments, text=text.encode(), protocols="file", variables=WITHOUT_CONFIGURATION)
    if done.returncode == 0:
        return done.stdout.decode()
    if missing is not None:
        return missing
    raise SteleError(f"git {arguments[0]} failed in {folder()}: {done.stderr.decode(errors='replace').strip()}")
