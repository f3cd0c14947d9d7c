"""The schema number of everything that programs read, and the conversion of files from before it existed.

Every JSON document that Stele writes has ``"schema": 1``; docs/schemas.md describes each of them. Before 2026-11-22
some files had ``"format"``, some had no number, and several keys had other names. The functions here take the content
of such a file and return it as it is written today. They change nothing in content that is already current.
"""

from collections.abc import Mapping
from typing import Any

SCHEMA = 1
KEYS = {"word": "status", "sentence": "message"}
STATUSES = {"holds": "agrees", "breaks": "differs"}  # of a rung
TITLES = {"moves": "updates"}  # of a rung

Content = dict[str, Any]


def stamped(content: Mapping[str, Any]) -> Content:
    """Return the content with its schema number in front."""
    return {"schema": SCHEMA, **content}


def unwrapped(content: Any, *, formats: tuple[int, ...] = ()) -> Content:
    """Return the content without its schema number.

    ``formats`` are the values of ``"format"`` that older files had. Raises ValueError for another schema, another
    format, or for something that is not a JSON object.
    """
    if not isinstance(content, dict):
        raise ValueError("it is not a JSON object")
    rest = dict(content)
    schema, form = rest.pop("schema", None), rest.pop("format", None)
    if schema is None and (form in formats or (form is None and not formats)):
        return rest
    if schema != SCHEMA:
        found = (
            "a missing schema" if schema is form is None else f"schema {form if schema is None else schema}"
        )
        raise ValueError(f"{found} cannot be read; this version reads schema {SCHEMA}")
    return rest


def finding(values: Mapping[str, Any]) -> Content:
    """Return a rung's finding with today's keys, statuses and title."""
    renamed = {KEYS.get(key, key): value for key, value in values.items()}
    renamed["status"] = STATUSES.get(renamed["status"], renamed["status"])
    if "title" in renamed:
        renamed["title"] = TITLES.get(renamed["title"], renamed["title"])
    return renamed


def ladder_file(content: Any) -> Content:
    """Return what ``stele parity --json`` wrote."""
    rest = unwrapped(content)
    recipes = [{**one, "rungs": [finding(rung) for rung in one["rungs"]]} for one in rest["recipes"]]
    return {**rest, "recipes": recipes}


def golden_numbers(content: Any) -> Content:
    """Return golden numbers; ``moves`` became ``updates``."""
    return {TITLES.get(key, key): value for key, value in unwrapped(content).items()}


def gate_entry(entry: Content) -> Content:
    """Return one line of a gate's record; the second arm of OLD was called ``again``."""
    renamed = dict(entry)
    for field in ("runs", "failures"):
        if isinstance(renamed.get(field), dict):
            renamed[field] = {
                {"again": "control"}.get(arm, arm): value for arm, value in renamed[field].items()
            }
    if "findings" in renamed:
        renamed["findings"] = [finding(one) for one in renamed["findings"]]
    return renamed
