"""What ``stele explain`` and ``stele gate --explain`` share: profile both arms, and print which operations differ."""

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stele import schema
from stele.environments import Environment, packages
from stele.errors import SteleError
from stele.explain import comparison, launches, text
from stele.explain.bundle import Explanation
from stele.explain.comparison import Comparison
from stele.explain.launches import Launch
from stele.gate.launcher import plan_of
from stele.gate.trial import Cell, Trial
from stele.measuring import progress
from stele.parity import defaults
from stele.text import printable

TIMES = 3  # launches of each arm
STEPS = 24  # timed steps of a launch
PROFILED = 8  # steps under the profiler


def explain(subject: Trial, cells: Sequence[Cell], *, times: int = TIMES) -> Explanation:
    """Print the operations of each cell, and what else differs.

    Raises SteleError if a launch fails, or if a framework has no profiler.
    """
    found: dict[tuple[str, str], Comparison] = {}
    runs: dict[tuple[str, str], list[Launch]] = {}
    for cell in cells:
        runs[cell] = list(profile(subject, cell, times))
        found[cell] = compare(runs[cell])
        title = f"{cell}: {subject.old.name} to {subject.new.name}"
        print("\n".join(["", *text.lines(title, found[cell])]), flush=True)
    last = runs[cells[-1]][-1]
    differing = [printable(line, keep="") for line in what_differs(subject, last)]
    heading = "What else differs:" if differing else "Nothing else differs."
    print("", heading, *differing, sep="\n", flush=True)
    return Explanation(
        subject.old, subject.new, subject.settings, subject.scale, subject.model, found, runs, differing
    )


def profile(subject: Trial, cell: Cell, times: int) -> Iterator[Launch]:
    """Yield the launches of a cell."""
    plan = plan_of(cell, subject.scale, subject.model, STEPS)
    plan = dataclasses.replace(plan, asked={"profile": PROFILED}, sampler=launches.find_sampler())
    launched = launches.launch(
        subject.old, subject.new, plan, subject.settings, times=times, timeout=subject.timeout
    )
    for number in range(1, times + 1):
        with progress.waiting(f"{cell}: launch {number} of {times} under the profilers"):
            launch = next(launched)
        yield launch


def compare(runs: Sequence[Launch]) -> Comparison:
    return comparison.compare(
        [launches.profile(one.old) for one in runs], [launches.profile(one.new) for one in runs]
    )


def what_differs(subject: Trial, last: Launch) -> Iterator[str]:
    """Yield packages, flags, what was in force, selected kernels, and defaults that differ, a line each."""
    changed = [one for one in subject.named if one.old != one.new]
    yield from (f"package: {line}" for line in packages.lines([*changed, *subject.differences]))
    for kind in ("flags", "in_force", "versions"):
        yield from changes(kind.replace("_", " "), *(getattr(run, kind) or {} for run in last))
    yield from changes("kernels", *((run.profile or {}).get("kernels", {}) for run in last))
    yield from changed_defaults(subject.old, subject.new)


def changes(kind: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted({*old, *new}):
        values = [str(one.get(name, "none")) for one in (old, new)]
        if values[0] != values[1]:
            yield f"{kind}: {name}: {' → '.join(values)}"


def changed_defaults(old: Environment, new: Environment) -> Iterator[str]:
    """Yield the defaults that differ between two releases of a framework."""
    if old.framework != new.framework:
        return  # the tables of two frameworks have few names in common
    try:
        tables = [defaults.ask(one) for one in (old, new)]
    except SteleError as error:
        yield f"defaults: unknown, because {error}"
        return
    yield from (
        f"default: {change.fact}: {change.old} → {change.new}" for change in defaults.changes(*tables)
    )


def to_json(explanation: Explanation) -> str:
    return json.dumps(schema.wrap(explanation.document.as_json()), indent=1) + "\n"
