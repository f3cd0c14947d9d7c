"""Time to accuracy as terminal lines, Markdown and JSON. The functions return text and print nothing."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from stele import schema
from stele.measuring.run import CLOSED, Run
from stele.report import page
from stele.statistics import Estimate
from stele.text import align, figure, interval, versions
from stele.time_to_accuracy.summary import DEFINITIONS, Summary

HEAD = (
    "framework", "version", "seeds", "accuracy %", "deviation", "P(target)", "s/epoch", "clock", "s", "expected s",
    "MLPerf mean s", "compile s", "cost USD", "energy J", "notes",
)  # fmt: skip
UNKNOWN = "unknown"


def seed_line(run: Run, target: float) -> str:
    """``torch  seed 3  93.91 %  below the target  41.2 s (DAWNBench), 43.0 s (MLPerf)``"""
    assert run.accuracy is not None
    reached = "reached the target" if run.accuracy >= target else "below the target"
    seconds = {name: clock(run) for name, clock in DEFINITIONS.items()}
    times = [f"{figure(value)} s ({name})" for name, value in seconds.items() if value is not None]
    time = ", ".join(times) or "continued, so its time does not count"
    return f"{run.environment}  seed {run.settings['seed']}  {run.accuracy:.2%}  {reached}  {time}"


def lines(summaries: Sequence[Summary]) -> list[str]:
    """Return the table for a terminal: a line for each environment and definition of the clock."""
    return align([list(HEAD), *rows(summaries)])


def markdown(summaries: Sequence[Summary]) -> str:
    """Return the table as Markdown, with the task, the target and how to read it."""
    run = summaries[0].runs[0]
    return "\n\n".join(
        [
            f"**{run.task}**, scale {run.scale}, {run.division} division, target {summaries[0].target:.1%}, "
            f"{len(run.seconds)} epochs",
            page.table(HEAD, rows(summaries), right=slice(2, -1)),
            f"Measured {run.when[:10]} on {run.machine.get('processor')}, {run.settings['threads']} threads"
            f"{''.join(', ' + gpu['name'] for gpu in run.machine.get('gpus', []))}. Data: {run.data['origin']}. "
            "[low middle high]: 95 % interval.",
        ]
    )


def rows(summaries: Iterable[Summary]) -> list[list[str]]:
    return [row(summary, clock) for summary in summaries for clock in DEFINITIONS]


def row(summary: Summary, clock: str) -> list[str]:
    run, times = summary.runs[0], summary.times[clock]
    return [
        run.environment,
        versions(run.versions),
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
    return interval(value, lambda one: figure(one) if form is None else form.format(factor * one))


def energy(summary: Summary) -> str:
    parts = (summary.energy or {}).items()
    return (
        ", ".join(f"{source} {UNKNOWN if value is None else figure(value)}" for source, value in parts)
        or UNKNOWN
    )


def notes(summary: Summary) -> list[str]:
    """Return what limits the result: the division, rejected convergence, continued trainings, busy machine, data."""
    texts = [] if summary.runs[0].division == CLOSED else [f"{summary.runs[0].division} division"]
    if summary.rejected:
        texts.append(f"rejected: converges faster than the reference (p {summary.reference_p:.2g})")
    if summary.continued:
        texts.append(f"{summary.continued} continued, whose time does not count")
    if any(run.busy for run in summary.runs):
        texts.append("busy machine")
    if summary.runs[0].data.get("origin") == "synthetic":
        texts.append("synthetic data")
    return texts


def to_json(summaries: Sequence[Summary]) -> str:
    return json.dumps(schema.wrap({"results": [facts(summary) for summary in summaries]}), indent=1) + "\n"


def facts(summary: Summary) -> dict[str, Any]:
    """Return a Summary as JSON. An unknown value is null."""
    run, price = summary.runs[0], summary.price
    shared = {
        name: getattr(run, name) for name in ("environment", "versions", "task", "scale", "machine", "data")
    }
    return {
        **shared,
        "settings": {name: value for name, value in run.settings.items() if name != "seed"},
        "division": run.division,
        "tricks": run.plan.get("tricks"),
        "epochs": len(run.seconds),
        "target": summary.target,
        "seeds": [one.settings["seed"] for one in summary.runs],
        "continued": summary.continued,
        "accuracies": [one.accuracy for one in summary.runs],
        "accuracy": as_dict(summary.accuracy),
        "deviation": as_dict(summary.deviation),
        "probability": as_dict(summary.probability),
        "epoch_seconds": as_dict(summary.epoch),
        "times": {
            name: None if times is None else times_facts(times) for name, times in summary.times.items()
        },
        "compile_seconds": summary.compile_seconds,
        "price": None if price is None else {**price._asdict(), "day": price.day and price.day.isoformat()},
        "cost": as_dict(summary.cost),
        "energy": summary.energy,
        "reference_p": summary.reference_p,
        "rejected": summary.rejected,
    }


def times_facts(times: Any) -> dict[str, Any]:
    values = asdict(times)
    return {**values, "mean": as_dict(times.mean), "expected": as_dict(times.expected)}


def as_dict(value: Estimate | None) -> dict[str, float | None] | None:
    return None if value is None else value._asdict()
