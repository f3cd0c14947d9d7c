"""The lock files of uv, pylock (PEP 751), PDM and Pipenv, without optional groups, and with the selected extras."""

import dataclasses
from collections import defaultdict
from collections.abc import Iterator

from packaging.pylock import Pylock, PylockValidationError
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from stele.environments.lockfiles.markers import (
    Edges,
    any_of,
    conditions,
    inherited_markers,
    main_marker,
    marker_of,
)
from stele.environments.lockfiles.source import Lines, Source, Table

LOCAL = ("editable", "virtual", "directory")  # sources of uv: a project of the workspace, or another folder


def read_uv(source: Source, data: Table) -> tuple[Lines, str]:
    """Return the packages that the members of a workspace need. Each package has the markers of its dependents."""
    packages = source.items(data, "package", dict)
    origins = [source.get(package, "source", dict) for package in packages]
    indices = defaultdict(list)
    for index, package in enumerate(packages):
        indices[source.get(package, "name", str)].append(index)

    def targets(edge: Table) -> Iterator[tuple[int, str]]:
        for index in indices[source.get(edge, "name", str)]:
            if all(edge[key] == packages[index].get(key) for key in ("version", "source") if key in edge):
                yield from ((index, extra) for extra in ("", *source.items(edge, "extra", str)))

    names = {source.get(package, "name", str) for package in packages}
    # in the markers of extras that are in conflict, uv writes an extra with the length of its package's name
    written = {f"extra-{len(name)}-{name}-{extra}" for name in names for extra in source.extras}
    source = dataclasses.replace(source, extras=source.extras | written)

    def edges(node: tuple[int, str]) -> Iterator[tuple[tuple[int, str], str]]:
        index, extra = node
        table = source.get(packages[index], "optional-dependencies", dict) if extra else packages[index]
        for edge in source.items(table, extra or "dependencies", dict):
            marker = main_marker(source.get(edge, "marker", str), extras=source.extras)
            yield from ((target, marker) for target in targets(edge) if marker is not None)

    roots = [(index, "") for index, origin in enumerate(origins) if origin.keys() & {"editable", "virtual"}]
    roots += [(index, extra) for index, _ in roots for extra in source.extras]
    manifest = source.get(data, "manifest", dict)  # of a script with a lock file
    script = source.items(manifest, "requirements", dict)
    roots = roots or [target for entry in script for target in targets({"name": entry.get("name")})]
    needed = conditions(roots or [(index, "") for index in range(len(packages))], edges)
    lines: Lines = []
    for index, (package, origin) in enumerate(zip(packages, origins, strict=True)):
        if (index, "") in needed and origin.keys() & {"directory", "path"}:
            source.leave_out(source.get(package, "name", str))
        elif (index, "") in needed and not origin.keys() & {"editable", "virtual"}:
            forks = any_of(source.items(package, "resolution-markers", str))
            markers = [f"({marker})" for marker in (marker_of(needed[index, ""]), forks) if marker]
            name, version = source.get(package, "name", str), source.get(package, "version", str)
            lines += source.pin(name, version, " and ".join(markers), url=uv_url(source, origin))
            source.origin(name, registry=source.get(origin, "registry", str), hashes=hashes_of(source, package))
    source.notes.members += [source.get(origin, key, str) for origin in origins for key in LOCAL if key in origin]
    return lines, source.get(data, "requires-python", str)


def hashes_of(source: Source, package: Table) -> Iterator[str]:
    """Yield the hash of each file of a package, empty if it has none; the key is ``hash`` or ``hashes``."""
    archive = [package[key] for key in ("sdist", "archive") if isinstance(package.get(key), dict)]
    for file in (*archive, *source.items(package, "wheels", dict), *source.items(package, "files", dict)):
        if "hashes" in file:
            yield from (f"{kind}:{text}" for kind, text in source.get(file, "hashes", dict).items())
        else:
            yield source.get(file, "hash", str)


def uv_url(source: Source, origin: Table) -> str:
    """Return the URL of a package that does not come from an index, or an empty text."""
    url, _, commit = source.get(origin, "git", str).partition("#")
    return f"git+{url.partition('?')[0]}@{commit}" if url else source.get(origin, "url", str)


def read_pylock(source: Source, data: Table) -> tuple[Lines, str]:
    """Return the packages of the default groups in a pylock.toml. Raises ValueError if it is not as PEP 751 says."""
    try:
        lock = Pylock.from_dict(data)
    except PylockValidationError as error:
        [problem, *_] = error.message.splitlines()
        raise ValueError(f"{error.context}: {problem}" if error.context else problem) from None
    lines: Lines = []
    for package in lock.packages:
        vcs, archive = package.vcs, package.archive
        url = vcs.url if vcs else archive.url if archive else None
        if package.directory or ((vcs or archive) and not url):
            source.leave_out(package.name)
            continue
        if vcs:
            url = f"{vcs.type}+{url}@{vcs.commit_id}"
        version, marker = str(package.version or ""), str(package.marker or "")
        lines += source.pin(package.name, version, marker, url=url or "", groups=lock.default_groups or ())
        archives = [each.hashes for each in (*(package.wheels or ()), package.sdist, archive) if each is not None]
        hashes = [f"{kind}:{digest}" for allowed in archives for kind, digest in allowed.items()]
        source.origin(package.name, registry=package.index or "", hashes=hashes)
    return lines, str(lock.requires_python or "")


def read_pdm(source: Source, data: Table) -> tuple[Lines, str]:
    """Return the packages of the group default in a pdm.lock."""
    packages = [
        package
        for package in source.items(data, "package", dict)
        if {"default", *source.extras} & {*(source.items(package, "groups", str) or ["default"])}
    ]
    edges: dict[str, Edges] = defaultdict(list)
    for package in packages:
        needs = [Requirement(line) for line in source.items(package, "dependencies", str)]
        edges[canonicalize_name(source.get(package, "name", str))] += [
            (canonicalize_name(need.name), str(need.marker or "")) for need in needs
        ]
    inherited = {} if any("groups" in package for package in packages) else inherited_markers(edges)
    lines: Lines = []
    for package in packages:
        name, version = source.get(package, "name", str), source.get(package, "version", str)
        git, url = source.get(package, "git", str), source.get(package, "url", str)
        url = f"git+{git}@{source.get(package, 'revision', str)}" if git else url
        if package.keys() & {"path", "editable"}:
            source.leave_out(name)
        else:
            marker = source.get(package, "marker", str) or inherited.get(canonicalize_name(name), "")
            lines += source.pin(name, version, marker, url=url)
            source.origin(name, hashes=hashes_of(source, package))
    targets = source.items(source.get(data, "metadata", dict), "targets", dict)
    return lines, source.get(targets[0], "requires_python", str) if len(targets) == 1 else ""


def read_pipfile(source: Source, data: Table) -> tuple[Lines, str]:
    """Return the default packages of a Pipfile.lock."""
    lines: Lines = []
    packages = source.get(data, "default", dict)
    meta = source.get(data, "_meta", dict)
    indexes = {
        source.get(table, "name", str): source.get(table, "url", str) for table in source.items(meta, "sources", dict)
    }
    for name in packages:
        package = source.get(packages, name, dict)
        if package.keys() & {"path", "editable"}:
            source.leave_out(name)
            continue
        git, version = source.get(package, "git", str), source.get(package, "version", str)
        url = f"git+{git}@{source.get(package, 'ref', str)}" if git else source.get(package, "file", str)
        version = version.removeprefix("==").replace("*", "")
        lines += source.pin(name, version, source.get(package, "markers", str), url=url)
        registry = indexes.get(source.get(package, "index", str), "")
        source.origin(name, registry=registry, hashes=source.items(package, "hashes", str))
    requires = source.get(meta, "requires", dict)
    full, short = (source.get(requires, key, str) for key in ("python_full_version", "python_version"))
    return lines, f"=={full}" if full else f"=={short}.*" if short else ""
