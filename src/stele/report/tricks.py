"""The effects of tricks as a table, and as a picture of time against accuracy."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stele import files
from stele.report import charts, page
from stele.report.time_to_accuracy import estimate
from stele.text import align, figure
from stele.time_to_accuracy.ablation import PUBLISHED_ACCURACY, PUBLISHED_SECONDS, Effect, runs_of
from stele.time_to_accuracy.summary import Summary

HEAD = (
    "trick",
    "s/epoch",
    "epochs before",
    "accuracy %",
    "epochs",
    "accuracy %",
    "P(target)",
    "expected s",
    "published s",
)
# that of the published times
CLOCK = "DAWNBench"
POINTS = (
    "environment",
    "trick",
    "low, s",
    "seconds of a training, without evaluation and compilation",
    "high, s",
    "low, %",
    "accuracy, %",
    "high, %",
)
CHART = charts.course(POINTS, group=0, name=1, x=(2, 3, 4), y=(5, 6, 7))


def lines(effects: Sequence[Effect]) -> list[str]:
    """Return the table of one framework for a terminal."""
    return align([list(HEAD), *rows(effects)])


def markdown(effects: Mapping[str, Sequence[Effect]]) -> str:
    """Return a Markdown table for each framework, with the task, the target and the machine."""
    parts = []
    for environment, of_environment in effects.items():
        runs = runs_of(of_environment)
        if runs:
            facts = f"{runs[0].task}, scale {runs[0].scale}, {runs[0].when[:10]}, {runs[0].machine.processor}"
            parts.append(f"**{environment}**: {facts}")
        parts.append(page.table(HEAD, rows(of_environment), right=slice(1, None)))
    return "\n\n".join([*parts, "[low middle high]: 95 % interval over seeds. The clock is that of DAWNBench."])


def rows(effects: Sequence[Effect]) -> list[list[str]]:
    return [row(effect, PUBLISHED_SECONDS.get(effect.step.trick)) for effect in effects]


def row(effect: Effect, seconds: float | None) -> list[str]:
    step, published = effect.step, "" if seconds is None else figure(seconds)
    if effect.new is None:
        return [f"{step.trick}: absent, {step.absent}", *[""] * (len(HEAD) - 2), published]
    return [
        step.trick,
        estimate(effect.new.epoch),
        "" if step.before is None else str(step.before),
        "" if effect.old is None else accuracy(effect.old),
        str(step.epochs),
        accuracy(effect.new),
        estimate(effect.new.probability, 1, "{:.2f}"),
        expected(effect.new),
        published,
    ]


def accuracy(summary: Summary) -> str:
    return estimate(summary.accuracy, 100, "{:.2f}")


def expected(summary: Summary) -> str:
    times = summary.times[CLOCK]
    if times is None:
        return "unknown"
    return "never reached" if times.expected is None else estimate(times.expected)


def draw(effects: Mapping[str, Sequence[Effect]], path: Path) -> None:
    """Draw time against accuracy, one line for each framework, and the published times, as an SVG file."""
    files.write_output_text(path, charts.to_svg(CHART, points(effects)))


def points(effects: Mapping[str, Sequence[Effect]]) -> list[list[Any]]:
    """Return the rows of the picture, with the columns of POINTS: each step that has a time, and each published one."""
    rows = [
        [environment, effect.step.trick, *times.mean, *(None if end is None else 100 * end for end in accuracy)]
        for environment, of_environment in effects.items()
        for effect in of_environment
        if effect.new is not None and (times := effect.new.times[CLOCK]) is not None
        for accuracy in [effect.new.accuracy]
    ]
    height = 100 * PUBLISHED_ACCURACY
    published = [
        ["published, V100", f"{seconds:g}", None, seconds, None, None, height, None]
        for seconds in PUBLISHED_SECONDS.values()
    ]
    return [*rows, *published]
