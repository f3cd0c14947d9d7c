"""The extras that a lock file or a project declares, and an error for one that it does not declare."""

from packaging.utils import canonicalize_name

from stele.environments.lockfiles.source import Source, Table


def check_extras(source: Source, kind: str, data: Table) -> None:
    """Raise SteleError, with the extras that there are, for an extra that the file does not declare."""
    if not source.extras or source.lenient:
        return
    declared = sorted(map(canonicalize_name, declared_extras(source, kind, data)))
    unknown = ", ".join(repr(name) for name in sorted(source.extras.difference(declared)))
    if unknown:
        advice = f"It has: {', '.join(declared)}." if declared else "It has none. Leave --extra out."
        raise source.error(f"has no extra {unknown}. {advice}")


def declared_extras(source: Source, kind: str, data: Table) -> list[str]:
    """Return the extras of the project; PDM stores them as groups."""
    if kind == "uv":
        packages = source.items(data, "package", dict)
        return [extra for package in packages for extra in source.get(package, "optional-dependencies", dict)]
    if kind == "pdm":
        groups = source.items(source.get(data, "metadata", dict), "groups", str)
        return [group for group in groups if group != "default"]
    if kind == "pylock":
        return source.items(data, "extras", str)
    if kind in ("setup.cfg", "setup.py"):
        return list(source.get(data, "extras_require", dict))
    if kind == "poetry":
        return list(source.get(data, "extras", dict))
    project, tool = source.get(data, "project", dict), source.get(data, "tool", dict)
    poetry = source.get(source.get(tool, "poetry", dict), "extras", dict)
    return [*source.get(project, "optional-dependencies", dict), *poetry]
