"""The lines over releases and their steps as Markdown. Returns text, prints nothing."""

from collections.abc import Sequence
from pathlib import Path

from stele.releases.trend import Rise, lines, percent, steps
from stele.report import page


def overview(site: Path) -> str:
    """The steps, the largest first, and a table: each line's ends, and its steps."""
    head = ["line", "releases", "first", "last", "change", "steps"]
    rows, found = [], []
    for name, line in lines(site):
        changes, first, last = steps(line), line.values[0], line.values[-1]
        found += [(name, step) for step in changes]
        told = "; ".join(f"{one.release} {percent(one.before, one.after)}" for one in changes)
        ends = f"{line.releases[0]} to {line.releases[-1]}"
        rows.append(
            [
                name,
                f"{len(line.values)}, {ends}",
                f"{first:.4g}",
                f"{last:.4g}",
                percent(first, last),
                told or "none",
            ]
        )
    found.sort(key=lambda one: one[1].height, reverse=True)
    said = [f"- {step.release}: {name}, {percent(step.before, step.after)}" for name, step in found]
    return "\n".join([*said, "", page.table(head, rows)])


def markdown(found: Sequence[Rise], measured: Sequence[str]) -> str:
    """The report: what rose at the releases that were measured now, and what had risen before."""
    new = [rise for rise in found if rise.release in measured]
    old = [rise for rise in found if rise.release not in measured]
    parts = [f"# {len(new)} steps in {len(measured)} releases\n" if measured else "# Nothing was new\n"]
    for head, some in (("New", new), ("Known", old)):
        if some:
            parts.append(f"## {head}\n" + "".join(f"- {rise.message}\n" for rise in some))
    return "\n".join(parts)
