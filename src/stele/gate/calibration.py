"""What a gate can detect on this machine, estimated from passes of one release: noise, false alarms, power. Pure.

All launches of a pass are of the same release. Called OLD and NEW at random, with a simulated slow-down of those called
NEW, they show which verdicts the gate would give.
"""

import bisect
import math
from collections.abc import Sequence
from typing import Annotated

import msgspec
import numpy

from stele import statistics
from stele.gate import judgement
from stele.gate.entries import Header
from stele.gate.judgement import MAX_PASSES, Judgement, Series
from stele.gate.metrics import METRICS
from stele.schema import about
from stele.statistics import Pass

SLOWDOWNS = (0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5)
POWER = 0.9
TRIALS = 200
LEAST = 4  # passes that a verdict takes


class Sensitivity(msgspec.Struct, frozen=True):
    """What the gate can detect in one cell."""

    passes: Annotated[int, about("number of passes, each with four launches of the release")]
    spread: Annotated[float, about("standard deviation of log(NEW / OLD) of a pass", "log ratio")]
    within: Annotated[float, about("median coefficient of variation of the steps of a launch", "fraction")]
    seconds: Annotated[float, about("duration of a pass", "s")]
    alarms: Annotated[float, about("simulated gates that call equal arms different", "fraction")]
    smallest: Annotated[
        float | None, about("slow-down that a gate of five minutes detects in nine of ten cases", "fraction")
    ]


class CalibrationFile(Header):
    """Written to the file that `--json` names, and to `.stele/calibrations`."""

    cells: Annotated[dict[str, Sensitivity], about('by cell, `"<task> <phase>"`')]  # type: ignore[misc]
    advice: Annotated[list[str], about("what to change about the machine")]


def estimate_sensitivity(
    passes: Sequence[Pass], within: Sequence[float], *, seconds: float, minutes: float
) -> Sensitivity:
    """Estimate from passes of one release what a gate of ``minutes`` can detect.

    ``within`` holds the coefficient of variation of each launch; ``seconds`` is the time for a pass.
    """
    affordable, draw = min(int(60 * minutes / seconds), MAX_PASSES), numpy.random.RandomState(0)

    def rate(slowdown: float, count: int) -> float:
        statuses = [simulate_gate(passes, slowdown, count, draw).status for _ in range(TRIALS)]
        return statuses.count("REGRESSED") / TRIALS

    enough = affordable >= LEAST
    index = bisect.bisect_left(SLOWDOWNS, True, key=lambda slowdown: rate(slowdown, affordable) >= POWER)
    differences = statistics.differences(passes)
    return Sensitivity(
        passes=len(passes),
        spread=statistics.spread([*differences, *(-difference for difference in differences)]),
        within=float(numpy.median(within)),
        seconds=seconds,
        alarms=rate(0.0, MAX_PASSES),
        smallest=SLOWDOWNS[index] if enough and index < len(SLOWDOWNS) else None,
    )


def simulate_gate(passes: Sequence[Pass], slowdown: float, count: int, draw: numpy.random.RandomState) -> Judgement:
    """Judge ``count`` passes, drawn with the launches called OLD and NEW at random, and NEW slower by ``slowdown``."""
    drawn = []
    for place in draw.randint(0, len(passes), count):
        old, new = passes[place]
        values = draw.permutation([*old, *new])
        drawn.append((tuple(values[: len(old)]), tuple(values[len(old) :] + math.log1p(slowdown))))
    step = METRICS[0]
    return judgement.replay(Series(step.margin, step.tolerance, step.noise, tuple(drawn)), tests=1)


def messages(cell: str, sensitivity: Sensitivity, *, minutes: float) -> list[str]:
    """Return the estimate of one cell as sentences."""
    lines = [
        f"{cell}: the ratio of a pass varies by {sensitivity.spread:.1%}, steps within a launch by "
        f"{sensitivity.within:.1%} ({sensitivity.passes} passes of {sensitivity.seconds:.1f} s)."
    ]
    smallest = sensitivity.smallest
    if smallest is None and 60 * minutes / sensitivity.seconds < LEAST:
        needed = math.ceil(LEAST * sensitivity.seconds / 60)
        lines.append(f"The gate needs {needed:.0f} minutes to confirm a slow-down here. Use --budget {needed:.0f}m")
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
