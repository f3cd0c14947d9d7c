"""What does a framework need for an operation, beside computing it?

    python perf_tests/operators.py [--framework NAME] [--launches N]      or: tox -e operators

Measures the task ``chain``, 200 operations in a row, in every mode of each framework, in two ways:

one element   a step of inference at width 1, over the number of operations
intercept     the intercept of a line through the duration of a step over the width, over the number of operations

Writes docs/overhead.md. Both agree if one is at most BAND of the other; where they do not, the page says so.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

import numpy

sys.path.insert(0, str(Path(__file__).parents[1]))

from fixtures.ready import environments_with
from stele.environments import Environment
from stele.measuring import lock, machine, measure, processors
from stele.measuring.settings import Settings
from stele.report import page
from stele.statistics import median
from stele_worker import tasks
from stele_worker.tasks.chain import WIDTHS

PAGE = Path(__file__).parents[1] / "docs" / "overhead.md"
BAND = 1.5  # one element over intercept, or the other way round
TASK = "chain"
HEADER = ("environment", "mode", "one element µs", "intercept µs", "training µs", "agreement")


def durations(environment: Environment, phase: str, settings: Settings, launches: int) -> dict[int, float]:
    """Return the median duration of a step at each width, in seconds: the middle of the launches."""
    found: dict[int, list[float]] = {width: [] for width in WIDTHS}
    for _ in range(launches):
        for width in WIDTHS if phase == "infer" else WIDTHS[:1]:
            plan = make_plan(phase, width)
            run = measure.side_by_side({environment.name: environment}, plan, settings)[environment.name]
            found[width].append(median(run.counted_seconds).middle)
    return {width: float(numpy.median(seconds)) for width, seconds in found.items() if seconds}


def make_plan(phase: str, width: int) -> measure.Plan:
    fields, _ = measure.inputs(TASK)
    return measure.Plan(task=TASK, phase=phase, scale=f"width-{width}", **fields)


def intercept(seconds: Mapping[int, float]) -> float:
    """Return the duration at width 0 of the line that fits best, with each point weighted by its own size."""
    widths = numpy.array(list(seconds))
    values = numpy.array(list(seconds.values()))
    return float(numpy.polyfit(widths, values, 1, w=1 / values)[1])


def row(environment: Environment, settings: Settings, launches: int) -> list[str]:
    label = environment.modes[environment.mode]["label"] if environment.mode else ""
    operations = tasks.units(TASK, "paper")
    infer = durations(environment, "infer", settings, launches)
    ways = [1e6 * infer[1] / operations, 1e6 * intercept(infer) / operations]
    where = {"device": settings.device, "precision": settings.precision}
    training = "none"
    if environment.why_absent(TASK, "train", **where) is None:
        training = f"{1e6 * durations(environment, 'train', settings, launches)[1] / operations:.2f}"
    return [environment.name, label, *(f"{way:.2f}" for way in ways), training, agreement(ways)]


def agreement(ways: Sequence[float]) -> str:
    """Return "yes", or how far the smallest and the largest are apart."""
    if min(ways) <= 0:
        return "no: the intercept is not positive"
    apart = max(ways) / min(ways)
    return "yes" if apart <= BAND else f"no: {apart:.1f} times"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--framework", action="append", metavar="NAME", help="default: all that are ready")
    parser.add_argument("--launches", type=int, default=3, metavar="N", help="default: %(default)s")
    arguments = parser.parse_args()
    settings, rows = Settings(device="cpu", threads=processors.count()), []
    with lock.machine("tox -e operators", wait=True, say=print):
        for environment in environments_with(TASK, "infer", settings, arguments.framework):
            try:
                rows.append(row(environment, settings, arguments.launches))
            except measure.SideFailed as error:
                rows.append([environment.name, "", "failed", "", "", str(error).splitlines()[0]])
            print("  ".join(rows[-1]), flush=True)
    page.fill(PAGE, page.table(HEADER, rows, right=slice(2, 5)) + "\n\n" + provenance(settings))


def provenance(settings: Settings) -> str:
    facts = machine.facts()
    return (
        f"Measured {date.today()} on {facts['processor']}, {facts['processors']} processors, "
        f"{settings.threads} threads."
    )


if __name__ == "__main__":
    main()
