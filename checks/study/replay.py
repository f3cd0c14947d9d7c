"""The decision rule of the gate, and the one before it, on the same launches: windows of the pools.

In each window, the launches of every pass are called OLD and NEW again, at random, and a slow-down is multiplied onto
the steps of those called NEW. A window that reaches the end of its pool continues at the beginning.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy
import previous
from pool import LARGE, SMALL, USERS, Pool, Subject
from rules import Array, Outcome, e_values

from stele.gate.judgement import MAX_PASSES
from stele.gate.metrics import METRICS, Metric
from stele.gate.state import Result
from stele.gate.trial import ARMS, NEW_ARMS
from stele.measuring.run import Run

SLOWDOWNS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.10, 0.25)
WINDOWS = 200  # for each cell and slow-down
GATES = 400  # for false alarms
NEW_RULE, OLD_RULE, UNPAIRED = "new rule", "old rule", "new rule, without turns"
BY_NAME = {metric.name: metric for metric in METRICS}

Numbers = dict[str, Array]  # by metric: logarithms, shape (passes, launches)


class Key(NamedTuple):
    tool: str
    condition: str
    subject: Subject | None  # None: a whole gate
    scale: str
    slowdown: float


class Rate(NamedTuple):
    """How often each status was given in so many windows, and the mean number of launches until then."""

    statuses: Counter[str]
    total: int
    launches: float


Rates = dict[Key, Rate]


def rates(pools: Mapping[str, Pool]) -> Rates:
    """Return the statuses of each rule in the steps of each cell, and in whole gates without any change."""
    gates = [
        (condition, {subject: pool[subject] for subject in subjects if subject in pool})
        for condition, pool in pools.items()
        for subjects in (SMALL, LARGE, USERS)
    ]
    result: Rates = {}
    with ProcessPoolExecutor() as executor:
        for part in executor.map(gate_rates, *zip(*gates, strict=True)):
            result.update(part)
    return result


def gate_rates(condition: str, pool: Pool) -> Rates:
    """Return the rates of a gate of these cells."""
    if not pool:
        return {}
    gate = {subject: numbers(results, first=subject == next(iter(pool))) for subject, results in pool.items()}
    cheapest = min(pool, key=lambda subject: pass_seconds(pool[subject]))
    result = false_alarms(condition, gate)
    for subject, results in pool.items():
        alone = numbers(results, in_turns=False) if subject in SMALL else None
        result.update(cell_rates(condition, gate, subject, cheapest, alone))
        print(f"replayed {condition} {subject}", flush=True)
    return result


def pass_seconds(results: Sequence[Result]) -> float:
    return sum(result.took for result in results) / len(results)


def numbers(results: Sequence[Result], *, first: bool = False, in_turns: bool = True) -> Numbers:
    """Return what the passes measured. The import counts in the ``first`` cell of a gate alone.

    ``in_turns=False`` compares the steps of whole launches, not those of the same turn.
    """
    counted = [result.runs for result in results if not result.excluded]
    of = Metric.values if in_turns else values_alone
    rows = {metric.name: [of(metric, runs) for runs in counted] for metric in METRICS}
    return {
        name: numpy.array([list(row.values()) for row in passes if row])
        for name, passes in rows.items()
        if None not in passes and (name != "import" or first)
    }


def values_alone(metric: Metric, runs: Mapping[str, Run]) -> dict[str, float] | None:
    known = {arm: math.log(number) for arm, run in runs.items() if (number := metric.value(run))}
    return known if len(known) == len(runs) else None


def window(values: Numbers, draw: numpy.random.Generator, slowdown: float = 0.0) -> Numbers:
    """Return MAX_PASSES passes with the launches in the order of ARMS, and NEW's steps slower by ``slowdown``."""
    count = len(next(iter(values.values())))
    places = (draw.integers(count) + numpy.arange(MAX_PASSES)) % count
    order = draw.permuted(numpy.tile(numpy.arange(len(ARMS)), (MAX_PASSES, 1)), axis=1)
    drawn = {name: numpy.take_along_axis(rows[places], order, axis=1) for name, rows in values.items()}
    drawn["step"][:, 2:] += math.log1p(slowdown)
    return drawn


def cell_rates(
    condition: str, gate: dict[Subject, Numbers], subject: Subject, cheapest: Subject, alone: Numbers | None
) -> Rates:
    """Return the statuses of the step of one cell, while all other metrics of the gate are unchanged."""
    rules: dict[str, Callable[..., Outcome]] = {
        NEW_RULE: lambda draw, slowdown: by_new_rule("step", window(gate[subject], draw, slowdown)["step"]),
        OLD_RULE: lambda draw, slowdown: by_old_rule(gate, draw, slowdown, subject, cheapest),
    }
    if alone is not None:
        rules[UNPAIRED] = lambda draw, slowdown: by_new_rule("step", window(alone, draw, slowdown)["step"])
    result = {}
    for rule, judge in rules.items():
        for slowdown in SLOWDOWNS:
            draw = numpy.random.default_rng(0)
            outcomes = [judge(draw, slowdown) for _ in range(WINDOWS)]
            launches = float(numpy.mean([outcome.launches for outcome in outcomes]))
            statuses = Counter(outcome.status for outcome in outcomes)
            result[Key(rule, condition, subject, subject.scale, slowdown)] = Rate(statuses, WINDOWS, launches)
    return result


def by_new_rule(name: str, rows: Array) -> Outcome:
    return e_values(rows, len(NEW_ARMS), BY_NAME[name])


def by_old_rule(
    gate: dict[Subject, Numbers],
    draw: numpy.random.Generator,
    slowdown: float,
    slow: Subject,
    cheapest: Subject,
) -> Outcome:
    """Judge pairs. In the cheapest cell, OLD was launched once more beside each pair."""
    results = old_judgements(
        {subject: window(values, draw, slowdown * (subject == slow)) for subject, values in gate.items()}
    )
    result = results[f"{slow} step"]
    return Outcome(result.status, result.pairs * (3 if slow == cheapest else 2))


def old_judgements(windows: dict[Subject, Numbers]) -> dict[str, previous.Judgement]:
    """Judge all metrics of a gate by the old rule. Two launches of each release make two pairs of a pass."""
    series = {
        f"{subject} {name}": list((rows[:, 2:] - rows[:, :2]).ravel()[: previous.PAIRS])
        for subject, values in windows.items()
        for name, rows in values.items()
    }
    return previous.judge(series, {key: BY_NAME[key.rpartition(" ")[2]].margin for key in series})


def false_alarms(condition: str, gate: dict[Subject, Numbers]) -> Rates:
    """Return how often a gate from the release to itself is REGRESSED, over all its cells and metrics."""
    draw, alarms = numpy.random.default_rng(1), Counter[str]()
    for _ in range(GATES):
        windows = {subject: window(values, draw) for subject, values in gate.items()}
        new = [by_new_rule(name, rows) for values in windows.values() for name, rows in values.items()]
        alarms[NEW_RULE] += "REGRESSED" in [outcome.status for outcome in new]
        old = old_judgements(windows).values()
        alarms[OLD_RULE] += "REGRESSED" in [result.status for result in old]
    scale = next(iter(gate)).scale
    return {
        Key(rule, condition, None, scale, 0.0): Rate(Counter(REGRESSED=alarms[rule]), GATES, 0.0)
        for rule in (NEW_RULE, OLD_RULE)
    }
