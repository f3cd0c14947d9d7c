"""The schema number of all files that programs read, and the types of their values.

Every JSON document that Stele writes has ``"schema": 1``; docs/schemas.md describes each of them.
"""

import functools
import json
import math
import reprlib
import types
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypedDict, get_args, get_origin, get_type_hints, is_typeddict

from stele import files

SCHEMA = 1

NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "text", dict: "an object"}
NAMES |= {list: "a list", tuple: "a list", type(None): "null"}
LARGEST = 2**63  # of a whole number: a larger one is no count, and cannot be converted to a float

Content = dict[str, Any]


def parse(text: str | bytes) -> Any:
    """Return the value of a JSON text. Raises ValueError if it is not JSON, or nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read(path: Path) -> Any:
    """Return the content of a JSON file. Raises OSError, or ValueError if it is not JSON in UTF-8."""
    return parse(files.read_bytes(path))


def check(value: Any, kind: Any, place: str) -> None:
    """Raise ValueError, which names the place, if a JSON value is not of a type such as ``dict[str, float | None]``.

    An int is a float. A TypedDict is a dict that may have other keys, too. Numbers must be finite.
    """
    if isinstance(kind, types.UnionType):
        kind = type(None) if value is None else next(one for one in get_args(kind) if one is not type(None))
    if is_typeddict(kind):
        check_fields(value, kind, place)
        return
    container, of_items = parts(kind)
    if not is_a(value, container):
        raise ValueError(f"{place} is {reprlib.repr(value)}, expected {NAMES.get(container, kind)}")
    if of_items is not Any and not is_list_of_floats(value, of_items):
        for name, item in items(value):
            check(item, of_items, f"{place}[{name!r}]")


@functools.cache
def parts(kind: Any) -> tuple[Any, Any]:
    """Return the type itself or its container, and the type of the items; Any if every item is right."""
    of_items = [item for item in get_args(kind) if item is not ...]
    return get_origin(kind) or kind, of_items[-1] if of_items else Any


def check_fields(value: Any, kind: type, place: str = "it") -> None:
    """Raise ValueError if a dict does not have the fields of a class, with values of their types."""
    check(value, dict, place)
    for name, of_field in type_hints(kind).items():
        if name in value:
            check(value[name], of_field, name if place == "it" else f"{place}.{name}")
        elif name in getattr(kind, "__required_keys__", ()):
            raise ValueError(f"{place} has no {name!r}")


type_hints = functools.cache(get_type_hints)  # a store may have many thousand Runs


def is_list_of_floats(value: Any, kind: Any) -> bool:
    """Return whether all items are finite floats, and may be. Durations and losses are long lists, so this is fast."""
    if not isinstance(value, (list, tuple)) or kind not in (float, float | None):
        return False
    return set(map(type, value)) <= {float} and all(map(math.isfinite, value))


def is_a(value: Any, kind: Any) -> bool:
    """Return whether a JSON value is of a simple type or a container."""
    if kind is Any:
        return True
    if isinstance(value, bool) or kind is bool:
        return isinstance(value, bool) and kind is bool
    if isinstance(value, int):
        return kind in (int, float) and abs(value) < LARGEST
    if isinstance(value, float):
        return kind is float and math.isfinite(value)
    return isinstance(value, (list, tuple) if kind in (list, tuple) else kind)


def items(value: Any) -> Iterable[tuple[Any, Any]]:
    """Return (key, item) of a dict, or (index, item) of a list."""
    return value.items() if isinstance(value, dict) else enumerate(value)


def wrap(content: Mapping[str, Any]) -> Content:
    """Return the content with the schema number as its first key."""
    return {"schema": SCHEMA, **content}


def unwrap(content: Any) -> Content:
    """Return the content without the schema number.

    Raises ValueError for another schema, and for content that is not a JSON object.
    """
    if not isinstance(content, dict):
        raise ValueError("it is not a JSON object")
    rest = dict(content)
    number = rest.pop("schema", None)
    if number != SCHEMA:
        problem = "it has no schema number" if number is None else f"schema {number} is not supported"
        raise ValueError(f"{problem}; this version reads schema {SCHEMA}")
    return rest


def ladder_file(content: Any) -> Content:
    """Return the content of a file that ``stele parity --json`` wrote. Raises ValueError if it is not one."""
    rest = unwrap(content)
    check(rest, LadderFile, "it")
    return rest


class RecipeFacts(TypedDict):
    """The result of one recipe in a file of ``stele parity --json``."""

    framework: str
    task: str
    day: str
    versions: dict[str, str | None]
    rungs: list[dict[str, Any]]


class LadderFile(TypedDict):
    """The content of a file of ``stele parity --json``."""

    settings: dict[str, Any]
    recipes: list[RecipeFacts]
