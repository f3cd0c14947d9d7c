"""Runs to text: the line, the terminal's table, Markdown. Returns strings, prints nothing."""

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from stele import ladder, page
from stele.capabilities import EXPECTED, Answer
from stele.defaults import Change
from stele.environments import Environment, names
from stele.errors import SteleError
from stele.ladder import Ascent, Finding
from stele.run import Run
from stele.settings import Settings
from stele.statistics import Estimate, median
from stele_worker import tasks

SAMPLES = {"cnn": "images", "resnet50": "images", "gru": "reviews"}
PHASES = ("train", "infer")
MIB = 2**20


def line(run: Run) -> str:
    """``torch  cnn train  [12.0 12.1 12.3] ms  5,280 images/s``, then whatever a reader must know."""
    step = median(run.counted)
    parts = [run.environment, f"{run.task} {run.phase}", f"{interval(step)} ms", rate(run, step)]
    if run.accuracy is not None:
        parts.append(f"accuracy {run.accuracy:.1%}")
    return "  ".join([*parts, *remarks(run)])


def milliseconds(seconds: float) -> str:
    return figure(seconds * 1e3)


def interval(step: Estimate, shown: Callable[[float], str] = milliseconds) -> str:
    """[low middle high], seconds shown as milliseconds unless told otherwise."""
    return "[" + " ".join("?" if value is None else shown(value) for value in step) + "]"


def figure(value: float) -> str:
    """Three significant digits, never an exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


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
    sentence: str


def terminal(runs: Iterable[Run], broken: Iterable[Broken] = ()) -> list[str]:
    """The table at the end of a session: a title for each task and phase, a line for each framework."""
    lines = []
    for (task, phase), group in groupby(sorted(runs, key=order), key=lambda run: (run.task, run.phase)):
        rows = list(group)
        lines += ["", f"{task} {phase}, batch {rows[0].batch}, {rows[0].scale}"]
        lines += aligned([cells(run) for run in rows])
    wrong = [[row.environment, f"{row.task} {row.phase}", row.sentence] for row in broken]
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


def environments(facts: Sequence[dict[str, str | None]]) -> list[str]:
    """``stele env list``: name, release, state, and what to do."""
    columns = ("name", "version", "word", "reason")
    return aligned([[fact[column] or "" for column in columns] for fact in facts])


def climbed(environment: str, task: str, findings: Sequence[Finding]) -> str:
    """``torch  cnn  rung 9  largest error 3.4e-07 at conv3.weight``, or where it breaks."""
    parts = [environment, task, f"rung {ladder.reached(findings)}"]
    first = ladder.broken(findings)
    return "  ".join([*parts, ladder.sentence(first) if first else "all hold"])


def ladders(found: dict[tuple[Environment, str], Ascent], settings: Settings) -> str:
    """The rungs by framework, a table a task, as Markdown: of each recipe the largest relative error on each rung."""
    epsilon = ladder.EPSILON[settings.precision]
    rungs = range(1, 1 + max(finding.rung for ascent in found.values() for finding in ascent.findings))
    head = ["framework", "version", "climbed", *ladder.TITLES[: len(rungs)]]
    parts = []
    for task in dict.fromkeys(task for _, task in found):
        rows = [
            [row.label, *ascent_row(ascent, rungs, epsilon)]
            for (row, of), ascent in sorted(found.items(), key=lambda climbed: place(climbed[0][0].name))
            if of == task
        ]
        parts.append(f"**{task}**, {settings.sentence()}\n\n{page.table(head, rows)}")
    return "\n\n".join(parts)


def ascent_row(ascent: Ascent, rungs: Iterable[int], epsilon: float) -> list[str]:
    """One recipe: its releases, the day, and each rung."""
    cells = {finding.rung: rung_cell(finding, epsilon) for finding in ascent.findings}
    return [releases(ascent.versions), ascent.day, *(cells.get(rung, "none") for rung in rungs)]


def rung_cell(finding: Finding, epsilon: float) -> str:
    """``3.4e-07 (3 ulp)``, a word where there is no number, and a sentence where it breaks or is about accuracy."""
    if finding.word == "breaks":
        return f"broken: {finding.sentence}"
    if finding.sentence:
        return finding.sentence
    if not finding.error:
        return "exact" if finding.error == 0 else "holds"
    return f"{finding.error:.1e} ({finding.error / epsilon:,.3g} ulp)"


MARKS = {"yes": "yes", "no": "no", "wrong": "**wrong**", "failed": "**failed**"}


def answers(environment: str, found: dict[str, Answer]) -> list[str]:
    """``torch  gradient penalty  yes``, a line a capability."""
    rows = [[environment, EXPECTED[name][0], answer.word, answer.reason] for name, answer in found.items()]
    return aligned(rows)


def capabilities(found: dict[Environment, dict[str, Answer]]) -> str:
    """Who can do what, as Markdown, with the reasons below."""
    head = ["framework", *(title for title, _ in EXPECTED.values())]
    rows = [[row.label, *(MARKS[of[name].word] for name in EXPECTED)] for row, of in found.items()]
    reasons = [
        f"- {row.label}, {EXPECTED[name][0]}: {page.escaped(answer.reason)}"
        for row, of in found.items()
        for name, answer in of.items()
        if answer.reason
    ]
    return "\n\n".join(["**Capabilities**", page.table(head, rows), "\n".join(reasons)])


def facts(table: dict[str, Any]) -> list[str]:
    """What a framework does by default, a line a fact."""
    return aligned([[fact, word(value)] for fact, value in table.items()])


def changes(old: str, new: str, found: Sequence[Change]) -> list[str]:
    """``epsilon  1e-7  →  1e-8``, a line a change."""
    if not found:
        return [f"{old} and {new} do the same when nothing is passed, as far as is asked."]
    return aligned([["", old, "", new], *([c.fact, word(c.old), "→", word(c.new)] for c in found)])


def word(value: Any) -> str:
    return "none" if value is None else str(value)


def mebibytes(count: int | None) -> str:
    return "" if count is None else f"{count / MIB:,.0f} MiB"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as lines, every column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def markdown(runs: Sequence[Run]) -> str:
    """The newest Run of each row as Markdown: a table for each task, and a sentence on where it was measured."""
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


def releases(versions: dict[str, str | None]) -> str:
    """What computes: the framework, and its backend after it."""
    return ", ".join(f"{name} {number}" for name, number in versions.items() if number)


def provenance(runs: list[Run]) -> list[str]:
    """When and where, and how the numbers are to be read."""
    run = runs[0]
    days = sorted({run.when[:10] for run in runs})
    origins = ", ".join(sorted({f"{run.task} {run.data['origin']}" for run in runs}))
    gpus = "".join(f", {gpu['name']}" for gpu in run.machine["gpus"])
    settings = Settings(**run.settings).sentence()
    return [
        f"Measured {' to '.join(sorted({days[0], days[-1]}))} on {run.machine['processor']}, "
        f"{run.machine['processors']} processors{gpus}, {settings}. Data: {origins}. "
        "[low median high]: the 95 % interval of the median within one launch; launches differ by more."
    ]
