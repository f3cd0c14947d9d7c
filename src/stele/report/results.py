"""Format Runs as a line, as the terminal's table, and as Markdown. Returns strings, prints nothing."""

from collections.abc import Iterable, Sequence
from itertools import groupby, islice
from typing import NamedTuple

from stele.environments import described, names
from stele.errors import SteleError
from stele.measuring.machine import name_of
from stele.measuring.run import Run
from stele.report import page
from stele.statistics import Estimate, median
from stele.text import MIB, align, interval, mebibytes, period, versions
from stele_suite import tasks

PHASES = ("train", "infer")
BUSY = "busy machine"

# task, phase, environment
Key = tuple[str, str, str]


def line(run: Run) -> str:
    """Return ``torch  cnn train  [12.0 12.1 12.3] ms  5,280 images/s``, then accuracy and caveats."""
    step = median(run.counted_seconds)
    parts = [run.environment, f"{run.task} {run.phase}", f"{interval(step)} ms", rate(run, step)]
    return "  ".join(filter(None, [*parts, named_accuracy(run), *caveats(run)]))


def named_accuracy(run: Run) -> str:
    """Return ``accuracy 36.0%``, or the score of the task such as ``AUC 0.803``; empty if the Run has none."""
    return "" if run.learning.accuracy is None else f"{tasks.score_name(run.task)} {accuracy(run)}"


def accuracy(run: Run) -> str:
    """Return the accuracy as a percentage, or the score of the task as a fraction; "none" if the Run has none."""
    if run.learning.accuracy is None:
        return "none"
    return (
        f"{run.learning.accuracy:.1%}" if tasks.score_name(run.task) == "accuracy" else f"{run.learning.accuracy:.3f}"
    )


def rate(run: Run, step: Estimate) -> str:
    """Return what is counted in a second, such as images, at ``step`` seconds a step."""
    return f"{per_second(run, step)} {tasks.unit(run.task)}/s"


def per_second(run: Run, step: Estimate) -> str:
    return f"{run.steps.batch * tasks.units(run.task, run.scale) / step.middle:,.0f}"


def caveats(run: Run) -> list[str]:
    """Return caveats to show beside a Run: not steady, busy machine, synthetic data, origin of the weights, form."""
    notes = [] if run.steps.steady else ["not steady"]
    if run.busy:
        notes.append(BUSY)
    if run.data.origin == "synthetic":
        notes.append("synthetic data")
    if tasks.pretrained(run.task):
        notes.append(f"{run.weights} weights")
    if run.options.form:
        notes.append(f"{run.task} in the form {run.options.form}")
    return notes


def sort_key(run: Run) -> tuple[int, str, int, int]:
    """Return the sort key of a Run in tables: task, then training before inference, then environment."""
    task = tasks.NAMES.index(run.task) if run.task in tasks.NAMES else len(tasks.NAMES)
    return task, run.task, PHASES.index(run.phase), table_order(run.environment)


def table_order(environment: str) -> int:
    """Return the position of an environment in tables; environments that a user pinned come last."""
    return names().index(environment) if environment in names() else len(names())


class DifferentRecipe(NamedTuple):
    """A recipe that differs from the golden numbers. The terminal shows its message instead of a speed."""

    environment: str
    task: str
    phase: str
    message: str


def terminal(runs: Iterable[Run], differences: Iterable[DifferentRecipe] = ()) -> list[str]:
    """Return the tables at the end of a session below one header: one for each task and phase, with the fastest first.

    If all Runs are of one environment, each task and phase is a line, without a ratio to the fastest.
    """
    tables = [sorted(table, key=median_step) for _, table in groupby(sorted(runs, key=sort_key), key=title)]
    lines = tables_below_header(tables) if tables else []
    rows = [[recipe.environment, f"{recipe.task} {recipe.phase}", recipe.message] for recipe in differences]
    return [*lines, "", "differs from the golden numbers", *align(rows)] if rows else lines


def tables_below_header(tables: Sequence[Sequence[Run]]) -> list[str]:
    """Return the lines of at least one table; each has at least one Run."""
    first, several = tables[0][0], len({run.environment for table in tables for run in table}) > 1
    scale, ratio = (first.scale, "ratio") if several else (f"{first.environment}, {first.scale}", "")
    head = [scale, "[low median high] ms", ratio, "rate", "first step", "import", "peak memory", "", ""]
    rows = [cells(run, table[0] if several else None) for table in tables for run in table]
    header, *lines = align([head, *rows])
    shown, rest = [header], iter(lines)
    for table in tables:
        shown += ["", title(table[0])] if several else []
        shown += islice(rest, len(table))
    return shown


def median_step(run: Run) -> float:
    return median(run.counted_seconds).middle


def title(run: Run) -> str:
    return f"{run.task} {run.phase}, batch {run.steps.batch}"


def cells(run: Run, fastest: Run | None) -> list[str]:
    """Return the cells of a Run's line in the terminal's tables, with its ratio to ``fastest`` if there is one."""
    step = median(run.counted_seconds)
    return [
        title(run) if fastest is None else run.environment,
        interval(step),
        "" if fastest is None else f"{step.middle / median_step(fastest):.2f}",
        rate(run, step),
        f"{run.first_step:.2f} s",
        f"{run.framework.import_seconds:.1f} s",
        ", ".join(filter(None, [mebibytes(run.memory.host), device_memory(run)])),
        named_accuracy(run),
        ", ".join(caveats(run)),
    ]


def device_memory(run: Run) -> str:
    """Return the memory of the device, empty on a CPU: ``device 300 MiB, 812 MiB with its context and caches``."""
    if run.memory.device is None:
        return ""
    process = mebibytes(run.memory.process)
    return f"device {mebibytes(run.memory.device)}" + (f", {process} with its context and caches" if process else "")


def markdown(runs: Iterable[Run]) -> str:
    """Return the newest Runs as Markdown: for each machine, a table for each task, and the date and settings.

    No table mixes machines. Machines with the same facts are one.
    """
    machines: dict[str, dict[Key, Run]] = {}
    for run in runs:
        machines.setdefault(name_of(run.machine), {})[key_of(run)] = run
    if len(machines) < 2:
        return tables_of_machine(next(iter(machines.values()), {}))
    return "\n\n".join(f"## {name}\n\n{tables_of_machine(machines[name])}" for name in sorted(machines))


def key_of(run: Run) -> Key:
    return run.task, run.phase, run.environment


def newest_runs(runs: Iterable[Run]) -> dict[Key, Run]:
    """Return the last Run of each task, phase and environment. Raises SteleError if there is none."""
    newest = {key_of(run): run for run in runs}
    if not newest:
        raise SteleError("There are no Runs to show. Measure with: pytest perf_tests --benchmark-only")
    return newest


def tables_of_machine(newest: dict[Key, Run]) -> str:
    shown = list(newest_runs(newest.values()).values())
    parts = []
    for task, group in groupby(sorted(shown, key=sort_key), key=lambda run: run.task):
        parts.append(task_table(task, list(group)))
    return "\n\n".join([*parts, *provenance(shown)])


HEADER = (
    "framework",
    "mode",
    "version",
    "training ms/step",
    "{unit}/s",
    "first step s",
    "{score}",
    "inference ms/batch",
    "{unit}/s",
    "import s",
    "peak memory MiB",
)


def task_table(task: str, runs: list[Run]) -> str:
    """Return the Markdown table of one task."""
    header = [title.format(unit=tasks.unit(task), score=tasks.score_name(task)) for title in HEADER]
    rows = []
    for name in sorted({run.environment for run in runs}, key=table_order):
        phases = {run.phase: run for run in runs if run.environment == name}
        rows.append(table_row(phases.get("train"), phases.get("infer")))
    table = page.table(header, rows, right=slice(3, None))
    return f"**{task}**, batch {runs[0].steps.batch}, scale {runs[0].scale}\n\n{table}"


def table_row(train: Run | None, infer: Run | None) -> list[str]:
    """Return the table row of one environment. A phase without a Run shows "not run"."""
    either = train or infer
    assert either is not None
    training = ["not run"] * 4
    if train is not None:
        step = median(train.counted_seconds)
        training = [
            step_cell(train),
            per_second(train, step),
            f"{train.first_step:.2f}",
            accuracy(train),
        ]
    inference = ["not run"] * 2
    if infer is not None:
        step = median(infer.counted_seconds)
        inference = [step_cell(infer), per_second(infer, step)]
    memory = "unknown" if either.memory.host is None else f"{either.memory.host / MIB:,.0f}"
    memory = ", ".join(filter(None, [memory, device_memory(either)]))
    import_seconds = f"{either.framework.import_seconds:.1f}"
    return [
        either.label,
        mode_cell(either),
        versions(either.framework.versions),
        *training,
        *inference,
        import_seconds,
        memory,
    ]


def mode_cell(run: Run) -> str:
    """Return the mode of a Run; a first mode that also has the mode "as-shipped" is tuned, and says so."""
    mode = run.mode or "default"
    tuned = {
        environment.label: environment.mode for environment in described().values() if "as-shipped" in environment.modes
    }
    return f"{mode}, tuned" if tuned.get(run.label.partition(",")[0]) == mode else mode


def step_cell(run: Run) -> str:
    """Return the interval of the median step, and whether other processes disturbed it."""
    return interval(median(run.counted_seconds)) + (f" {BUSY}" if run.busy else "")


def provenance(runs: list[Run]) -> list[str]:
    """Return a paragraph with the date, machine, settings and data of the Runs, and how to read the numbers."""
    run = runs[0]
    days = sorted({run.when[:10] for run in runs})
    origins = ", ".join(sorted({f"{run.task} {run.data.origin}" for run in runs}))
    gpus = "".join(f", {gpu['name']}" for gpu in run.machine.gpus)
    settings = run.settings.summary()
    return [
        f"Measured {period(days)} on {run.machine.processor}, "
        f"{run.machine.processors} processors{gpus}, {settings}. Data: {origins}. "
        "[low median high]: the 95 % interval of the median within one launch; launches differ by more."
    ]
