"""Runs to text: the line, the terminal's table, Markdown. Returns strings, prints nothing."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from stele.environments import names
from stele.errors import SteleError
from stele.measuring.run import Run
from stele.measuring.settings import Settings
from stele.report import page
from stele.statistics import Estimate, median
from stele.text import MIB, aligned, interval, mebibytes, releases
from stele_worker import tasks

SAMPLES = {"cnn": "images", "resnet50": "images", "gru": "reviews"}


PHASES = ("train", "infer")


def line(run: Run) -> str:
    """``torch  cnn train  [12.0 12.1 12.3] ms  5,280 images/s``, then whatever a reader must know."""
    step = median(run.counted)
    parts = [run.environment, f"{run.task} {run.phase}", f"{interval(step)} ms", rate(run, step)]
    if run.accuracy is not None:
        parts.append(f"accuracy {run.accuracy:.1%}")
    return "  ".join([*parts, *remarks(run)])


def rate(run: Run, step: Estimate) -> str:
    return f"{run.batch / step.middle:,.0f} {SAMPLES[run.task]}/s"


def remarks(run: Run) -> list[str]:
    """What makes this Run less than it seems."""
    found = [] if run.steady else ["not steady"]
    if run.data["origin"] == "synthetic":
        found.append("synthetic data")
    if run.task == "resnet50":
        found.append(f"{run.weights} weights")
    if run.plan.get("form"):
        found.append(f"{run.task} in the form {run.plan['form']}")
    return found


def order(run: Run) -> tuple[int, int, int]:
    """By task, then training before inference, then framework, as the tables stand."""
    return tasks.NAMES.index(run.task), PHASES.index(run.phase), place(run.environment)


def place(environment: str) -> int:
    """A row's place in the tables; what a user pinned comes last."""
    return names().index(environment) if environment in names() else len(names())


class Broken(NamedTuple):
    """A recipe that computes something else: it has a row in the table, and no numbers in it."""

    environment: str
    task: str
    phase: str
    message: str


def terminal(runs: Iterable[Run], broken: Iterable[Broken] = ()) -> list[str]:
    """The table at the end of a session: a title for each task and phase, a line for each framework."""
    lines = []
    for (task, phase), group in groupby(sorted(runs, key=order), key=lambda run: (run.task, run.phase)):
        rows = list(group)
        lines += ["", f"{task} {phase}, batch {rows[0].batch}, {rows[0].scale}"]
        lines += aligned([cells(run) for run in rows])
    wrong = [[row.environment, f"{row.task} {row.phase}", row.message] for row in broken]
    return [*lines, "", "computes something else", *aligned(wrong)] if wrong else lines


def cells(run: Run) -> list[str]:
    step = median(run.counted)
    return [
        run.environment,
        f"{interval(step)} ms",
        rate(run, step),
        f"epoch {run.epoch_seconds(step.middle):,.1f} s",
        f"all {run.total_seconds(step.middle):,.0f} s",
        f"first {run.first_step:.2f} s",
        f"import {run.import_seconds:.1f} s",
        mebibytes(run.host_memory),
        "" if run.accuracy is None else f"accuracy {run.accuracy:.1%}",
        ", ".join(remarks(run)),
    ]


def markdown(runs: Sequence[Run]) -> str:
    """The newest Run of each row as Markdown: a table for each task, and a message on where it was measured."""
    shown = list(newest(runs).values())
    parts = []
    for task, group in groupby(sorted(shown, key=order), key=lambda run: run.task):
        parts.append(task_table(task, list(group)))
    return "\n\n".join([*parts, *provenance(shown)])


def newest(runs: Iterable[Run]) -> dict[tuple[str, str, str], Run]:
    """The last Run of each task, phase and environment. Raises SteleError if there is none."""
    found = {(run.task, run.phase, run.environment): run for run in runs}
    if not found:
        raise SteleError("There are no Runs to show. Measure some: pytest perf_tests --benchmark-only")
    return found


HEADER = (
    "framework", "version", "training ms/step", "{}/s", "first step s", "accuracy",
    "inference ms/batch", "{}/s", "import s", "peak memory MiB",
)  # fmt: skip


def task_table(task: str, runs: list[Run]) -> str:
    header = [title.format(SAMPLES[task]) for title in HEADER]
    rows = []
    for name in sorted({run.environment for run in runs}, key=place):
        phases = {run.phase: run for run in runs if run.environment == name}
        rows.append(row(phases.get("train"), phases.get("infer")))
    table = page.table(header, rows, right=slice(2, None))
    return f"**{task}**, batch {runs[0].batch}, scale {runs[0].scale}\n\n{table}"


def row(train: Run | None, infer: Run | None) -> list[str]:
    """One framework: what was not measured is said, never left blank."""
    either = train or infer
    assert either is not None
    trained = ["not run"] * 4
    if train is not None:
        step = median(train.counted)
        known = "none" if train.accuracy is None else f"{train.accuracy:.1%}"
        trained = [interval(step), f"{train.batch / step.middle:,.0f}", f"{train.first_step:.2f}", known]
    inferred = ["not run"] * 2
    if infer is not None:
        step = median(infer.counted)
        inferred = [interval(step), f"{infer.batch / step.middle:,.0f}"]
    memory = "unknown" if either.host_memory is None else f"{either.host_memory / MIB:,.0f}"
    imported = f"{either.import_seconds:.1f}"
    return [either.label, releases(either.versions), *trained, *inferred, imported, memory]


def provenance(runs: list[Run]) -> list[str]:
    """When and where, and how the numbers are to be read."""
    run = runs[0]
    days = sorted({run.when[:10] for run in runs})
    origins = ", ".join(sorted({f"{run.task} {run.data['origin']}" for run in runs}))
    gpus = "".join(f", {gpu['name']}" for gpu in run.machine["gpus"])
    settings = Settings(**run.settings).summary()
    return [
        f"Measured {' to '.join(sorted({days[0], days[-1]}))} on {run.machine['processor']}, "
        f"{run.machine['processors']} processors{gpus}, {settings}. Data: {origins}. "
        "[low median high]: the 95 % interval of the median within one launch; launches differ by more."
    ]
