"""The live gates as Markdown: what was measured of each target, and whether it holds."""

import math
from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Any

from live import Results
from targets import NOT_PASS, TARGETS, Target

from stele.report import page
from stele.text import period


def holds(target: Target, results: Sequence[dict[str, Any]]) -> bool:
    """Return whether enough runs fulfilled the target."""
    return sum(fulfils(target, result) for result in results) >= target.power * len(results)


def fulfils(target: Target, result: dict[str, Any]) -> bool:
    """Return whether a run had the expected status, in time."""
    if target.expected == NOT_PASS:
        return bool(result["status"] != "PASS")
    in_time = result["minutes"] <= (target.minutes or math.inf)
    return result["status"] == target.expected and in_time and result["passes"] <= (target.passes or math.inf)


def markdown(results: Results) -> str:
    """Return a table with the measured statuses, passes and minutes of each target, and whether it holds."""
    head = ["gate", "target", "runs", "status", "passes", "minutes", "holds", "message of the last run"]
    rows = [row(target, results.get(name, [])) for name, target in TARGETS.items()]
    return f"{machine_line(results)}\n\n{page.table(head, rows)}"


def row(target: Target, results: Sequence[dict[str, Any]]) -> list[str]:
    limits = [f"{target.passes} passes"] if target.passes else []
    limits += [f"{target.minutes:g} min"] if target.minutes and target.expected != NOT_PASS else []
    limits += [f"power {target.power:g}"] if target.power < 1 else []
    goal = ", ".join([target.expected, *limits])
    if not results:
        return [target.summary, goal, "0", "not measured yet", "", "", "", ""]
    statuses = Counter(result["status"] for result in results)
    counts = ", ".join(f"{count} {status}" for status, count in statuses.most_common())
    passes, minutes = ([float(result[name]) for result in results] for name in ("passes", "minutes"))
    answer = "yes" if holds(target, results) else "no"
    measured = [str(len(results)), counts, span(passes, 0), span(minutes, 1)]
    return [target.summary, goal, *measured, answer, results[-1]["message"]]


def span(values: Sequence[float], digits: int) -> str:
    """``5 (4 to 7)``: the median and the range."""
    middle, low, high = (f"{value:.{digits}f}" for value in (median(values), min(values), max(values)))
    return f"{middle} ({low} to {high})"


def machine_line(results: Results) -> str:
    runs = [result for of_target in results.values() for result in of_target]
    if not runs:
        return "No live gate was measured yet."
    machines = sorted({result["machine"] for result in runs})
    dates = sorted({result["date"] for result in runs})
    return f"Measured on {'; '.join(machines)}, {period(dates)}."
