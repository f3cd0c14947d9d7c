"""What this machine can see: from launches of one and the same release, noise, false alarms and power. Pure.

That the two of a pair are equal is known, so the signs of their differences mean nothing: drawn anew, and with a
slow-down added, they show what the gate would have said.
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
CONTROLLED = 1.5  # of a pair's time, with the control


class Sight(NamedTuple):
    """Of one cell. Shares are fractions; ``smallest`` is None where not even the largest is found in time."""

    pairs: int
    spread: float  # the standard deviation of their differences
    within: float  # the median coefficient of variation of the steps of a launch
    seconds: float  # that a pair takes
    alarms: float  # how often equals are told apart
    smallest: float | None  # slow-down that is found with POWER


def sight(
    found: Sequence[float], within: Sequence[float], *, seconds: float, minutes: float, margin: float = 0.05
) -> Sight:
    """From the differences of pairs, log(second) - log(first), and how long one takes."""
    pairs = min(int(60 * minutes / (CONTROLLED * seconds)), SCREEN + LOOKS[-1])
    draw = numpy.random.RandomState(0)

    def rate(slowdown: float, count: int) -> float:
        words = [told(found, slowdown, count, margin, draw).status for _ in range(TRIALS)]
        return words.count("REGRESSED") / TRIALS

    enough = pairs >= SCREEN + LOOKS[0]
    place = bisect.bisect_left(SLOWDOWNS, True, key=lambda slowdown: rate(slowdown, pairs) >= POWER)
    return Sight(
        pairs=len(found),
        spread=statistics.spread([*found, *(-value for value in found)]),
        within=float(numpy.median(within)),
        seconds=seconds,
        alarms=rate(0.0, SCREEN + LOOKS[-1]),
        smallest=SLOWDOWNS[place] if enough and place < len(SLOWDOWNS) else None,
    )


def told(
    found: Sequence[float], slowdown: float, count: int, margin: float, draw: numpy.random.RandomState
) -> Judgement:
    """What the gate says of so many pairs drawn from these, in an order drawn at random, NEW being so much slower."""
    drawn = draw.choice(found, count) * draw.choice([-1, 1], count) + math.log1p(slowdown)
    return judgement.judge({"": Series(margin, list(drawn))})[""]


def messages(cell: str, found: Sight, *, minutes: float) -> list[str]:
    """What it means, for people."""
    said = [
        f"{cell}: the two of a pair differ by {found.spread:.1%}, steps within a launch by {found.within:.1%} "
        f"({found.pairs} pairs of {found.seconds:.1f} s)."
    ]
    if found.smallest is None and 60 * minutes / (CONTROLLED * found.seconds) < SCREEN + LOOKS[0]:
        needed = (SCREEN + LOOKS[0]) * CONTROLLED * found.seconds / 60
        said.append(f"A slow-down takes {needed:.0f} minutes to confirm here: give the gate that much.")
    elif found.smallest is None:
        said.append(
            f"No slow-down up to {SLOWDOWNS[-1]:.0%} is found with {POWER:.0%} power in {minutes:g} minutes."
        )
    else:
        said.append(
            f"In {minutes:g} minutes a slow-down of {found.smallest:.1%} is found nine times in ten, judged alone."
        )
    said.append(f"Of {TRIALS} gates from the release to itself, {found.alarms:.1%} raise a false alarm.")
    return said
