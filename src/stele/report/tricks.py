"""The effects of tricks as a table, and as a plot of time against accuracy."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stele import files
from stele.errors import SteleError
from stele.report import page
from stele.report.time_to_accuracy import estimate
from stele.statistics import Estimate
from stele.text import align, figure
from stele.time_to_accuracy.ablation import PUBLISHED_ACCURACY, PUBLISHED_SECONDS, Effect, runs_of
from stele.time_to_accuracy.summary import Summary

HEAD = (
    "trick", "s/epoch", "epochs before", "accuracy %", "epochs", "accuracy %", "P(target)", "expected s",
    "published s",
)  # fmt: skip
CLOCK = "DAWNBench"  # that of the published times


def lines(effects: Sequence[Effect]) -> list[str]:
    """Return the table of one framework for a terminal."""
    return align([list(HEAD), *rows(effects)])


def markdown(effects: Mapping[str, Sequence[Effect]]) -> str:
    """Return a Markdown table for each framework, with the task, the target and the machine."""
    parts = []
    for environment, of_environment in effects.items():
        runs = runs_of(of_environment)
        if runs:
            facts = f"{runs[0].task}, scale {runs[0].scale}, {runs[0].when[:10]}, {runs[0].machine.get('processor')}"
            parts.append(f"**{environment}**: {facts}")
        parts.append(page.table(HEAD, rows(of_environment), right=slice(1, None)))
    return "\n\n".join(
        [*parts, "[low middle high]: 95 % interval over seeds. The clock is that of DAWNBench."]
    )


def rows(effects: Sequence[Effect]) -> list[list[str]]:
    return [row(effect, PUBLISHED_SECONDS.get(effect.step.trick)) for effect in effects]


def row(effect: Effect, seconds: float | None) -> list[str]:
    step, given = effect.step, "" if seconds is None else figure(seconds)
    if effect.new is None:
        return [f"{step.trick}: absent, {step.absent}", *[""] * (len(HEAD) - 2), given]
    return [
        step.trick,
        estimate(effect.new.epoch),
        "" if step.before is None else str(step.before),
        "" if effect.old is None else accuracy(effect.old),
        str(step.epochs),
        accuracy(effect.new),
        estimate(effect.new.probability, 1, "{:.2f}"),
        expected(effect.new),
        given,
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
    pyplot = load_matplotlib()
    figure, axis = pyplot.subplots(figsize=(9, 5), layout="constrained")
    for environment, of_environment in effects.items():
        draw_line(axis, environment, of_environment)
    heights = [100 * PUBLISHED_ACCURACY] * len(PUBLISHED_SECONDS)
    axis.plot(list(PUBLISHED_SECONDS.values()), heights, "k|--", linewidth=0.6, label="published, V100")
    for seconds in PUBLISHED_SECONDS.values():
        axis.annotate(
            f"{seconds:g}", (seconds, heights[0]), xytext=(0, 5), textcoords="offset points", fontsize=6
        )
    axis.set_xscale("log")
    axis.set_xlabel("seconds of a training, without evaluation and compilation")
    axis.set_ylabel("accuracy %")
    axis.legend(fontsize=7)
    files.write_output(path, lambda file: figure.savefig(file, format="svg", metadata={"Date": None}))
    pyplot.close(figure)


def load_matplotlib() -> Any:
    """Return pyplot. Raises SteleError, which says what to install, if there is no matplotlib."""
    try:
        import matplotlib
    except ImportError:
        raise SteleError("--plot needs matplotlib. Install it with: pip install matplotlib") from None
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "stele"  # equal results give an equal file
    from matplotlib import pyplot

    return pyplot


def draw_line(axis: Any, environment: str, effects: Sequence[Effect]) -> None:
    """Draw the points of a framework, with the intervals of time and accuracy."""
    points = [(effect.step.trick, *point(effect.new)) for effect in effects if has_time(effect.new)]
    times, accuracies = [time for _, time, _ in points], [accuracy for _, _, accuracy in points]
    axis.errorbar(
        [time.middle for time in times],
        [100 * accuracy.middle for accuracy in accuracies],
        xerr=reaches(times, 1),
        yerr=reaches(accuracies, 100),
        marker="o",
        markersize=3,
        linewidth=1,
        elinewidth=0.5,
        label=environment,
    )
    for name, time, accuracy in points:
        axis.annotate(
            name, (time.middle, 100 * accuracy.middle), xytext=(3, -8), textcoords="offset points", fontsize=5
        )


def has_time(summary: Summary | None) -> bool:
    return summary is not None and summary.times[CLOCK] is not None


def point(summary: Summary | None) -> tuple[Estimate, Estimate]:
    """Return the time and the accuracy of a step that has both."""
    assert summary is not None
    times = summary.times[CLOCK]
    assert times is not None
    return times.mean, summary.accuracy


def reaches(estimates: Sequence[Estimate], factor: float) -> list[list[float]]:
    """Return how far the intervals reach below and above the middle; 0 for an unknown bound."""
    below = [0.0 if one.low is None else factor * (one.middle - one.low) for one in estimates]
    above = [0.0 if one.high is None else factor * (one.high - one.middle) for one in estimates]
    return [below, above]
