"""The JSON documents that Stele writes, as documents.toml describes them: as a page, and as JSON Schema.

JSON Schema: https://json-schema.org/draft/2020-12.
"""

import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from stele import files
from stele.errors import SteleError
from stele.text import unknown_message

FILE = Path(__file__).with_name("documents.toml")
DIALECT = "https://json-schema.org/draft/2020-12/schema"
OPTIONAL = "Only "  # how the meaning of a key begins that is not always there
REFERENCE = re.compile(r"see \*([^*]+)\*")
TYPES = {
    "string": "string",
    "number": "number",
    "integer": "integer",
    "boolean": "boolean",
    "object": "object",
}
ITEMS = {"array of objects": "object", "array of strings": "string", "array of two strings": "string"}
ITEMS |= {"array of numbers": "number", "array of integers": "integer", "array of arrays": "array"}


class Key(NamedTuple):
    names: tuple[str, ...]
    type: str  # such as "number or null"; empty for any
    unit: str
    meaning: str  # Markdown

    @property
    def optional(self) -> bool:
        return self.meaning.startswith(OPTIONAL)


class Part(NamedTuple):
    """A table of keys. A document has a first one, and one for each kind of object in it."""

    title: str
    text: str
    keys: tuple[Key, ...]
    after: str


class Document(NamedTuple):
    first: Part
    parts: tuple[Part, ...]
    lines: bool  # a file of JSON lines, each of which is one of the parts

    @property
    def name(self) -> str:
        """The name on the command line, such as ``time-to-accuracy``."""
        return self.first.title.removeprefix("stele ").removesuffix(" --json").lower().replace(" ", "-")


@functools.cache
def content() -> dict[str, Any]:
    return files.parse_toml(FILE.read_text(encoding="utf-8"))


@functools.cache
def documents() -> dict[str, Document]:
    """Return the documents by their names on the command line."""
    listed = [
        Document(part(one), tuple(map(part, one.get("parts", []))), one.get("lines", False))
        for one in content()["documents"]
    ]
    return {one.name: one for one in listed}


def part(entry: dict[str, Any]) -> Part:
    keys = tuple(
        Key(tuple(re.findall("`([^`]+)`", names)), *facts) for names, *facts in entry.get("keys", [])
    )
    return Part(entry["title"], entry.get("text", ""), keys, entry.get("after", ""))


def page() -> str:
    """Return docs/schemas.md."""
    blocks = ["# JSON documents", content()["about"]]
    for document in documents().values():
        blocks += [*blocks_of("## ", document.first)]
        for one in document.parts:
            blocks += blocks_of("### ", one)
    return "\n\n".join(block.strip() for block in [*blocks, content()["end"]]) + "\n"


def blocks_of(heading: str, one: Part) -> Iterator[str]:
    rows = [
        "".join(f"| {text} " if text else "| " for text in (names_of(key), *key[1:])) + "|"
        for key in one.keys
    ]
    table = "\n".join(["| key | type | unit | meaning |", "| --- | --- | --- | --- |", *rows])
    yield "\n".join([heading + one.title, one.text.strip()]).strip()
    yield from filter(None, [table if rows else "", one.after])


def names_of(key: Key) -> str:
    return ", ".join(f"`{name}`" for name in key.names)


def json_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a document. Raises SteleError, with the nearest name, if there is none."""
    if name not in documents():
        raise SteleError(unknown_message("document", name, documents()))
    document = documents()[name]
    definitions = {one.title: schema_of(one, document) for one in document.parts}
    whole = schema_of(document.first, document)
    if document.lines:
        lines = [{"$ref": f"#/$defs/{one.title}"} for one in document.parts if "key" in names_in(one)]
        whole = {"anyOf": [whole, *lines]}
    text = json.dumps([whole, definitions])
    definitions |= {
        title: schema_of(one.first, one) for title, one in titles().items() if f'$defs/{title}"' in text
    }
    return {"$schema": DIALECT, "title": document.first.title, **whole, "$defs": definitions}


def titles() -> dict[str, Document]:
    """Return the documents that others refer to by their title, and that have no parts of their own."""
    return {one.first.title: one for one in documents().values() if not one.parts}


def names_in(one: Part) -> list[str]:
    return [name for key in one.keys for name in key.names]


def schema_of(one: Part, document: Document) -> dict[str, Any]:
    parts = {part.title for part in document.parts}
    properties = {name: property_of(name, key, parts) for key in one.keys for name in key.names}
    required = [name for key in one.keys if not key.optional for name in key.names]
    return {"type": "object", "properties": properties, "required": required}


def property_of(name: str, key: Key, parts: set[str]) -> dict[str, Any]:
    """Return the schema of a key: its type, its meaning, and what its objects are, if that is described."""
    facts: dict[str, Any] = {"description": key.meaning + (f"; unit: {key.unit}" if key.unit else "")}
    kind = key.type.removesuffix(" or null")
    if name == "schema":
        return {**facts, "const": 1}
    if kind:
        types = [TYPES.get(kind, "array"), *(["null"] if kind != key.type else [])]
        facts["type"] = types if len(types) > 1 else types[0]
    referred = [title for title in REFERENCE.findall(key.meaning) if title in titles()]
    target = name if name in parts else referred[0] if referred else None
    if kind in ITEMS:
        facts["items"] = {"$ref": f"#/$defs/{target}"} if target else {"type": ITEMS[kind]}
    elif target and key.type == "object":
        facts |= values_of({"$ref": f"#/$defs/{target}"}, key.meaning)
    return facts


def values_of(schema: dict[str, Any], meaning: str) -> dict[str, Any]:
    """Return the schema of an object: of itself, or of its values, as in "by task, then scale: see below"."""
    if not meaning.startswith("by "):
        return {"allOf": [schema]}
    for _ in meaning.split(", then ")[1:]:
        schema = {"type": "object", "additionalProperties": schema}
    return {"additionalProperties": schema}
