"""What do a wrapper, determinism, a search for kernels and each tuning cost or gain? Writes docs/results/prices.md.

    python -m studies prices [--kind KIND] [--task NAME] [--framework NAME] [--launches N]
    python -m studies prices --table

Each row compares two workers that take turns step by step, with one thread: the step of the first over that of the
second. Two launches are measured at the same time, each on a processor of its own. What was measured stays in
.stele/prices.jsonl; an interrupted command continues from there.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from stele import environments, statistics
from stele.gate.launcher import plan_of
from stele.gate.metrics import METRICS
from stele.measuring import lock, machine, measure, processors
from stele.measuring.run import PHASES
from stele.measuring.settings import Settings
from stele.report import page
from stele.statistics import Estimate
from stele.subjects import Cell, Tasks
from stele_suite import tasks
from studies import launches
from studies.ready import environments_with

PAGE = Path(__file__).parents[1] / "docs" / "results" / "prices.md"
FILE = Path(".stele/prices.jsonl")
KEYS = ("pair", "result")  # of a line
# with more threads, steps vary several times as much
SETTINGS = Settings(device="cpu", threads=1, malloc="steady")
AT_ONCE = 2  # launches
STEPS = 16
LAUNCHES = 6  # a median of fewer has no 95 % interval
TIMEOUT = 300.0  # seconds of silence; a search for kernels may take long
SMALL = 0.02  # a difference that does not matter, as a fraction
HELPS = "the tuning helps"
STEP = METRICS[0]
WRAPPED = {"keras-jax": "jax", "keras-tensorflow": "tensorflow", "keras-torch": "torch"}
KINDS = {
    "wrapper": "Keras over its backend alone",
    "determinism": "deterministic kernels over the default",
    "search": "torch.compile with a search for the fastest kernels over torch.compile",
    "tuning": "as shipped over tuned, for the environments whose recipe tunes something",
}


class Pair(NamedTuple):
    """Two sides of a cell. If both are the same environment, the first has deterministic kernels."""

    kind: str
    first: str
    second: str
    cell: Cell

    def __str__(self) -> str:
        return f"{self.kind} {self.first} {self.second} {self.cell}"


def pairs_of(cell: Cell, names: Sequence[str]) -> list[Pair]:
    """Return the pairs of a cell among the environments ``names``, which have it and are ready."""
    found = [Pair("wrapper", keras, backend, cell) for keras, backend in WRAPPED.items()]
    found += [Pair("search", "torch-max-autotune", "torch-compile", cell)]
    found += [Pair("tuning", f"{name}-as-shipped", name, cell) for name in names]
    # XLA, where the recipe is faster with it
    found += [Pair("tuning", "tensorflow-function", "tensorflow", cell)]
    found += [Pair("determinism", name, name, cell) for name in names if name.count("-") == 0 or name in WRAPPED]
    return [pair for pair in found if {pair.first, pair.second} <= set(names)]


def launch(pair: Pair) -> list[float] | str:
    """Return log(first / second) of each launch at the same time, or the message of the one that failed."""
    changed = {"first": replace(SETTINGS, deterministic=True)} if pair.kind == "determinism" else {}
    sides = {"first": environments.load(pair.first), "second": environments.load(pair.second)}
    plan, groups = plan_of(pair.cell, "gate", Tasks(), STEPS), processors.lanes(1)[:AT_ONCE]
    orders = [sides, dict(reversed(sides.items()))][: len(groups) or 1]  # the order of turns may matter
    try:
        measured = measure.measure_lanes(
            orders, [plan], SETTINGS, timeout=TIMEOUT, groups=groups or None, changed=changed
        )
    except measure.SideFailed as error:
        return error.headline
    return [STEP.difference(*runs["second"], *runs["first"]) or 0.0 for runs in measured]


def load() -> dict[str, list[Any]]:
    """Return the launches that are stored, by pair: log(first / second), or the message of those that failed."""
    stored = launches.load(FILE, *KEYS)
    return {pair: [one for result in results for one in as_list(result)] for pair, results in stored.items()}


def as_list(result: list[float] | str) -> Sequence[float | str]:
    return [result] if isinstance(result, str) else result


def meaning(kind: str, ratio: Estimate) -> str:
    """Return what the interval of a ratio says."""
    if ratio.low is None or ratio.high is None:
        return "too few launches"
    if ratio.low > 1 + SMALL:
        return HELPS if kind == "tuning" else "costs time"
    if ratio.high < 1 - SMALL:
        return "the tuning makes it slower: remove it" if kind == "tuning" else "saves time"
    if ratio.low > 1 - SMALL and ratio.high < 1 + SMALL:
        return "the tuning does not help here" if kind == "tuning" else "no difference that matters"
    return "unclear"


def row(pair: Pair, results: Sequence[Any]) -> list[str]:
    """Return the row of a pair: its ratio with the 95 % interval of the median of its launches."""
    failed = [result for result in results if isinstance(result, str)]
    if failed:
        return [pair.first, pair.second, str(pair.cell), "", str(len(results)), failed[-1]]
    ratio = Estimate(*(None if value is None else math.exp(value) for value in statistics.median(results)))
    return [
        pair.first,
        pair.second,
        str(pair.cell),
        launches.interval(ratio),
        str(len(results)),
        meaning(pair.kind, ratio),
    ]


def markdown(pairs: Sequence[Pair], stored: dict[str, list[Any]]) -> str:
    parts = []
    for kind, about in KINDS.items():
        rows = [row(pair, stored[str(pair)]) for pair in pairs if pair.kind == kind and str(pair) in stored]
        table = page.table(("first", "second", "cell", "ratio of steps", "launches", "meaning"), rows)
        parts.append(f"**{kind}**: {about}\n\n{table if rows else 'Not measured yet.'}")
        if rows and kind == "tuning":
            parts.append(without_gain(rows))
    facts = machine.facts()
    parts.append(f"Written {date.today()} on {facts.processor}, {facts.processors} processors.")
    return "\n\n".join(parts)


def without_gain(rows: Sequence[Sequence[str]]) -> str:
    """Return a sentence that names the tunings that help in none of their rows."""
    tunings = {(first, second) for first, second, *_ in rows}
    tunings -= {(first, second) for first, second, *_, meaning in rows if meaning == HELPS}
    names = ", ".join(f"{second} beside {first}" for first, second in sorted(tunings))
    return f"No longer helps in any row: {names}." if names else "Each tuning helps in at least one row."


def main() -> None:
    parser = launches.parser(__doc__, LAUNCHES, framework="of the first side; default: all", table=True)
    parser.add_argument("--kind", action="append", choices=KINDS, help="default: all")
    parser.add_argument("--task", action="append", choices=tasks.NAMES, help="default: cnn and gru")
    arguments = parser.parse_args()
    cells = [Cell(task, phase) for task in arguments.task or ("cnn", "gru") for phase in PHASES]
    every = [
        pair for cell in cells for pair in pairs_of(cell, [each.name for each in environments_with(*cell, SETTINGS)])
    ]
    chosen = [
        pair
        for pair in every
        if pair.kind in (arguments.kind or KINDS) and pair.first in (arguments.framework or [pair.first])
    ]
    if not arguments.table:
        with lock.machine("tox -e studies -- prices", wait=True, say=print):
            rounds = math.ceil(arguments.launches / max(1, len(processors.lanes(1)[:AT_ONCE])))
            launches.measure(FILE, KEYS, chosen, rounds, launch)
    page.fill(PAGE, markdown(every, load()))


if __name__ == "__main__":
    main()
