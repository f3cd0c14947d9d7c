"""What of a Run is judged, by how much it may grow, and what kind of launch shows it.

Steps are timed in long launches; all else takes short ones, cheap and therefore many, with the allocator as the C
library brings it. What keeps steps alike, an allocator that keeps what it has freed, makes memory differ by a third
from launch to launch; without it, by one in a hundred.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy

from stele.measuring.run import Run
from stele.measuring.settings import Settings

Value = float | int | None
FEWEST = 30  # steps
SHORT = "smoke"  # the scale of short launches


class Metric(NamedTuple):
    """A number of a Run of which less is better; ``margin`` is by how much of itself it may grow unpunished."""

    name: str
    margin: float
    of: Callable[[Run], Value]
    in_turns: Callable[[Run, Run], float] | None = (
        None  # how two Runs differ that took turns, if not by ``of``
    )

    @property
    def kind(self) -> str:
        """Of the launch that shows it: "long" or "short"."""
        return "long" if self.in_turns is not None else "short"

    def difference(self, old: Run, new: Run) -> float | None:
        """log(new) - log(old); None where one of them has no number."""
        if self.in_turns is not None and old.plan.get("turn") and new.plan.get("turn"):
            return self.in_turns(old, new)
        before, after = self.of(old), self.of(new)
        return math.log(after / before) if before and after else None


def step(run: Run) -> float:
    """The tenth percentile of the counted steps, in seconds.

    A foreign process can only make a step longer, so the low end moves least from launch to launch. It does not see
    what happens in few steps; all of them are in the record. Of the last thirty, where a long warm-up left fewer.
    """
    counted = run.counted if len(run.counted) >= FEWEST else run.seconds[-FEWEST:]
    return float(numpy.percentile(counted, 10))


def neighbours(old: Run, new: Run) -> float:
    """The median of log(new) - log(old) over steps that followed one another.

    Whatever slows the machine down for longer than a step slows both. Of the last thirty, as above.
    """
    count = min(len(old.seconds), len(new.seconds))
    first = max(min(max(old.warmup, new.warmup), count - FEWEST), 0)
    before, after = numpy.log(old.seconds[first:count]), numpy.log(new.seconds[first:count])
    return float(numpy.median(after - before))


METRICS = (
    Metric("step", 0.05, step, neighbours),
    Metric("first-step", 0.25, lambda run: run.first_step),
    Metric("import", 0.25, lambda run: run.import_seconds),
    Metric("host-memory", 0.03, lambda run: run.host_memory),
    Metric("device-memory", 0.03, lambda run: run.device_memory),
)
ACCURACY_MARGIN = 0.01  # a point


def of_launch(kind: str, scale: str, settings: Settings) -> tuple[str, Settings]:
    """The scale and the settings of a launch; given are those of a long one."""
    return (scale, settings) if kind == "long" else (SHORT, replace(settings, malloc="plain"))
