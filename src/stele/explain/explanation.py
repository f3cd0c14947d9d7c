"""What ``stele explain`` and ``stele gate --explain`` share: profile both arms, and print which operations differ."""

import dataclasses
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
from stele.gate.metrics import Kind
from stele.gate.trial import Trial
from stele.measuring import progress
from stele.measuring.run import Options
from stele.parity import defaults
from stele.subjects import Cell
from stele.text import printable

TIMES = 3  # launches of each arm
STEPS = 24  # timed steps of a launch
PROFILE = Kind(options=Options(profile=8))  # steps under the profiler


def explain(trial: Trial, cells: Sequence[Cell], *, times: int = TIMES) -> Explanation:
    """Print the operations of each cell, and what else differs.

    Raises SteleError if a launch fails, or if a framework has no profiler.
    """
    comparisons: dict[tuple[str, str], Comparison] = {}
    runs: dict[tuple[str, str], list[Launch]] = {}
    for cell in cells:
        runs[cell] = list(profile(trial, cell, times))
        comparisons[cell] = compare(runs[cell])
        title = f"{cell}: {trial.old.name} to {trial.new.name}"
        print(
            "\n".join(["", *text.lines(title, comparisons[cell], "step" if trial.subject.metrics is None else "call")]),
            flush=True,
        )
    last = runs[cells[-1]][-1]
    differing = [printable(line, keep="") for line in what_differs(trial, last)]
    heading = "What else differs:" if differing else "Nothing else differs."
    print("", heading, *differing, sep="\n", flush=True)
    return Explanation(trial.old, trial.new, trial.settings, trial.scale, trial.subject, comparisons, runs, differing)


def profile(trial: Trial, cell: Cell, times: int) -> Iterator[Launch]:
    """Yield ``times`` pairs of launches of OLD and NEW under the profilers. Raises SteleError if a launch fails."""
    plan = plan_of(cell, trial.scale, trial.subject, STEPS, PROFILE)
    plan = dataclasses.replace(plan, sampler=launches.find_sampler())
    launched = launches.launch(trial.old, trial.new, plan, trial.settings, times=times, timeout=trial.timeout)
    for number in range(1, times + 1):
        with progress.waiting(f"{cell}: launch {number} of {times} under the profilers"):
            launch = next(launched)
        yield launch


def compare(runs: Sequence[Launch]) -> Comparison:
    return comparison.compare(
        [launches.profile(launch.old) for launch in runs], [launches.profile(launch.new) for launch in runs]
    )


def what_differs(trial: Trial, last: Launch) -> Iterator[str]:
    """Yield packages, flags, what was in force, selected kernels, and defaults that differ, a line each."""
    changed = [package for package in trial.named if package.old != package.new]
    yield from (f"package: {line}" for line in packages.lines([*changed, *trial.differences]))
    old, new = last
    yield from changes("flags", old.framework.flags, new.framework.flags)
    yield from changes("in force", old.in_force or {}, new.in_force or {})
    yield from changes("versions", old.framework.versions, new.framework.versions)
    yield from changes("kernels", *(run.profile.kernels if run.profile else {} for run in last))
    yield from changed_defaults(trial.old, trial.new)


def changes(kind: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted({*old, *new}):
        values = [str(values_of_arm.get(name, "none")) for values_of_arm in (old, new)]
        if values[0] != values[1]:
            yield f"{kind}: {name}: {' → '.join(values)}"


def changed_defaults(old: Environment, new: Environment) -> Iterator[str]:
    """Yield the defaults that differ between two releases of a framework."""
    if old.framework != new.framework or not old.framework:
        return  # the tables of two frameworks have few names in common, and code of the user may have none
    try:
        tables = [defaults.ask(environment) for environment in (old, new)]
    except SteleError as error:
        yield f"defaults: unknown, because {error}"
        return
    yield from (f"default: {change.fact}: {change.old} → {change.new}" for change in defaults.changes(*tables))


def to_json(explanation: Explanation) -> str:
    return schema.document(explanation.document)
