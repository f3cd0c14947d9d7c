"""Poetry and pyproject: poetry.lock, and the dependencies in [project] and [tool.poetry] of a pyproject.toml."""

import re
from collections.abc import Iterable
from typing import Any

from packaging.utils import canonicalize_name

from stele.environments.lockfiles.markers import Edges, inherited_markers
from stele.environments.lockfiles.source import PYPI, Lines, Source, Table, parse_requirement


def read_poetry(source: Source, data: Table) -> tuple[Lines, str]:
    """Return the packages of the group main in a poetry.lock. Only its versions from 2.1 on state markers."""
    every = source.items(data, "package", dict)
    chosen = of_extras(source, source.get(data, "extras", dict))
    needed = needed_by(map(name_of, chosen), edges_of(source, every))
    packages = [package for package in every if is_main(source, package, needed)]
    inherited = inherited_markers(edges_of(source, packages))
    states_markers = any("groups" in package for package in packages)
    metadata = source.get(data, "metadata", dict)
    older = source.get(metadata, "files", dict)
    lines: Lines = []
    for package in packages:
        name, version = source.get(package, "name", str), source.get(package, "version", str)
        markers = package.get("markers")
        table = markers if isinstance(markers, dict) else {"main": markers}
        marker = source.get(table, "main", str) if states_markers else inherited[canonicalize_name(name)]
        origin = source.get(package, "source", dict)
        if source.get(origin, "type", str) not in ("directory", "file"):
            lines += source.pin(name, version, marker, url=poetry_url(source, origin))
            registry = source.get(origin, "url", str) if origin.get("type") == "legacy" else PYPI[0]
            files = [*source.items(package, "files", dict), *source.items(older, name, dict)]
            source.origin(name, registry=registry, hashes=[source.get(file, "hash", str) for file in files])
        else:
            source.leave_out(name)
    return lines, poetry_specifier(source.get(metadata, "python-versions", str))


def needed_by(names: Iterable[str], edges: dict[str, Edges]) -> set[str]:
    """Return these packages, and all that they need."""
    needed: set[str] = set()
    queue = list(names)
    while queue:
        name = queue.pop()
        queue += [target for target, _ in edges.get(name, []) if name not in needed]
        needed.add(name)
    return needed


def name_of(line: str) -> str:
    """Return the package of an entry of an extra, such as ``torch (>=2.5,<3)``."""
    return canonicalize_name(re.split(r"[\s(\[<>=!~;]", line)[0])


def is_main(source: Source, package: Table, needed: set[str]) -> bool:
    """Return whether a package belongs to the group main. An optional one belongs to it if an extra needs it."""
    groups = source.items(package, "groups", str) or [source.get(package, "category", str) or "main"]
    name = canonicalize_name(source.get(package, "name", str))
    return "main" in groups and (package.get("optional") is not True or name in needed)


def edges_of(source: Source, packages: list[Table]) -> dict[str, Edges]:
    """Return the dependencies of each package. A package may be locked in several versions."""
    edges: dict[str, Edges] = {}
    for package in packages:
        name = canonicalize_name(source.get(package, "name", str))
        edges[name] = edges.get(name, []) + poetry_edges(source, package)
    return edges


def poetry_edges(source: Source, package: Table) -> Edges:
    """Return (name, marker) of each dependency. One of an extra has no marker: the lock file has it if it is used."""
    edges: Edges = []
    for name, value in source.get(package, "dependencies", dict).items():
        for item in value if isinstance(value, list) else [value]:
            table = item if isinstance(item, dict) else {}
            marker = "" if table.get("optional") else source.get(table, "markers", str)
            edges.append((canonicalize_name(name), marker))
    return edges


def poetry_url(source: Source, origin: Table) -> str:
    """Return the URL of a package that does not come from an index, or an empty text."""
    url, kind = source.get(origin, "url", str), source.get(origin, "type", str)
    if kind == "git":
        return f"git+{url}@{source.get(origin, 'resolved_reference', str)}"
    return url if kind == "url" else ""


def poetry_specifier(text: str) -> str:
    """Return Poetry's notation of versions as a PEP 440 specifier. Of alternatives (||), it is the last."""
    parts = [part.strip() for part in text.split("||")[-1].split(",")]
    return ",".join(poetry_clause(part) for part in parts if part not in ("", "*"))


def poetry_clause(part: str) -> str:
    """Return ">=3.10,<4" for "^3.10", ">=3.10,<3.11" for "~3.10", "==3.10" for "3.10"."""
    match = re.fullmatch(r"([\^~])\s*(\d{1,9}(?:\.\d{1,9})*)", part)
    if match is None:
        return f"=={part}" if part[0].isdigit() else part
    numbers = [int(number) for number in match[2].split(".")]
    first = next((index for index, number in enumerate(numbers) if number), len(numbers) - 1)
    last = first if match[1] == "^" else min(1, len(numbers) - 1)
    upper = [*numbers[:last], numbers[last] + 1]
    return f">={match[2]},<{'.'.join(map(str, upper))}"


def read_pyproject(source: Source, data: Table) -> tuple[Lines, str]:
    """Return the dependencies of a project, in [project] or in [tool.poetry], from where [tool] says."""
    project, tools = source.get(data, "project", dict), source.get(data, "tool", dict)
    uv, tool = source.get(tools, "uv", dict), source.get(tools, "poetry", dict)
    indexes = indexes_of(source, source.items(uv, "index", dict))
    sources: Table = {canonicalize_name(name): value for name, value in source.get(uv, "sources", dict).items()}
    optional = source.get(project, "optional-dependencies", dict)
    lines: Lines = []
    for line in [*source.items(project, "dependencies", str), *of_extras(source, optional)]:
        lines += uv_dependency(source, line, sources, indexes)
    indexes = indexes_of(source, source.items(tool, "source", dict))
    poetry, chosen = (
        source.get(tool, "dependencies", dict),
        of_extras(source, source.get(tool, "extras", dict)),
    )
    for name, value in poetry.items():
        for item in value if isinstance(value, list) else [value]:
            lines += poetry_dependency(source, name, item, chosen, indexes) if name != "python" else []
    python = source.get(project, "requires-python", str)
    return lines, python or poetry_specifier(source.get(poetry, "python", str) if "python" in poetry else "")


def indexes_of(source: Source, tables: list[Table]) -> dict[str, str]:
    """Return the URL of each index by its name, and note those that every package may come from."""
    for table in tables:
        url = source.get(table, "url", str)
        if url and table.get("explicit") is not True and table.get("priority") != "explicit":
            default = table.get("default") is True
            source.notes.options.append(f"--index-url {url}" if default else f"--extra-index-url {url}")
    named = {source.get(table, "name", str): source.get(table, "url", str) for table in tables}
    return {"PyPI": PYPI[0], "pypi": PYPI[0], **named}


def uv_dependency(source: Source, line: str, sources: Table, indexes: dict[str, str]) -> Lines:
    """Return the requirement of an entry in [project], from where [tool.uv.sources] says.

    If a source has a marker, the requirement itself stays for where the marker does not hold.
    """
    try:
        requirement = parse_requirement(line)
    except (ValueError, RecursionError):
        return source.requirement(line)  # refuses it
    value = sources.get(canonicalize_name(requirement.name), [])
    table = {"tool.uv.sources": value if isinstance(value, list) else [value]}
    lines: Lines = []
    whole = True
    for entry in source.items(table, "tool.uv.sources", dict):
        if not selected(source, entry):
            continue
        url, marker = url_of(source, entry), source.get(entry, "marker", str)
        if entry.keys() & {"path", "workspace"}:
            source.leave_out(line)
        elif url:
            markers = " and ".join(f"({part})" for part in (str(requirement.marker or ""), marker) if part)
            extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
            text = f"{requirement.name}{extras} @ {url}"
            lines += source.requirement(f"{text} ; {markers}" if markers else text)
        else:
            index = source.get(entry, "index", str)
            source.origin(requirement.name, registry=indexes.get(index, index))
            continue
        whole = whole and bool(marker)
    return [*lines, *source.requirement(line)] if whole else lines


def selected(source: Source, entry: Table) -> bool:
    """Return whether an entry of [tool.uv.sources] counts: one of an extra or a group only with the extra."""
    extra = source.get(entry, "extra", str)
    return "group" not in entry and (not extra or canonicalize_name(extra) in source.extras)


def url_of(source: Source, entry: Table) -> str:
    """Return the URL from which a table with ``git`` or ``url`` installs, or an empty text."""
    git = source.get(entry, "git", str)
    if not git:
        return source.get(entry, "url", str)
    reference = next((source.get(entry, key, str) for key in ("rev", "tag", "branch") if key in entry), "")
    folder = source.get(entry, "subdirectory", str)
    scheme = "" if git.startswith("git+") else "git+"
    return f"{scheme}{git}{'@' * bool(reference)}{reference}" + (f"#subdirectory={folder}" if folder else "")


def of_extras(source: Source, table: Table) -> list[str]:
    """Return the entries of the selected extras."""
    return [item for key in table if canonicalize_name(key) in source.extras for item in source.items(table, key, str)]


def poetry_dependency(source: Source, name: str, value: Any, chosen: Iterable[str], indexes: dict[str, str]) -> Lines:
    """Return the requirement of an entry in [tool.poetry.dependencies]; an optional one only if it is ``chosen``."""
    table = source.get({name: {"version": value} if isinstance(value, str) else value}, name, dict)
    if table.get("optional") is True and name not in chosen:
        return []
    if "path" in table:
        source.leave_out(name)
        return []
    extras, url = source.items(table, "extras", str), url_of(source, table)
    index = source.get(table, "source", str)
    source.origin(name, registry=indexes.get(index, index))
    text = name + (f"[{','.join(extras)}]" if extras else "")
    text += f" @ {url}" if url else poetry_specifier(source.get(table, "version", str))
    marker = source.get(table, "markers", str)
    return source.requirement(f"{text} ; {marker}" if marker else text)
