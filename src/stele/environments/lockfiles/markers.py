"""Markers: leave out extras and optional groups, and find under which markers a package of a graph is needed."""

import ast
import re
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from packaging.utils import canonicalize_name

MOST_CONDITIONS = 16  # ways to need a package; a package with more is required unconditionally

Node = TypeVar("Node", bound=Hashable)
Edges = list[tuple[str, str]]  # (package, marker)
Conditions = frozenset[frozenset[str]]  # alternatives; each is a set of markers that must all hold


def main_marker(marker: str, groups: Iterable[str] = (), extras: Iterable[str] = ()) -> str | None:
    """Return the marker for an installation with these groups and these extras, whose names are normalized.

    It is empty if it always holds, and None if it never does.
    """
    if not re.search(r"\b(extras?|dependency_groups)\b", marker):
        return marker
    try:
        value = decide(ast.parse(marker.strip(), mode="eval").body, set(groups), set(extras))
    except (SyntaxError, MemoryError):
        return marker  # the requirement with it is refused, with a message
    if isinstance(value, bool):
        return "" if value else None
    return ast.unparse(value)


def decide(node: ast.expr, groups: set[str], extras: set[str]) -> ast.expr | bool:
    """Return a marker with every condition on extras and groups decided. A marker is a Python expression."""
    if isinstance(node, ast.BoolOp):
        decisive = isinstance(node.op, ast.Or)
        values = [decide(value, groups, extras) for value in node.values]
        rest = [value for value in values if not isinstance(value, bool)]
        if decisive in values:
            return decisive
        return ast.BoolOp(node.op, rest) if len(rest) > 1 else rest[0] if rest else not decisive
    words = set(re.findall(r"\w[\w.-]*", ast.unparse(node)))
    if not words & {"extra", "extras", "dependency_groups"} or not isinstance(node, ast.Compare):
        return node
    installed = groups if "dependency_groups" in words else extras
    holds = bool({*words, *map(canonicalize_name, words)} & installed)
    return holds is not isinstance(node.ops[0], (ast.NotEq, ast.NotIn))


def conditions(roots: Iterable[Node], edges: Callable[[Node], Iterable[tuple[Node, str]]]) -> dict[Node, Conditions]:
    """Return under which markers each node is needed, for a graph whose edges (target, marker) have markers."""
    always: Conditions = frozenset([frozenset()])
    needed = dict.fromkeys(roots, always)
    queue = list(needed)
    while queue:
        node = queue.pop()
        for target, marker in edges(node):
            earlier = needed.get(target, frozenset())
            paths = earlier | {path | {marker} if marker else path for path in needed[node]}
            least = frozenset(path for path in paths if not any(other < path for other in paths))
            needed[target] = least if len(least) <= MOST_CONDITIONS else always
            if needed[target] != earlier:
                queue.append(target)
    return needed


def marker_of(paths: Conditions) -> str:
    """Return the conditions as one marker, empty if one of them always holds."""
    return any_of(" and ".join(f"({marker})" for marker in sorted(path)) for path in sorted(paths, key=sorted))


def any_of(markers: Iterable[str]) -> str:
    """Return the disjunction of markers, empty if one is empty or if there are none."""
    markers = list(markers)
    if len(markers) < 2 or not all(markers):
        return "" if "" in markers else "".join(markers)
    return " or ".join(f"({marker})" for marker in markers)


def inherited_markers(dependencies: dict[str, Edges]) -> dict[str, str]:
    """Return the marker of each package in a lock file that states markers only where a package is needed."""
    targets = {target for edges in dependencies.values() for target, _ in edges}
    roots = [name for name in dependencies if name not in targets]
    needed = conditions(roots, lambda name: dependencies.get(name, []))
    return {name: marker_of(needed[name]) if name in needed else "" for name in dependencies}
