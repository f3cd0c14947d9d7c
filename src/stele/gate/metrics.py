"""The metrics of a Run: how each is computed, its thresholds, and the kinds of launch that measure it.

Long launches time the steps. Short launches measure memory; they are cheap, so there can be many. They use the C
library's allocator as it is. An allocator that keeps freed memory makes step times repeatable, but makes memory differ
by a third from launch to launch; without it, memory differs by one in a hundred. Every launch measures the first step
and the import.

Two thresholds are fractions of growth. ``tolerance``: growth that is accepted even if it is certain. ``margin``: growth
that has to be ruled out before the metric passes; never below the tolerance.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy

from stele.measuring.run import Run
from stele.measuring.settings import Settings

Value = float | int | None
MIN_STEPS = 8  # that are compared
SHORT_SCALE = "smoke"  # of short launches
LONG, SHORT = "long", "short"


class Metric(NamedTuple):
    """A number of a Run, of which less is better."""

    name: str
    tolerance: float
    margin: float
    noise: float  # the expected relative standard deviation of a launch, used until launches show it
    value: Callable[[Run], Value]
    kinds: tuple[str, ...] = (LONG, SHORT)  # of launches that measure it

    def values(self, runs: Mapping[str, Run]) -> dict[str, float] | None:
        """Return the logarithm of each Run's number, comparable within these Runs; None if one is unknown."""
        if self.name == "step" and all(run.plan.get("turn") for run in runs.values()):
            return compare_steps(runs)
        numbers = {side: self.value(run) for side, run in runs.items()}
        known = {side: math.log(number) for side, number in numbers.items() if number}
        return known if len(known) == len(numbers) else None

    def difference(self, old: Run, new: Run) -> float | None:
        """Return log(new) - log(old) of two Runs; None if one of them has no number."""
        values = self.values({"old": old, "new": new})
        return None if values is None else values["new"] - values["old"]


def step_seconds(run: Run) -> float:
    """Return the tenth percentile of the counted steps, in seconds.

    Other processes can only make a step longer, so the low end varies least between launches. It misses events that
    affect few steps; the record holds all steps. If a long warm-up left too few, the last steps count.
    """
    counted = run.counted_seconds if len(run.counted_seconds) >= MIN_STEPS else run.seconds[-MIN_STEPS:]
    return float(numpy.percentile(counted, 10))


def compare_steps(runs: Mapping[str, Run]) -> dict[str, float]:
    """Return the median of log(seconds) over the steps of each Run, less the mean of the Runs in the same turn.

    The Runs took turns, so a disturbance that lasts longer than a step slows all of them. If fewer than MIN_STEPS
    steps count, the last ones do.
    """
    count = min(len(run.seconds) for run in runs.values())
    first = max(min(max(run.warmup for run in runs.values()), count - MIN_STEPS), 0)
    logarithms = numpy.log([run.seconds[first:count] for run in runs.values()])
    medians = numpy.median(logarithms - logarithms.mean(0), axis=1)
    return dict(zip(runs, map(float, medians), strict=True))


METRICS = (
    Metric("step", 0.01, 0.05, 0.01, step_seconds, (LONG,)),
    Metric("first-step", 0.05, 0.25, 0.1, lambda run: run.first_step),
    Metric("import", 0.05, 0.25, 0.1, lambda run: run.import_seconds),
    Metric("host-memory", 0.01, 0.03, 0.005, lambda run: run.host_memory, (SHORT,)),
    Metric("device-memory", 0.01, 0.03, 0.005, lambda run: run.device_memory, (SHORT,)),
)
ACCURACY_MARGIN = 0.01  # one percentage point


def launch_settings(kind: str, scale: str, settings: Settings) -> tuple[str, Settings]:
    """Return the scale and the settings of a launch of this kind; ``scale`` and ``settings`` are of a long one."""
    return (scale, settings) if kind == LONG else (SHORT_SCALE, replace(settings, malloc="plain"))
