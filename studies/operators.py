"""What does a framework need for an operation, beside computing it?

    python -m studies operators [--framework NAME] [--launches N]
    python -m studies operators --table

Measures the task ``chain``, 200 operations in a row, in every mode of each framework, in three ways:

one element   a step of inference at width 1, over the number of operations
intercept     the intercept of a line through the duration of a step over the width, over the number of operations
profiler      a step without the profiler minus its busy time under the profiler, over the number of operations

Writes docs/results/overhead.md, which says what is busy. The three agree if the largest is at most BAND times the
smallest; where they do not, the page says so. Where the profiler shows no operations, the first two are compared. What
was measured stays in .stele/operators.jsonl; an interrupted command continues from there.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy

from stele import environments
from stele.environments import Environment
from stele.measuring import lock, machine, measure, processors
from stele.measuring.run import Options, Run
from stele.measuring.settings import Settings
from stele.report import page
from stele.statistics import intercept, median
from stele_suite import tasks
from stele_suite.tasks.chain import WIDTHS
from studies import launches
from studies.ready import environments_with, mode_label

PAGE = Path(__file__).parents[1] / "docs" / "results" / "overhead.md"
FILE = Path(".stele/operators.jsonl")
KEYS = ("environment", "result")  # of a line
BAND = 1.5  # the largest of the three ways over the smallest
TASK = "chain"
PROFILED = 20  # steps under the profiler: few, so that other work seldom disturbs all of the launches
NARROW, WIDE = WIDTHS[:2]  # profiled; a profile adds up the threads that may compute wider arrays
KERNELS_ONLY = ("jax",)  # whose profiler has events of compiled kernels without their dispatch
HEADER = (
    "environment",
    "mode",
    "one element µs",
    "intercept µs",
    "profiler µs",
    "training µs",
    "agreement",
)


def measured(environment: Environment, phase: str, settings: Settings, count: int) -> dict[int, list[Run]]:
    """Return the launches at each width; those of training have one width."""
    found: dict[int, list[Run]] = {width: [] for width in (WIDTHS if phase == "infer" else WIDTHS[:1])}
    for _ in range(count):
        for width, runs in found.items():
            sides = measure.side_by_side({environment.name: environment}, make_plan(phase, width), settings)
            runs.append(sides[environment.name])
    return found


def make_plan(phase: str, width: int) -> measure.Plan:
    fields, _ = measure.inputs(TASK)
    profiled = phase == "infer" and width in (NARROW, WIDE)
    options = Options(profile=PROFILED) if profiled else Options()
    return measure.Plan(task=TASK, phase=phase, scale=f"width-{width}", options=options, **fields)


def step(run: Run) -> float:
    """Return the duration of a step without the profiler, in seconds."""
    return median(run.counted_seconds).middle


def middle(values: Iterable[float]) -> float:
    return float(numpy.median(list(values)))


def beside_kernels(runs: Mapping[int, Sequence[Run]], *, kernels_only: bool) -> float | None:
    """Return the duration of a step without its busy time, in seconds: the middle of the launches.

    If the profiler has events of kernels only, they are the busy time, at width NARROW. Other profilers have events of
    operations, which contain dispatch and memory. The busy time of a step at width WIDE is then what its events take
    longer than those at width NARROW: dispatch and memory are the same, and so is the time of the profiler itself.
    Returns None if the profiler shows no operations.
    """
    if not all(in_operations(run) for width in (NARROW, WIDE) for run in runs[width]):
        return None
    if kernels_only:
        return middle(step(run) - in_operations(run) for run in runs[NARROW])
    pairs = zip(runs[NARROW], runs[WIDE], strict=True)
    return middle(step(wide) - (in_operations(wide) - in_operations(narrow)) for narrow, wide in pairs)


def in_operations(run: Run) -> float:
    """Return the self time of all operations of a step under the profiler, in seconds."""
    assert run.profile is not None
    return sum(seconds for seconds, _ in run.profile.operations.values())


def library(environment: Environment) -> str:
    """Return the framework whose profiler an environment uses: that of the backend in Keras."""
    return environment.variables.get("KERAS_BACKEND", environment.framework)


def row(environment: Environment, settings: Settings, count: int) -> list[str]:
    label = mode_label(environment)
    operations = tasks.units(TASK, "paper")
    runs = measured(environment, "infer", settings, count)
    seconds = {width: middle(map(step, each)) for width, each in runs.items()}
    kernels_only = library(environment) in KERNELS_ONLY
    ways = seconds[NARROW], intercept(seconds), beside_kernels(runs, kernels_only=kernels_only)
    shown = ["" if way is None else f"{1e6 * way / operations:.2f}" for way in ways]
    where = {"device": settings.device, "precision": settings.precision}
    training = "none"
    if environment.why_absent(TASK, "train", **where) is None:
        [steps] = measured(environment, "train", settings, count).values()
        training = f"{1e6 * middle(map(step, steps)) / operations:.2f}"
    return [environment.name, label, *shown, training, agreement(ways)]


def agreement(ways: Sequence[float | None]) -> str:
    """Return "yes", or how far the smallest and the largest are apart. None stands for a way without a result."""
    known = [way for way in ways if way is not None]
    if min(known) <= 0:
        return "no: a difference is not positive"
    apart = max(known) / min(known)
    judged = "yes" if apart <= BAND else f"no: {apart:.1f} times"
    return judged if len(known) == len(ways) else f"{judged}; the profiler shows no operations"


def measure_all(names: Sequence[str] | None, count: int) -> None:
    """Measure the environments that are not stored, with so many launches. Each is stored before the next."""
    settings = Settings(device="cpu", threads=processors.count())
    found = {one.name: one for one in environments_with(TASK, "infer", settings, names)}
    FILE.parent.mkdir(parents=True, exist_ok=True)

    def launch(name: str) -> dict[str, Any]:
        return {"row": row_or_failure(found[name], settings, count), "measured": provenance(settings)}

    launches.measure(FILE, KEYS, list(found), 1, launch)


def row_or_failure(environment: Environment, settings: Settings, count: int) -> list[str]:
    try:
        return row(environment, settings, count)
    except measure.SideFailed as error:
        return [environment.name, mode_label(environment), "failed", "", "", "", error.headline]


def markdown() -> str:
    """Return the table in the order of the environments, and when and where it was measured."""
    stored = launches.load(FILE, *KEYS)
    results = [stored[name][0] for name in environments.described() if name in stored]
    rows = [result["row"] for result in results]
    measured = dict.fromkeys(result["measured"] for result in results)
    return "\n\n".join([page.table(HEADER, rows, right=slice(2, 6)), *measured])


def provenance(settings: Settings) -> str:
    facts = machine.facts()
    return f"Measured {date.today()} on {facts.processor}, {facts.processors} processors, {settings.threads} threads."


def main() -> None:
    parser = launches.parser(__doc__, 3, framework="default: all that are ready", table=True)
    arguments = parser.parse_args()
    if not arguments.table:
        with lock.machine("tox -e studies -- operators", wait=True, say=print):
            measure_all(arguments.framework, arguments.launches)
    page.fill(PAGE, markdown())


if __name__ == "__main__":
    main()
