"""How many steps a launch times, and for how long. Pure.

A launch starts for ``start`` seconds and then times steps of ``step`` seconds. Its number varies for two reasons: the
process (its spread is measured, and more steps do not reduce it) and the steps. The variance for a given time is
smallest at sqrt(start / step) times the ratio of the spread of steps to that of launches. So a launch has few steps if
they are long, and many if they are short. Source: Kalibera and Jones, 2013. Because OLD and NEW may differ by a factor
of a thousand, a launch also ends when its own steps took a limit, so that the budget is enough for a verdict.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import mean, median

import numpy

from stele.gate.metrics import KINDS, SHORT_STEPS, compare_steps
from stele.gate.trial import ARMS, NEW_ARMS, Trial
from stele.measuring import devices
from stele.measuring.run import Run

FIRST = 24  # steps of the first launch, before their duration is known
FIRST_LIMIT = 8.0  # seconds of these steps, after the first one, which compiles
LEAST, MOST = 10, 300  # accuracy compares the losses of ten steps
ALL = ("quick", "paper")  # scales whose launches have all steps
PASSES = 6  # of each kind and cell, for which the budget has to be enough
LEAST_LIMIT = 1.0  # seconds
LAUNCH_SPREAD = 0.007  # standard deviation between launches of one release, before any was measured
PRIOR = 4  # the weight of LAUNCH_SPREAD, in pairs of launches
MEDIAN = 1.25  # the standard error of a median over that of a mean


def of_next_launch(kind: str, scale: str, earlier: Sequence[tuple[Mapping[str, Run], float]]) -> int | None:
    """Return the number of steps of the next launch; None for all.

    ``earlier`` has the Runs of each earlier pass, and the seconds of a launch without its steps.
    """
    if KINDS[kind].short or KINDS[kind].steps:
        return KINDS[kind].steps or SHORT_STEPS
    if scale in ALL or KINDS[kind].trains:
        return None
    spread = launch_spread([runs for runs, _ in earlier])
    counts = [best_count(runs, start, spread) for runs, start in earlier]
    return round(median(counts)) if counts else FIRST  # one disturbed pass must not make all others long


def launch_spread(passes: Sequence[Mapping[str, Run]]) -> float:
    """Return the relative standard deviation between launches of one release, without that of their steps."""
    squares = [LAUNCH_SPREAD**2] * PRIOR
    for runs in passes:
        values = compare_steps(runs)
        of_steps = (MEDIAN * step_spread(runs)) ** 2 / min(len(run.counted_seconds) for run in runs.values())
        for release in (False, True):
            of_release = [value for arm, value in values.items() if (arm in NEW_ARMS) == release]
            squares.append(max(float(numpy.var(of_release, ddof=1)) - of_steps, 0.0))
    return max(mean(squares) ** 0.5, LAUNCH_SPREAD)


def best_count(runs: Mapping[str, Run], start: float, spread: float) -> int:
    """Return the number of steps that gives the least variance for the time, from the launches of one pass.

    A launch starts for ``start`` seconds; ``spread`` is that between launches.
    """
    step = mean(median(run.counted_seconds) for run in runs.values())
    count = MEDIAN * step_spread(runs) / spread * math.sqrt(start / step)
    return max(LEAST, min(MOST, round(count)))


def limit(trial: Trial, *, most: float = math.inf) -> float | None:
    """Return how many seconds the steps of a launch may take, from the budget; None if nothing limits them.

    It is at most ``most``. The ranks of several devices have to stop after the same step, so nothing limits them.
    """
    if trial.settings.devices > 1:
        return None
    kinds = {metric.kinds[0] for metric in trial.metrics}
    launches = PASSES * len(ARMS) * len(trial.cells) * len(kinds)
    least = LEAST_LIMIT if trial.settings.device == "cpu" else 4 * devices.WARM_SECONDS
    return max(min(trial.budget / max(launches, 1), most), least)


def step_spread(runs: Mapping[str, Run]) -> float:
    """Return the relative standard deviation of a step within a turn, estimated from quartiles."""
    count = min(len(run.steps.seconds) for run in runs.values())
    first = min(max(run.steps.warmup for run in runs.values()), count // 2)
    logarithms = numpy.log([run.steps.seconds[first:count] for run in runs.values()])
    deviations = logarithms - logarithms.mean(0)
    deviations -= numpy.median(deviations, axis=1, keepdims=True)
    low, high = numpy.percentile(deviations, (25, 75))
    return float(high - low) / 1.349
