"""Where JSON becomes values, and values become JSON; and the schema number of all files that programs read.

Every JSON document that Stele writes has ``"schema": 1``. The type of a document is its only definition: it checks what
is read, and docs/schemas.md and ``stele schema`` are made of it.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import msgspec

from stele import files

SCHEMA = 1

Content = dict[str, Any]
Kind = TypeVar("Kind")


def about(description: str, unit: str = "") -> msgspec.Meta:
    """Return what the documentation says about a key: Markdown, and the unit of its numbers."""
    return msgspec.Meta(description=description, extra_json_schema={"unit": unit} if unit else None)


def parse(text: str | bytes) -> Any:
    """Return the value of a JSON text. Raises ValueError if it is not JSON, or nested too deeply."""
    try:
        return msgspec.json.decode(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read(path: Path) -> Any:
    """Return the content of a JSON file. Raises OSError, or ValueError if it is not JSON in UTF-8."""
    return parse(files.read_bytes(path))


def read_with_nan(path: Path) -> Any:
    """Return the content of a JSON file that another program wrote with NaN as a number, as asv does.

    Raises OSError or ValueError, as ``read`` does.
    """
    try:
        return json.loads(files.read_bytes(path))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def convert(value: Any, kind: type[Kind]) -> Kind:
    """Return a JSON value as an instance of a type. Keys that the type does not have are left out.

    Raises ValueError, which names the place, if it is not one, and what the type itself raises.
    """
    return msgspec.convert(value, kind)


def to_json(value: Any) -> Any:
    """Return what ``parse`` reads of a value that was written: a dict, list, text, number, boolean or None."""
    return msgspec.json.decode(encode(value))


def encode(value: Any) -> str:
    """Return a value as one line of JSON, without a newline. Numbers of NumPy are numbers; not finite ones are null."""
    return msgspec.json.encode(value, enc_hook=from_numpy).decode()


def from_numpy(value: Any) -> Any:
    """Return a number of NumPy as one of Python. Raises NotImplementedError for another object."""
    if hasattr(value, "item"):
        return value.item()
    raise NotImplementedError(f"{type(value)} has no JSON")


def document(content: Any) -> str:
    """Return the text of a file with a JSON document, which gets its schema number."""
    return msgspec.json.format(encode(wrap(to_json(content))), indent=1) + "\n"


def of_document(content: Any, kind: type[Kind]) -> Kind:
    """Return the content of a file as an instance of its type.

    Raises ValueError, which names the place, if it has another schema number, or is not one.
    """
    return convert(unwrap(content), kind)


def check_keys(values: Mapping[str, Any], kind: type) -> None:
    """Raise ValueError, which names the key, if a value does not have the type of the field of a class.

    Keys may be missing.
    """
    for name, expected in get_type_hints(kind).items():
        if name in values:
            try:
                msgspec.convert(values[name], expected)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None


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
