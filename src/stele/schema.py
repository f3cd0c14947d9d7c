"""The schema number of all files that programs read, and the conversion of older files.

Every JSON document that Stele writes has ``"schema": 1``; docs/schemas.md describes each of them. Before 2026-11-22
some files had ``"format"``, some had no number, and several keys had other names. The functions here take the content
of such a file and return it in the current format. They do not change content that is already current.
"""

from collections.abc import Mapping
from typing import Any

SCHEMA = 1
KEYS = {"word": "status", "sentence": "message"}
STATUSES = {"holds": "agrees", "breaks": "differs"}  # of a rung
TITLES = {"moves": "updates"}  # of a rung

Content = dict[str, Any]


def wrap(content: Mapping[str, Any]) -> Content:
    """Return the content with the schema number as its first key."""
    return {"schema": SCHEMA, **content}


def unwrap(content: Any, *, formats: tuple[int, ...] = ()) -> Content:
    """Return the content without the schema number.

    ``formats`` are the accepted values of ``"format"`` in older files. Raises ValueError for an unknown schema or
    format, and for content that is not a JSON object.
    """
    if not isinstance(content, dict):
        raise ValueError("it is not a JSON object")
    rest = dict(content)
    schema, form = rest.pop("schema", None), rest.pop("format", None)
    if schema is None and (form in formats or (form is None and not formats)):
        return rest
    if schema != SCHEMA:
        number = form if schema is None else schema
        problem = "it has no schema number" if number is None else f"schema {number} is not supported"
        raise ValueError(f"{problem}; this version reads schema {SCHEMA}")
    return rest


def convert_finding(values: Mapping[str, Any]) -> Content:
    """Return the finding of a rung with the current keys, status and title."""
    renamed = {KEYS.get(key, key): value for key, value in values.items()}
    renamed["status"] = STATUSES.get(renamed["status"], renamed["status"])
    if "title" in renamed:
        renamed["title"] = TITLES.get(renamed["title"], renamed["title"])
    return renamed


def convert_ladder_file(content: Any) -> Content:
    """Return the content of a file that ``stele parity --json`` wrote."""
    rest = unwrap(content)
    recipes = [
        {**recipe, "rungs": [convert_finding(rung) for rung in recipe["rungs"]]} for recipe in rest["recipes"]
    ]
    return {**rest, "recipes": recipes}


def convert_golden_numbers(content: Any) -> Content:
    """Return golden numbers; the key ``moves`` became ``updates``."""
    return {TITLES.get(key, key): value for key, value in unwrap(content).items()}


def convert_gate_entry(entry: Content) -> Content:
    """Return a line of a gate record; the control was called ``again``."""
    renamed = dict(entry)
    for field in ("runs", "failures"):
        if isinstance(renamed.get(field), dict):
            renamed[field] = {
                {"again": "control"}.get(arm, arm): value for arm, value in renamed[field].items()
            }
    if "findings" in renamed:
        renamed["findings"] = [convert_finding(finding) for finding in renamed["findings"]]
    return renamed
