"""The tables of docs/schemas.md, and the assertion that a document has their keys and types."""

import re

import jsonschema

from stele import documents
from tests.support.pages import ROOT

PAGE = (ROOT / "docs/schemas.md").read_text(encoding="utf-8")


# the page


def rows(document, part=None):
    """Return {key: meaning} of the table of a document, or of the table below the heading ``part`` in it."""
    section = re.split(rf"^## {re.escape(document)}\n", PAGE, flags=re.M)[1].split("\n## ")[0]
    if part is not None:
        section = re.split(rf"^### {re.escape(part)}\n", section, flags=re.M)[1]
    section = section.split("\n### ")[0]
    lines = [line.split("|")[1:-1] for line in section.splitlines() if line.startswith("| `")]
    pairs = [(key, meaning) for keys, _, _, meaning in lines for key in re.findall(r"`([^`]+)`", keys)]
    assert len(dict(pairs)) == len(pairs), f"a key is listed twice in {document}"
    return {key: meaning.strip() for key, meaning in pairs}


def assert_described(content, document, part=None, *, only=()):
    """Assert that the keys are those of the table. Keys that it calls optional have to be in ``only`` if present."""
    table = rows(document, part)
    optional = {key for key, meaning in table.items() if meaning.startswith("Only ")}
    assert set(only) <= optional
    assert set(content) == (set(table) - optional) | set(only)
    validate(content, document, part)


def validate(content, document, part=None):
    """Assert that the values have the types that ``stele schema`` prints."""
    [name] = [name for name, one in documents.documents().items() if one.title == document]
    schema = documents.json_schema(name)
    if part is not None:
        schema = {**schema["$defs"][part], "$defs": schema["$defs"]}
    jsonschema.validate(content, schema)
