"""Poetry and pyproject: poetry.lock, and the dependencies in [project] and [tool.poetry] of a pyproject.toml."""

import re
from typing import Any

from packaging.utils import canonicalize_name

from stele.environments.lockfiles.markers import Edges, inherited_markers
from stele.environments.lockfiles.source import Lines, Source, Table


def read_poetry(source: Source, data: Table) -> tuple[Lines, str]:
    """Return the packages of the group main in a poetry.lock. Only its versions from 2.1 on state markers."""
    packages = [package for package in source.items(data, "package", dict) if is_main(source, package)]
    edges: dict[str, Edges] = {
        canonicalize_name(source.get(package, "name", str)): poetry_edges(source, package)
        for package in packages
    }
    inherited = inherited_markers(edges)
    states_markers = any("groups" in package for package in packages)
    lines: Lines = []
    for package in packages:
        name, version = source.get(package, "name", str), source.get(package, "version", str)
        markers = package.get("markers")
        table = markers if isinstance(markers, dict) else {"main": markers}
        marker = source.get(table, "main", str) if states_markers else inherited[canonicalize_name(name)]
        origin = source.get(package, "source", dict)
        if source.get(origin, "type", str) not in ("directory", "file"):
            lines += source.pin(name, version, marker, url=poetry_url(source, origin))
    python = source.get(source.get(data, "metadata", dict), "python-versions", str)
    return lines, poetry_specifier(python)


def is_main(source: Source, package: Table) -> bool:
    """Return whether a package of a poetry.lock belongs to the group main and to no extra."""
    groups = source.items(package, "groups", str) or [source.get(package, "category", str) or "main"]
    return "main" in groups and package.get("optional") is not True


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
    """Return the dependencies of a project, in [project] or in [tool.poetry]."""
    project = source.get(data, "project", dict)
    lines: Lines = []
    for line in source.items(project, "dependencies", str):
        lines += source.requirement(line)
    poetry = source.get(source.get(source.get(data, "tool", dict), "poetry", dict), "dependencies", dict)
    for name, value in poetry.items():
        for item in value if isinstance(value, list) else [value]:
            lines += poetry_dependency(source, name, item) if name != "python" else []
    python = source.get(project, "requires-python", str)
    return lines, python or poetry_specifier(source.get(poetry, "python", str) if "python" in poetry else "")


def poetry_dependency(source: Source, name: str, value: Any) -> Lines:
    """Return the requirement of an entry in [tool.poetry.dependencies]."""
    table = source.get({name: {"version": value} if isinstance(value, str) else value}, name, dict)
    if table.get("optional") is True or "path" in table:
        return []
    extras, git = source.items(table, "extras", str), source.get(table, "git", str)
    reference = next((source.get(table, key, str) for key in ("rev", "tag", "branch") if key in table), "")
    url = f"git+{git}{'@' * bool(reference)}{reference}" if git else source.get(table, "url", str)
    text = name + (f"[{','.join(extras)}]" if extras else "")
    text += f" @ {url}" if url else poetry_specifier(source.get(table, "version", str))
    marker = source.get(table, "markers", str)
    return source.requirement(f"{text} ; {marker}" if marker else text)
