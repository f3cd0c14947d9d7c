"""What a gate can detect on this machine, estimated from pairs of one release: noise, false alarms, power. Pure.

The arms of each pair are the same release, so the signs of their differences carry no information. Random signs, plus
a simulated slow-down, therefore show which verdicts the gate would give.
"""

import bisect
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy

from stele import statistics
from stele.gate import judgement
from stele.gate.judgement import LOOKS, SCREEN, Judgement, Series

SLOWDOWNS = (0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5)
POWER = 0.9
TRIALS = 200
CONTROL_COST = 1.5  # the time of a pair with its control, over that of a pair


class Sensitivity(NamedTuple):
    """What the gate can detect in one cell. Shares are fractions."""

    pairs: int
    spread: float  # the standard deviation of the pairs' differences
    within: float  # the median coefficient of variation of the steps of a launch
    seconds: float  # for a pair
    alarms: float  # the share of gates that call equal arms different
    smallest: float | None  # slow-down that is detected with POWER; None if none of SLOWDOWNS is


def estimate_sensitivity(
    differences: Sequence[float],
    within: Sequence[float],
    *,
    seconds: float,
    minutes: float,
    margin: float = 0.05,
) -> Sensitivity:
    """Estimate from the pairs' differences, log(second) - log(first), what a gate of ``minutes`` can detect.

    ``within`` holds the coefficient of variation of each launch; ``seconds`` is the time for a pair.
    """
    pairs = min(int(60 * minutes / (CONTROL_COST * seconds)), SCREEN + LOOKS[-1])
    draw = numpy.random.RandomState(0)

    def rate(slowdown: float, count: int) -> float:
        statuses = [simulate_gate(differences, slowdown, count, margin, draw).status for _ in range(TRIALS)]
        return statuses.count("REGRESSED") / TRIALS

    enough = pairs >= SCREEN + LOOKS[0]
    index = bisect.bisect_left(SLOWDOWNS, True, key=lambda slowdown: rate(slowdown, pairs) >= POWER)
    return Sensitivity(
        pairs=len(differences),
        spread=statistics.spread([*differences, *(-difference for difference in differences)]),
        within=float(numpy.median(within)),
        seconds=seconds,
        alarms=rate(0.0, SCREEN + LOOKS[-1]),
        smallest=SLOWDOWNS[index] if enough and index < len(SLOWDOWNS) else None,
    )


def simulate_gate(
    differences: Sequence[float], slowdown: float, count: int, margin: float, draw: numpy.random.RandomState
) -> Judgement:
    """Judge ``count`` pairs drawn from the differences, with random signs and NEW slower by ``slowdown``."""
    drawn = draw.choice(differences, count) * draw.choice([-1, 1], count) + math.log1p(slowdown)
    return judgement.judge({"": Series(margin, list(drawn))})[""]


def messages(cell: str, sensitivity: Sensitivity, *, minutes: float) -> list[str]:
    """Return the estimate of one cell as sentences."""
    lines = [
        f"{cell}: the launches of a pair differ by {sensitivity.spread:.1%}, steps within a launch by "
        f"{sensitivity.within:.1%} ({sensitivity.pairs} pairs of {sensitivity.seconds:.1f} s)."
    ]
    smallest = sensitivity.smallest
    if smallest is None and 60 * minutes / (CONTROL_COST * sensitivity.seconds) < SCREEN + LOOKS[0]:
        needed = (SCREEN + LOOKS[0]) * CONTROL_COST * sensitivity.seconds / 60
        lines.append(
            f"The gate needs {needed:.0f} minutes to confirm a slow-down here. Use --budget {needed:.0f}m"
        )
    elif smallest is None:
        lines.append(
            f"In {minutes:g} minutes the gate detects no slow-down up to {SLOWDOWNS[-1]:.0%} with {POWER:.0%} power."
        )
    else:
        lines.append(
            f"In {minutes:g} minutes the gate detects a slow-down of {smallest:.1%} in nine of ten cases, "
            "if it judges this cell alone."
        )
    lines.append(
        f"Of {TRIALS} simulated gates from the release to itself, {sensitivity.alarms:.1%} raise a false alarm."
    )
    return lines
