"""The metrics of a Run: how each is computed, its margin, and the kind of launch that measures it.

Long launches time the steps. Short launches measure everything else; they are cheap, so there can be many. They use
the C library's allocator as it is. An allocator that keeps freed memory makes step times repeatable, but makes memory
differ by a third from launch to launch; without it, memory differs by one in a hundred.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy

from stele.measuring.run import Run
from stele.measuring.settings import Settings

Value = float | int | None
MIN_STEPS = 30
SHORT_SCALE = "smoke"  # of short launches


class Metric(NamedTuple):
    """A number of a Run, of which less is better. ``margin`` is the largest relative increase that passes."""

    name: str
    margin: float
    value: Callable[[Run], Value]
    # log(new) - log(old) of two Runs that took turns, where it is not that of their values
    paired: Callable[[Run, Run], float] | None = None

    @property
    def kind(self) -> str:
        """The kind of launch that measures it: "long" or "short"."""
        return "long" if self.paired is not None else "short"

    def difference(self, old: Run, new: Run) -> float | None:
        """Return log(new) - log(old); None if one of them has no number."""
        if self.paired is not None and old.plan.get("turn") and new.plan.get("turn"):
            return self.paired(old, new)
        before, after = self.value(old), self.value(new)
        return math.log(after / before) if before and after else None


def step_seconds(run: Run) -> float:
    """Return the tenth percentile of the counted steps, in seconds.

    Other processes can only make a step longer, so the low end varies least between launches. It misses events that
    affect few steps; the record holds all steps. If a long warm-up left fewer than thirty, the last thirty count.
    """
    counted = run.counted_seconds if len(run.counted_seconds) >= MIN_STEPS else run.seconds[-MIN_STEPS:]
    return float(numpy.percentile(counted, 10))


def paired_difference(old: Run, new: Run) -> float:
    """Return the median of log(new) - log(old) over steps that followed one another.

    A disturbance that lasts longer than a step slows both. If fewer than thirty steps count, the last thirty do.
    """
    count = min(len(old.seconds), len(new.seconds))
    first = max(min(max(old.warmup, new.warmup), count - MIN_STEPS), 0)
    before, after = numpy.log(old.seconds[first:count]), numpy.log(new.seconds[first:count])
    return float(numpy.median(after - before))


METRICS = (
    Metric("step", 0.05, step_seconds, paired_difference),
    Metric("first-step", 0.25, lambda run: run.first_step),
    Metric("import", 0.25, lambda run: run.import_seconds),
    Metric("host-memory", 0.03, lambda run: run.host_memory),
    Metric("device-memory", 0.03, lambda run: run.device_memory),
)
ACCURACY_MARGIN = 0.01  # one percentage point


def launch_settings(kind: str, scale: str, settings: Settings) -> tuple[str, Settings]:
    """Return the scale and the settings of a launch of this kind; ``scale`` and ``settings`` are of a long one."""
    return (scale, settings) if kind == "long" else (SHORT_SCALE, replace(settings, malloc="plain"))
