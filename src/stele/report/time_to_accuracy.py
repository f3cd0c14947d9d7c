"""Time to accuracy as terminal lines, Markdown and JSON. The functions return text and print nothing."""

from collections.abc import Iterable, Sequence
from datetime import date
from typing import Annotated

import msgspec

from stele import schema
from stele.measuring.machine import Machine
from stele.measuring.run import CLOSED, Origin, Run
from stele.measuring.settings import Settings
from stele.report import page
from stele.schema import about
from stele.statistics import Estimate
from stele.text import align, figure, interval, versions
from stele.time_to_accuracy.summary import DEFINITIONS, Summary, Times

HEAD = (
    "framework",
    "version",
    "seeds",
    "accuracy %",
    "deviation",
    "P(target)",
    "s/epoch",
    "clock",
    "s",
    "expected s",
    "MLPerf mean s",
    "compile s",
    "cost USD",
    "energy J",
    "notes",
)
UNKNOWN = "unknown"


def seed_line(run: Run, target: float) -> str:
    """``torch  seed 3  93.91 %  below the target  41.2 s (DAWNBench), 43.0 s (MLPerf)``"""
    assert run.learning.accuracy is not None
    reached = "reached the target" if run.learning.accuracy >= target else "below the target"
    seconds = {name: clock(run) for name, clock in DEFINITIONS.items()}
    times = [f"{figure(value)} s ({name})" for name, value in seconds.items() if value is not None]
    time = ", ".join(times) or "continued, so its time does not count"
    return f"{run.environment}  seed {run.settings.seed}  {run.learning.accuracy:.2%}  {reached}  {time}"


def lines(summaries: Sequence[Summary]) -> list[str]:
    """Return the table for a terminal: a line for each environment and definition of the clock."""
    return align([list(HEAD), *rows(summaries)])


def markdown(summaries: Sequence[Summary]) -> str:
    """Return the table as Markdown, with the task, the target and how to read it."""
    run = summaries[0].runs[0]
    return "\n\n".join(
        [
            f"**{run.task}**, scale {run.scale}, {run.division} division, target {summaries[0].target:.1%}, "
            f"{len(run.steps.seconds)} epochs",
            page.table(HEAD, rows(summaries), right=slice(2, -1)),
            f"Measured {run.when[:10]} on {run.machine.processor}, {run.settings.threads} threads"
            f"{''.join(', ' + gpu['name'] for gpu in run.machine.gpus)}. Data: {run.data.origin}. "
            "[low middle high]: 95 % interval.",
        ]
    )


def rows(summaries: Iterable[Summary]) -> list[list[str]]:
    return [row(summary, clock) for summary in summaries for clock in DEFINITIONS]


def row(summary: Summary, clock: str) -> list[str]:
    run, times = summary.runs[0], summary.times[clock]
    return [
        run.environment,
        versions(run.framework.versions),
        str(len(summary.runs)),
        estimate(summary.accuracy, 100, "{:.2f}"),
        estimate(summary.deviation, 100, "{:.2f}"),
        estimate(summary.probability, 1, "{:.2f}"),
        estimate(summary.epoch),
        clock,
        UNKNOWN if times is None else estimate(times.mean),
        UNKNOWN if times is None or times.expected is None else estimate(times.expected),
        "not valid" if times is None or times.mlperf_mean is None else figure(times.mlperf_mean),
        figure(summary.compile_seconds),
        UNKNOWN if summary.cost is None else estimate(summary.cost, 1, "{:.4f}"),
        energy(summary),
        ", ".join(notes(summary)),
    ]


def estimate(value: Estimate | None, factor: float = 1.0, form: str | None = None) -> str:
    """Return ``[low middle high]``; ``?`` for an unknown bound."""
    if value is None:
        return UNKNOWN
    return interval(value, lambda end: figure(end) if form is None else form.format(factor * end))


def energy(summary: Summary) -> str:
    parts = (summary.energy or {}).items()
    return ", ".join(f"{source} {UNKNOWN if value is None else figure(value)}" for source, value in parts) or UNKNOWN


def notes(summary: Summary) -> list[str]:
    """Return what limits the result: the division, rejected convergence, continued trainings, busy machine, data."""
    texts = [] if summary.runs[0].division == CLOSED else [f"{summary.runs[0].division} division"]
    if summary.rejected:
        texts.append(f"rejected: converges faster than the reference (p {summary.reference_p:.2g})")
    if summary.continued:
        texts.append(f"{summary.continued} continued, whose time does not count")
    if any(run.busy for run in summary.runs):
        texts.append("busy machine")
    if summary.runs[0].data.origin == "synthetic":
        texts.append("synthetic data")
    return texts


class PriceOfMachine(msgspec.Struct, frozen=True):
    """What the machine costs, on demand."""

    name: Annotated[str, about("name of the price")]
    per_hour: Annotated[float, about("price of an hour", "USD")]
    day: Annotated[date | None, about("when it was read; null for a price that the user gave")]
    gpu: Annotated[str | None, about("a part of the name that nvidia-smi reports")]


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The trainings of one environment. The bounds of an estimate are those of its 95 % interval."""

    environment: Annotated[str, about("name of the environment")]
    versions: Annotated[dict[str, str | None], about("version or null by package")]
    task: Annotated[str, about("task")]
    scale: Annotated[str, about("how much is computed")]
    machine: Machine
    data: Origin
    settings: Annotated[Settings, about("requested; `seed` is that of the first training")]
    division: Annotated[
        str, about("`closed`, or `open` if the framework drew the initial weights and the augmentation")
    ]
    tricks: Annotated[tuple[str, ...] | None, about("tricks in place of those of the task")]
    epochs: Annotated[int, about("number of epochs, fixed in advance")]
    target: Annotated[float, about("accuracy that the last epoch must reach", "fraction")]
    seeds: Annotated[tuple[int, ...], about("seed of each training")]
    continued: Annotated[int, about("number of trainings that were continued, whose time does not count")]
    accuracies: Annotated[tuple[float | None, ...], about("accuracy of each seed after the last epoch", "fraction")]
    accuracy: Annotated[Estimate, about("estimate of the mean", "fraction")]
    deviation: Annotated[Estimate | None, about("estimate of the standard deviation", "fraction")]
    probability: Annotated[Estimate, about("estimate of the probability that a training reaches the target")]
    epoch_seconds: Annotated[Estimate, about("estimate of the duration of an epoch", "s")]
    times: Annotated[
        dict[str, Times | None],
        about("by definition of the clock, `DAWNBench` and `MLPerf`; null if every training was continued"),
    ]
    compile_seconds: Annotated[float, about("mean of the compilation", "s")]
    price: PriceOfMachine | None
    cost: Annotated[Estimate | None, about("estimate for the expected time by DAWNBench's definition", "USD")]
    energy: Annotated[
        dict[str, float | None] | None,
        about("mean of a training by source; null for a source that cannot be read", "J"),
    ]
    reference_p: Annotated[
        float | None, about("p-value that the reference converges as fast; null without reference runs")
    ]
    rejected: Annotated[bool, about("whether the training converges faster than the reference")]


class ResultsFile(msgspec.Struct, frozen=True):
    """The Runs are in `.stele/time-to-accuracy`, and in its folder `unfinished` until the command ends."""

    results: Annotated[tuple[Result, ...], about("one for each environment")]


def to_json(summaries: Sequence[Summary]) -> str:
    return schema.document(ResultsFile(tuple(map(to_result, summaries))))


def to_result(summary: Summary) -> Result:
    run, price = summary.runs[0], summary.price
    return Result(
        environment=run.environment,
        versions=run.framework.versions,
        task=run.task,
        scale=run.scale,
        machine=run.machine,
        data=run.data,
        settings=run.settings,
        division=run.division,
        tricks=run.options.tricks,
        epochs=len(run.steps.seconds),
        target=summary.target,
        seeds=tuple(run.settings.seed for run in summary.runs),
        continued=summary.continued,
        accuracies=tuple(run.learning.accuracy for run in summary.runs),
        accuracy=summary.accuracy,
        deviation=summary.deviation,
        probability=summary.probability,
        epoch_seconds=summary.epoch,
        times=summary.times,
        compile_seconds=summary.compile_seconds,
        price=None if price is None else PriceOfMachine(*price),
        cost=summary.cost,
        energy=summary.energy,
        reference_p=summary.reference_p,
        rejected=summary.rejected,
    )
