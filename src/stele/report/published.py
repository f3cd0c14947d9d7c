"""The three tables of the Rosetta Stone: what was published then beside what was measured here, as Markdown.

``baselines/published.json`` holds the published seconds and accuracies, and how each row's computation differed.
Seconds of training are those of the whole published task at the median step; of ResNet-50, those of 1,000 images.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stele import environments, text
from stele.measuring.run import Run
from stele.report import page, results
from stele.statistics import median
from stele_worker import tasks

FILE = Path(__file__).parent / "published.json"
TITLES = {
    "cnn": "CNN on CIFAR-10: seconds for 10 epochs of training",
    "resnet50": "ResNet-50 features: seconds for 1,000 images",
    "gru": "GRU on IMDB: seconds for 3 epochs of training",
}
PHASE = {"cnn": "train", "resnet50": "infer", "gru": "train"}  # of the published seconds
BATCH = {task: tasks.make(task, "paper").batch for task in TITLES}
NEVER_WRITTEN = {"r-mxnet": "R-MXNet"}  # rows that the original announced and left empty
HEADER = (
    "framework",
    "K80 s",
    "P100 s",
    "accuracy then",
    "release",
    "here s",
    "accuracy",
    "inference ms",
    "remarks",
)


def tables(runs: Sequence[Run]) -> str:
    """A table a task, every row of the original and of this suite in it. Raises SteleError if there are no Runs."""
    newest = results.newest(runs)
    then = json.loads(FILE.read_text())
    parts = [table(task, then[task], newest) for task in TITLES]
    return "\n\n".join([*parts, *footing(then["source"], list(newest.values()))])


def table(task: str, then: dict[str, Any], newest: dict[tuple[str, str, str], Run]) -> str:
    pinned = {name for known, _, name in newest if known == task} - set(environments.names())
    names = [*NEVER_WRITTEN, *environments.names(), *sorted(pinned)]
    shown = [name for name in names if name in then or name not in NEVER_WRITTEN]
    # the original's rows first, in its order
    shown.sort(key=lambda name: list(then).index(name) if name in then else len(then))
    rows = []
    for name in shown:
        phases = {phase: newest.get((task, phase, name)) for phase in results.PHASES}
        rows.append(row(task, name, then.get(name), phases["train"], phases["infer"]))
    return f"**{TITLES[task]}**\n\n{page.table(HEADER, rows, right=slice(1, -1))}"


def row(
    task: str, name: str, then: dict[str, Any] | None, train: Run | None, infer: Run | None
) -> tuple[str, ...]:
    asked, either = (train if PHASE[task] == "train" else infer), train or infer
    return (
        NEVER_WRITTEN.get(name) or (either.label if either else environments.load(name).label),
        *published(task, then),
        text.releases(either.versions) if either else "",
        seconds(task, asked) if asked else "not run",
        percent(train.accuracy) if train and task != "resnet50" else "",
        text.interval(median(infer.counted)) if infer else "not run",
        "; ".join(remarks(task, name, then, asked, asked or either)),
    )


def published(task: str, then: dict[str, Any] | None) -> tuple[str, str, str]:
    """What the original had, and what it left open."""
    if then is None:
        return "", "", ""
    figures = [then["k80_seconds"], then["p100_seconds"]]
    accuracy = "" if task == "resnet50" else percent(then["accuracy"])
    return *("??" if figure is None else f"{figure:g}" for figure in figures), accuracy  # type: ignore[return-value]


def percent(fraction: float | None) -> str:
    return "??" if fraction is None else f"{fraction:.1%}"


def seconds(task: str, run: Run) -> str:
    """[low middle high] of the published quantity, from the median step."""
    scale = 1000 / run.batch if task == "resnet50" else run.total_seconds(1.0)
    return text.interval(median(run.counted), lambda step: text.figure(scale * step))


def remarks(
    task: str, name: str, then: dict[str, Any] | None, asked: Run | None, either: Run | None
) -> list[str]:
    """Why the row's numbers do not compare with their neighbours, or why there are none."""
    found = [f"then: {note}" for note in then["notes"]] if then else []
    if name in NEVER_WRITTEN:
        return found
    if asked is None:
        found.append(why_empty(task, name, PHASE[task]))
    if either is not None:
        found += results.remarks(either)
        if either.batch != BATCH[task]:
            found.append(f"batch {either.batch}, not {BATCH[task]}")
    return [note for note in found if note]


def why_empty(task: str, name: str, phase: str) -> str:
    """Why a cell of a row was not measured."""
    if name not in environments.names():
        return ""
    environment = environments.load(name)
    absent = environment.why_absent(task, phase, device="cpu", precision="fp32")
    return absent or environments.state(environment).reason or "not measured"


def footing(source: str, runs: list[Run]) -> list[str]:
    """How to read the tables: what compares and what does not."""
    scales = ", ".join(sorted({run.scale for run in runs}))
    return [
        f"K80, P100 and accuracy then: {source}. ?? is what it left open. They stand beside this machine's numbers "
        "as a record; no number of then compares with one of here, for hardware, releases and, where the remarks "
        "say so, mathematics differ. Numbers here compare within a table only, between rows without a remark on "
        f"batch or form. Scale here: {scales}; seconds are what the published task takes at the median step.",
        *results.provenance(runs),
    ]
