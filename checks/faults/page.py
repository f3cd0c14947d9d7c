"""docs/results/faults.md: a table for each group, from the stored results."""

import platform
from pathlib import Path

from stele.report import page
from stele.report.markdown import escape

PAGE = Path(__file__).parents[2] / "docs" / "results" / "faults.md"
HEAD = (
    "fault",
    "result",
    "what the user sees",
    "exit",
    "kept",
    "processes, temporary files left",
    "next run",
)


def write(groups, rows):
    """Write the page. ``groups`` are the titles of the groups by name."""
    parts = [summary(rows)]
    for name, title in groups.items():
        parts += [f"## {name}", title, table([row for row in rows if row.group == name])]
    page.fill(PAGE, "\n\n".join(parts))


def summary(rows):
    counts = {status: sum(row.status == status for row in rows) for status in ("passed", "failed", "not run")}
    minutes = sum(row.seconds for row in rows) / 60
    numbers = ", ".join(f"{count} {status}" for status, count in counts.items())
    return (
        f"{len(rows)} faults: {numbers}. {minutes:.0f} minutes, Python {platform.python_version()}, "
        f"{platform.system()} {platform.machine()}."
    )


def table(rows):
    """Return the table of a group, and below it what violated a requirement."""
    lines = [page.table(HEAD, [cells(row) for row in rows], escape=escape_all)]
    lines += [f"- {row.fault}: {escape_all(problem)}" for row in rows for problem in row.problems]
    return "\n\n".join([lines[0], "\n".join(lines[1:])] if lines[1:] else lines)


def escape_all(text):
    """Return text in which neither Markdown nor a program that searches for links finds a link."""
    return escape(text).replace("](", "]\\(")


def cells(row):
    message = "; ".join([row.message, *row.figures]) if row.figures else row.message
    left = f"{row.processes}, {row.folders}"
    code = "" if row.code is None else str(row.code)
    return [row.title, row.status, message, code, row.kept, left, row.next]
