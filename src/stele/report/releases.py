"""Format lines over releases, and their steps, as Markdown and JSON. Returns text, prints nothing."""

import json
from collections.abc import Sequence
from pathlib import Path

from stele import schema
from stele.releases.trend import Rise, lines, percent, steps
from stele.report import page


def overview(site: Path) -> str:
    """Return a list of all steps, the largest first, and a table of the lines: ends, change and steps."""
    head = ["line", "releases", "first", "last", "change", "steps"]
    rows, all_steps = [], []
    for name, line in lines(site):
        changes, first, last = steps(line), line.values[0], line.values[-1]
        all_steps += [(name, step) for step in changes]
        listed = "; ".join(f"{step.release} {percent(step.before, step.after)}" for step in changes)
        ends = f"{line.releases[0]} to {line.releases[-1]}"
        rows.append(
            [
                name,
                f"{len(line.values)}, {ends}",
                f"{first:.4g}",
                f"{last:.4g}",
                percent(first, last),
                listed or "none",
            ]
        )
    all_steps.sort(key=lambda entry: entry[1].height, reverse=True)
    items = [f"- {step.release}: {name}, {percent(step.before, step.after)}" for name, step in all_steps]
    return "\n".join([*items, "", page.table(head, rows)])


def markdown(rises: Sequence[Rise], measured: Sequence[str]) -> str:
    """Return the report: the rises at the releases measured now, and the earlier ones."""
    new = [rise for rise in rises if rise.release in measured]
    old = [rise for rise in rises if rise.release not in measured]
    parts = [f"# {len(new)} steps in {len(measured)} releases\n" if measured else "# No new releases\n"]
    for head, listed in (("New", new), ("Known", old)):
        if listed:
            parts.append(f"## {head}\n" + "".join(f"- {rise.message}\n" for rise in listed))
    return "\n".join(parts)


def to_json(rises: Sequence[Rise], measured: Sequence[str]) -> str:
    """Return all rises, earlier ones included, and the releases measured now."""
    entries = [{**rise._asdict(), "message": rise.message} for rise in rises]
    return json.dumps(schema.wrap({"measured": list(measured), "rises": entries}), indent=1) + "\n"
