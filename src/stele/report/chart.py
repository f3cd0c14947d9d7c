"""The coordinates of a line over releases in an SVG picture: points, intervals, levels, steps and axes.

Pure functions. ``templates/chart.svg`` draws what they return. The picture needs no script, so it opens from a folder,
and on servers that forbid scripts.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from stele.releases.intervals import Pair
from stele.releases.trend import Line, levels, percent, steps

WIDTH, HEIGHT = 460, 210
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 22, 64  # what the axes and their labels need
PADDING = 0.08  # of the range of values, above and below
MAX_TICKS = 5
MAX_LABELS = 16


class Point(NamedTuple):
    """A release: its place, the ends of its interval, which are None if it has none, and its text."""

    x: float
    y: float
    low: float | None
    high: float | None
    text: str


class Chart(NamedTuple):
    """What is drawn. All numbers are coordinates; y grows downwards."""

    points: list[Point]
    levels: list[tuple[float, float, float]]  # from x, to x, y
    steps: list[tuple[float, str]]  # x and text
    ticks: list[tuple[float, str]]  # y and text
    labels: list[tuple[float, str]]  # x and text


class Scale(NamedTuple):
    """A linear map from values to coordinates."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)


def chart(
    line: Line,
    intervals: Mapping[str, Pair],
    releases: Sequence[str],
    *,
    shorten: Callable[[str], str],
    describe: Callable[[float], str],
) -> Chart:
    """Return the chart of a line. ``releases`` are the x-axis, and ``intervals`` are by release.

    ``shorten`` returns the label of a release, and ``describe`` a value as text.
    """
    across = Scale(-0.5, len(releases) - 0.5, LEFT, WIDTH - RIGHT)
    x = {release: across(number) for number, release in enumerate(releases)}
    vertical, ticks, decimals = vertical_axis(
        [*line.values, *(end for pair in intervals.values() for end in pair)]
    )
    every = math.ceil(len(releases) / MAX_LABELS)
    return Chart(
        [
            point(release, value, intervals.get(release), x[release], vertical, describe)
            for release, value in zip(line.releases, line.values, strict=True)
        ],
        [
            (x[line.releases[level.start]], x[line.releases[level.end - 1]], vertical(level.value))
            for level in levels(line)
        ],
        [(x[step.release], percent(step.before, step.after)) for step in steps(line)],
        [(vertical(value), f"{value:,.{decimals}f}") for value in ticks],
        [(x[release], shorten(release)) for release in releases[::every]],
    )


def point(
    release: str, value: float, interval: Pair | None, x: float, y: Scale, describe: Callable[[float], str]
) -> Point:
    """Return the point of a release at ``x``; ``y`` is the scale of the values."""
    text = f"{release}: {describe(value)}"
    if interval is None:
        return Point(x, y(value), None, None, text)
    low, high = interval
    return Point(x, y(value), y(low), y(high), f"{text}, 98 % interval {describe(low)} to {describe(high)}")


def vertical_axis(values: Sequence[float]) -> tuple[Scale, list[float], int]:
    """Return the scale of the y-axis, its ticks, and how many decimals their texts need."""
    low, high = min(values), max(values)
    pad = PADDING * (high - low) or 0.05 * abs(high) or 1.0
    scale = Scale(low - pad, high + pad, HEIGHT - BOTTOM, TOP)
    distance = tick_distance(scale.high - scale.low)
    first = math.ceil(scale.low / distance)
    ticks = [number * distance for number in range(first, math.floor(scale.high / distance) + 1)]
    return scale, ticks, max(0, -math.floor(math.log10(distance) + 1e-9))


def tick_distance(span: float) -> float:
    """Return 1, 2 or 5 times a power of ten, so that at most MAX_TICKS ticks are in ``span``."""
    power = 10.0 ** math.floor(math.log10(span / MAX_TICKS))
    return next(factor * power for factor in (1, 2, 5, 10) if span / (factor * power) <= MAX_TICKS)
