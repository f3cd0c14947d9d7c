"""A report as lines of a terminal, folded to its width."""

import textwrap
from collections.abc import Iterator

from stele.report.content import Report, Table, shown
from stele.text import align, printable

# columns; a narrower terminal folds the lines itself
NARROWEST = 20
SECTIONS = ("verdicts", "suite")
# the others are in the files
COLUMNS = {
    "verdict",
    "cell",
    "metric",
    "NEW / OLD",
    "in words",
    "environment",
    "ms/step",
    "samples/s",
    "first step, s",
    "memory, MiB",
}


def lines(report: Report, width: int) -> Iterator[str]:
    """Yield the summary, the checks or results, and where they were measured."""
    top, width = report.headline, max(width, NARROWEST)
    yield from folded(f"{top.status}: {top.sentence}" if top.status else top.sentence, width)
    for cause in top.causes:
        yield from folded(cause, width, "- ")
    for remedy in top.remedies:
        yield from folded(" ".join(filter(None, remedy)), width, "> ")
    for section in report.sections:
        for figure in section.figures if section.anchor in SECTIONS else ():
            yield ""
            yield from folded(f"{figure.table.title}:", width)
            yield from short_table(figure.table, width)
    for fact in report.facts:
        yield ""
        yield from folded(fact, width)


def short_table(table: Table, width: int) -> Iterator[str]:
    """Yield aligned rows if they fit the width, and else each row folded."""
    columns = [number for number, title in enumerate(table.head) if title in COLUMNS]
    rows = [[shown(row[number]) for number in columns] for row in table.rows]
    aligned = align([[table.head[number] for number in columns], *rows])
    if max(map(len, aligned)) <= width:
        yield from aligned
        return
    for row in rows:
        yield from folded("  ".join(filter(None, row)), width)


def folded(text: str, width: int, start: str = "") -> list[str]:
    clean, after = printable(text, keep=""), " " * len(start)
    return textwrap.wrap(clean, width, initial_indent=start, subsequent_indent=after, break_on_hyphens=False)
