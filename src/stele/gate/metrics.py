"""What of a Run is judged, and by how much it may grow."""

from collections.abc import Callable
from typing import NamedTuple

import numpy

from stele.run import Run

Value = float | int | None
FEWEST = 30  # steps


class Metric(NamedTuple):
    """A number of a Run of which less is better; ``margin`` is by how much of itself it may grow unpunished."""

    name: str
    margin: float
    of: Callable[[Run], Value]


def step(run: Run) -> float:
    """The tenth percentile of the counted steps, in seconds.

    A foreign process can only make a step longer, so the low end moves least from launch to launch. It does not see
    what happens in few steps; all of them are in the record. Of the last thirty, where a long warm-up left fewer.
    """
    counted = run.counted if len(run.counted) >= FEWEST else run.seconds[-FEWEST:]
    return float(numpy.percentile(counted, 10))


METRICS = (
    Metric("step", 0.05, step),
    Metric("first-step", 0.25, lambda run: run.first_step),
    Metric("import", 0.25, lambda run: run.import_seconds),
    Metric("host-memory", 0.03, lambda run: run.host_memory),
    Metric("device-memory", 0.03, lambda run: run.device_memory),
)
ACCURACY_MARGIN = 0.01  # a point
