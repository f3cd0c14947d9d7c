"""Format single values as text: intervals, rates, sizes, columns and unknown names. Pure functions."""

import difflib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from stele.statistics import Estimate

MIB = 2**20


def milliseconds(seconds: float) -> str:
    """Return a duration, given in seconds, in milliseconds."""
    return figure(seconds * 1e3)


def interval(estimate: Estimate, format_value: Callable[[float], str] = milliseconds) -> str:
    """Return "[low middle high]"; the default ``format_value`` shows seconds as milliseconds."""
    return "[" + " ".join("?" if value is None else format_value(value) for value in estimate) + "]"


def figure(value: float) -> str:
    """Return a number with three significant digits, never with an exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def versions(numbers: dict[str, str | None]) -> str:
    """Return "name version" of the framework and then of its backend."""
    return ", ".join(f"{name} {number}" for name, number in numbers.items() if number)


def or_none(value: Any) -> str:
    """Return ``value`` as text, or "none"."""
    return "none" if value is None else str(value)


def mebibytes(size: int | None) -> str:
    """Return a size, given in bytes, in MiB; empty if it is unknown."""
    return "" if size is None else f"{size / MIB:,.0f} MiB"


def align(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of cells as lines, each column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def unknown_message(kind: str, value: str, names: Iterable[str]) -> str:
    """Return the error message for a ``value`` that is not one of ``names``."""
    names = list(names)
    similar = difflib.get_close_matches(value, names, n=1)
    hint = f"Did you mean {similar[0]!r}?" if similar else f"Known: {', '.join(names)}."
    return f"Unknown {kind} {value!r}. {hint}"
