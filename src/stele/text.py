"""Single values as text for people: intervals, rates, sizes, and columns. Pure functions."""

from collections.abc import Callable, Sequence
from typing import Any

from stele.statistics import Estimate

MIB = 2**20


def milliseconds(seconds: float) -> str:
    return figure(seconds * 1e3)


def interval(step: Estimate, shown: Callable[[float], str] = milliseconds) -> str:
    """[low middle high], seconds shown as milliseconds unless told otherwise."""
    return "[" + " ".join("?" if value is None else shown(value) for value in step) + "]"


def figure(value: float) -> str:
    """Three significant digits, never an exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def releases(versions: dict[str, str | None]) -> str:
    """What computes: the framework, and its backend after it."""
    return ", ".join(f"{name} {number}" for name, number in versions.items() if number)


def or_none(value: Any) -> str:
    return "none" if value is None else str(value)


def mebibytes(count: int | None) -> str:
    return "" if count is None else f"{count / MIB:,.0f} MiB"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as lines, every column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
