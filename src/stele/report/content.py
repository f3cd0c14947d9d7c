"""What a report contains, whatever its format: sentences, and tables of which some have a chart.

A chart is a Vega-Lite description without data. Its data are the rows of its table: the field ``c0`` is the first
column, ``c1`` the second one, and so on. So names in rows are never a part of a chart's description.
"""

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from stele.text import printable

# characters of a text on a page
LONGEST_WORD, LONGEST = 120, 1200


class Link(NamedTuple):
    """A text that leads to another place of a site."""

    text: str
    target: str


Value = str | float | int | Link | None


class Table(NamedTuple):
    """A table. ``name`` is that of its CSV file, and its anchor on a page."""

    name: str
    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[Value]]


# a description in Vega-Lite, without data
Spec = dict[str, Any]


class Chart(NamedTuple):
    """A chart of a table. ``summary`` says what it shows, to those who cannot see it."""

    title: str
    spec: Spec
    summary: str


class Figure(NamedTuple):
    """A table and its charts."""

    table: Table
    charts: Sequence[Chart] = ()


class Section(NamedTuple):
    """A part of a page. ``text`` says how to read it. Many small figures are ``compact``: beside each other."""

    anchor: str
    title: str
    text: str
    figures: Sequence[Figure]
    compact: bool = False


class Remedy(NamedTuple):
    """What to do next, and the command for it."""

    text: str
    command: str | None = None


class Headline(NamedTuple):
    """What is at the top: the verdict and its reason in a sentence, the causes, and what to do."""

    status: str
    title: str
    sentence: str
    causes: Sequence[str]
    remedies: Sequence[Remedy]


class Report(NamedTuple):
    """A page, whatever its format."""

    headline: Headline
    # when and where it was measured
    facts: Sequence[str]
    # what could not be read
    notes: Sequence[str]
    sections: Sequence[Section]
    # how to read its numbers, on an HTML page
    reading: str
    # the page that lists this one
    parent: Link | None = None


def shown(cell: Value) -> str:
    """Return a cell as text: numbers have five significant digits, and an unknown value is empty."""
    if cell is None:
        return ""
    if isinstance(cell, Link):
        return shown(cell.text)
    if isinstance(cell, str):
        return printable(cell, keep="")
    if isinstance(cell, int):
        return str(cell)
    if not math.isfinite(cell):
        return ""
    return f"{cell:.0f}" if abs(cell) >= 10000 else f"{cell:.5g}"


def short(text: str) -> str:
    """Return text in which long words, and then the whole, are cut in the middle: a name may have any length."""
    if len(text) <= LONGEST_WORD:
        return text
    words = "".join(cut(word, LONGEST_WORD) for word in re.split(r"(\s+)", text))
    return cut(words, LONGEST)


def cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: 2 * longest // 3]} … {text[-longest // 4 :]}"


def is_number(cell: Value) -> bool:
    return isinstance(cell, int | float)


def number_columns(table: Table) -> list[bool]:
    """Return, for each column, whether it has numbers and nothing else."""
    columns = zip(*table.rows, strict=True) if table.rows else ([] for _ in table.head)
    kinds = [[is_number(cell) for cell in column if cell is not None] for column in columns]
    return [bool(kind) and all(kind) for kind in kinds]
