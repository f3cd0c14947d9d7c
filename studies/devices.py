"""How much faster is training on several devices, and what does each need?

    python -m studies devices [--framework NAME] [--task TASK] [--devices N ...]

Launches on one device and on several take turns, each in a fresh process. With weak scaling each device has the batch
of one device; with strong scaling the batch is divided. On a CPU, a device is one thread on a processor of its own;
devices that are more than the processors share them, which the table says.
By default, measures the first mode of each framework, and the modes that only several devices have. Writes
docs/results/devices.md, which describes the columns. Every Run stays in .stele/devices.
"""

import argparse
import dataclasses
from collections import defaultdict
from datetime import date
from pathlib import Path
from statistics import median

from stele import environments, temporary
from stele.environments import Environment
from stele.measuring import devices, lock, machine, measure, processors, progress, store
from stele.measuring.run import Communication, Options, Run
from stele.measuring.settings import DEVICES, SCALINGS, Settings
from stele.report import page
from stele.text import MIB
from studies.ready import environments_with

PAGE, FOLDER = Path(__file__).parents[1] / "docs" / "results" / "devices.md", Path(".stele/devices")
HEAD = (
    "environment",
    "task",
    "devices",
    "scaling",
    "speed-up",
    "efficiency",
    "peak memory, MiB",
    "start, s",
    "communication, ms",
    "overlap",
)
# a launch with a number of steps does not evaluate, and times the communication
OPTIONS = Options(steps=20, communication=8)


def launch(environment: Environment, task: str, scale: str, settings: Settings, caches: Path) -> Run:
    """Return the Run of one launch, after it is saved. Raises measure.SideFailed."""
    fields, _ = measure.inputs(task)
    plan = measure.Plan(task=task, phase="train", scale=scale, options=OPTIONS, **fields)
    side, title = {environment.name: environment}, f"{environment.name} {task}, {settings.summary()}"
    with progress.waiting(title):
        run = measure.side_by_side(side, plan, settings, caches=caches)[environment.name]
    store.save(run, FOLDER)
    return run


def selected(task: str, settings: Settings, names: list[str] | None) -> list[Environment]:
    """Return the environments that can train a task on several devices: of ``names``, or of the defaults."""
    ready = environments_with(task, "train", settings, names)
    return [one for one in ready if names or one.base is None or one.support.several]


def on_one_device(environment: Environment) -> Environment:
    """Return the environment, or its first mode if its own mode needs several devices."""
    return environments.load(environment.base) if environment.support.several else environment


def rows(environment: Environment, task: str, arguments: argparse.Namespace) -> list[list[str]]:
    """Measure one recipe, and return a row for each number of devices and kind of scaling.

    Its launches share the compilations, which are not timed.
    """
    one = Settings(device=arguments.device, threads=1, malloc="steady")
    single = on_one_device(environment)
    cells = {
        (count, scaling): dataclasses.replace(one, devices=count, scaling=scaling)
        for count in arguments.devices
        for scaling in SCALINGS
    }
    pairs = defaultdict(list)
    with temporary.folder() as caches:
        for _ in range(arguments.launches):
            alone = launch(single, task, arguments.scale, one, caches)
            for cell, settings in cells.items():
                pairs[cell].append((alone, launch(environment, task, arguments.scale, settings, caches)))
    return [
        [
            environment.name,
            task,
            label(count, arguments.device),
            scaling,
            *facts(count, pairs[count, scaling]),
        ]
        for count, scaling in cells
    ]


def label(count: int, device: str) -> str:
    """Return the number of devices, with the processors that they share if there are too few."""
    available = processors.count()
    return f"{count} on {available} processors" if device == "cpu" and count > available else str(count)


def facts(count: int, pairs: list[tuple[Run, Run]]) -> list[str]:
    """Return speed-up, efficiency, memory and start-up of pairs of launches, on one device and on several."""
    speed_ups = sorted(throughput(several) / throughput(one) for one, several in pairs)
    middle, low, high = median(speed_ups), speed_ups[0], speed_ups[-1]
    several = pairs[-1][1]
    peaks = [rank.device or rank.host or 0 for rank in several.memory.ranks or (several.memory,)]
    starts = [median(run.framework.start_seconds or 0.0 for run in side) for side in zip(*pairs, strict=True)]
    return [
        f"{middle:.2f} [{low:.2f} {high:.2f}]",
        f"{middle / count:.0%}",
        " + ".join(f"{peak / MIB:,.0f}" for peak in peaks),
        f"{starts[1]:.1f} (one: {starts[0]:.1f})",
        *communication([run for _, run in pairs if run.communication]),
    ]


def communication(runs: list[Run]) -> tuple[str, str]:
    """Return the time of communication and its overlap in the middle of the launches; empty if nothing was read."""
    if not runs:
        return "", ""
    alone = [median(run.communication.alone) for run in runs if run.communication]
    overlaps = [overlap(run.communication) for run in runs if run.communication]
    return f"{1e3 * median(alone):.1f}", f"{median(overlaps):.0%}"


def overlap(seconds: Communication) -> float:
    """Return the share of the communication that did not make a step longer. Below 0: it also slows the computation."""
    longer = median(both - without for both, without in zip(seconds.with_, seconds.without, strict=True))
    return 1 - longer / median(seconds.alone)


def throughput(run: Run) -> float:
    """Return the samples per second of the median step."""
    return run.steps.batch / median(run.counted_seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--framework", action="append", metavar="NAME", help="default: see above")
    parser.add_argument("--task", action="append", metavar="TASK", help="default: densenet121 and transformer")
    parser.add_argument("--scale", default="gate", help="default: %(default)s")
    parser.add_argument("--device", choices=DEVICES, default=devices.default(), help="default: %(default)s")
    parser.add_argument("--devices", type=int, nargs="+", default=[2], metavar="N", help="default: 2")
    parser.add_argument("--page", type=Path, default=PAGE, help="default: docs/results/devices.md")
    parser.add_argument("--launches", type=int, default=3, metavar="N", help="of each; default: %(default)s")
    arguments = parser.parse_args()
    found, where = [], Settings(device=arguments.device, threads=1, devices=max(arguments.devices))
    with lock.machine("tox -e studies -- devices", wait=True, say=print):
        for task in arguments.task or ("densenet121", "transformer"):
            for environment in selected(task, where, arguments.framework):
                found += rows(environment, task, arguments)
                print(*("  ".join(row) for row in found[-len(SCALINGS) * len(arguments.devices) :]), sep="\n")
                page.fill(arguments.page, markdown(found, arguments))  # on disk before the next one


def markdown(found: list[list[str]], arguments: argparse.Namespace) -> str:
    machine_facts = machine.facts()
    where = f"{machine_facts.processor}, {machine_facts.processors} processors"
    kind = "one thread each" if arguments.device == "cpu" else "GPUs"
    return (
        page.table(HEAD, found, right=slice(4, None))
        + f"\n\nMeasured {date.today()} on {where}, {kind}, scale {arguments.scale}, "
        f"launches of each: {arguments.launches}. Speed-up: median [smallest largest] of the ratios of launches that "
        "took turns."
    )


if __name__ == "__main__":
    main()
