"""The three tables of the Rosetta Stone as Markdown: published results beside results measured on this machine.

``published.json`` contains the published seconds and accuracies, and notes on how each computation differed. Seconds
of training are for the whole published task at the median step; seconds of ResNet-50 are for 1,000 images.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import msgspec

import stele_suite
from stele import environments, schema, text
from stele.measuring.run import Run
from stele.report import page, results
from stele.schema import about
from stele.statistics import median
from stele_suite import tasks


class Published(msgspec.Struct, frozen=True):
    """The published result of one framework."""

    version: Annotated[str | None, about("release")]
    k80_seconds: Annotated[
        float | None, about("duration on a K80: of the training, or of 1,000 images for `resnet50`", "s")
    ]
    p100_seconds: Annotated[float | None, about("duration on a P100", "s")]
    accuracy: Annotated[float | None, about("accuracy", "fraction")]
    notes: Annotated[tuple[str, ...], about("how the computation differs from the others")]


class PublishedFile(msgspec.Struct, frozen=True):
    """`src/stele_suite/published.json`: the results of the original Rosetta Stone, which `stele table` shows.

    It was written by hand.
    """

    source: Annotated[str, about("where the results were published")]
    cnn: Annotated[dict[str, Published], about("by environment")]
    resnet50: Annotated[dict[str, Published], about("by environment")]
    gru: Annotated[dict[str, Published], about("by environment")]


FILE = Path(stele_suite.__file__).parent / "published.json"
TITLES = {
    "cnn": "CNN on CIFAR-10: seconds for 10 epochs of training",
    "resnet50": "ResNet-50 features: seconds for 1,000 images",
    "gru": "GRU on IMDB: seconds for 3 epochs of training",
}
# of the published seconds
PHASE = {"cnn": "train", "resnet50": "infer", "gru": "train"}
BATCH = {task: tasks.make(task, "paper").batch for task in TITLES}
# announced in the original, without results
NEVER_WRITTEN = {"r-mxnet": "R-MXNet"}
HEADER = (
    "framework",
    "K80 s",
    "P100 s",
    "published accuracy",
    "release",
    "measured s",
    "accuracy",
    "inference ms",
    "remarks",
)


def tables(runs: Iterable[Run]) -> str:
    """Return a table for each task, with every environment of the original and of this suite.

    Another mode of an environment has a row only if it was measured. Raises SteleError if there are no Runs.
    """
    newest = results.newest_runs(runs)
    original = schema.of_document(schema.read(FILE), PublishedFile)
    parts = [table(task, getattr(original, task), newest) for task in TITLES]
    return "\n\n".join([*parts, *footing(original.source, list(newest.values()))])


def table(task: str, published: dict[str, Published], newest: dict[tuple[str, str, str], Run]) -> str:
    """Return the table of one task. ``published`` are the published results by environment."""
    ready = {name for run_task, _, name in newest if run_task == task}
    installed = [name for name in environments.names() if name in ready or name in environments.first_modes()]
    names = [*NEVER_WRITTEN, *installed, *sorted(ready.difference(installed))]
    shown = [name for name in names if name in published or name not in NEVER_WRITTEN]
    # the environments of the original come first, in its order
    shown.sort(key=lambda name: list(published).index(name) if name in published else len(published))
    rows = []
    for name in shown:
        phases = {phase: newest.get((task, phase, name)) for phase in results.PHASES}
        rows.append(table_row(task, name, published.get(name), phases["train"], phases["infer"]))
    return f"**{TITLES[task]}**\n\n{page.table(HEADER, rows, right=slice(1, -1))}"


def table_row(
    task: str, name: str, published: Published | None, train: Run | None, infer: Run | None
) -> tuple[str, ...]:
    """Return the table row of one environment."""
    run, either = (train if PHASE[task] == "train" else infer), train or infer
    return (
        NEVER_WRITTEN.get(name) or (either.label if either else environments.load(name).label),
        *published_cells(task, published),
        text.versions(either.framework.versions) if either else "",
        seconds(task, run) if run else "not run",
        percent(train.learning.accuracy) if train and task != "resnet50" else "",
        results.step_cell(infer) if infer else "not run",
        "; ".join(remarks(task, name, published, run, run or either)),
    )


def published_cells(task: str, published: Published | None) -> tuple[str, str, str]:
    """Return the published seconds on both GPUs, and the accuracy; "??" for a value that the original lacks."""
    if published is None:
        return "", "", ""
    figures = [published.k80_seconds, published.p100_seconds]
    accuracy = "" if task == "resnet50" else percent(published.accuracy)
    return *("??" if figure is None else f"{figure:g}" for figure in figures), accuracy  # type: ignore[return-value]


def percent(fraction: float | None) -> str:
    return "??" if fraction is None else f"{fraction:.1%}"


def seconds(task: str, run: Run) -> str:
    """Return [low middle high] of the published quantity, from the median step."""
    # a published task has a size
    scale = 1000 / run.steps.batch if task == "resnet50" else run.total_seconds(1.0) or 0.0
    return text.interval(median(run.counted_seconds), lambda step: text.figure(scale * step))


def remarks(task: str, name: str, published: Published | None, run: Run | None, either: Run | None) -> list[str]:
    """Return why the numbers of an environment are not comparable with the others, or why there are none."""
    notes = [f"published: {note}" for note in published.notes] if published else []
    if name in NEVER_WRITTEN:
        return notes
    if run is None:
        notes.append(why_empty(task, name, PHASE[task]))
    if either is not None:
        notes += results.caveats(either)
        if either.steps.batch != BATCH[task]:
            notes.append(f"batch {either.steps.batch}, not {BATCH[task]}")
    return [note for note in notes if note]


def why_empty(task: str, name: str, phase: str) -> str:
    """Return why a task and phase of an environment were not measured."""
    if name not in environments.names():
        return ""
    environment = environments.load(name)
    absent = environment.why_absent(task, phase, device="cpu", precision="fp32")
    return absent or environments.state(environment).reason or "not measured"


def footing(source: str, runs: list[Run]) -> list[str]:
    """Return how to read the tables: which numbers are comparable."""
    scales = ", ".join(sorted({run.scale for run in runs}))
    return [
        f"K80, P100 and published accuracy: {source}. ?? marks a value that the source does not give. Do not compare "
        "published numbers with measured ones: hardware, releases and, where the remarks say so, mathematics "
        "differ. Compare measured numbers only within one table, between rows without a remark on batch or form. "
        f"Scale of the measurements: {scales}. Measured seconds are for the published task at the median step. "
        "A measured accuracy is that after the training of this scale.",
        *results.provenance(runs),
    ]
