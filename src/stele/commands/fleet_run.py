"""``stele fleet run``: measure cells on the nodes of a fleet."""

import argparse
import contextlib
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from stele import environments, files
from stele.commands import options
from stele.commands.options import CellOptions, FleetOptions, ProcessOptions
from stele.environments import Environment
from stele.errors import SteleError
from stele.fleet import campaign, cluster, dispatch, node, slurm, status
from stele.fleet.campaign import Campaign
from stele.fleet.dispatch import Dispatch, Engine
from stele.fleet.status import Status
from stele.fleet.work import CPU, Ending, Needs, Request, Started, Work
from stele.gate.trial import TIMEOUT
from stele.measuring import content, progress, store
from stele.measuring import measure as measuring
from stele.measuring.progress import say
from stele.measuring.settings import DEVICES, PRECISIONS, Settings
from stele.report import results
from stele.subjects import Cell
from stele_suite import tasks

EPILOG = "Exit: 0 everything was measured; 2 usage or environment, or a cell failed; 4 internal error; 130 interrupted."
STATUS_EVERY = 1.0  # seconds between two writes of the status

Save = Callable[[Work, Any], str]  # saves a result, and returns the name of the machine that measured it


@dataclass(frozen=True, kw_only=True)
class FleetRunOptions:
    framework: tuple[str, ...] = ()
    cells: CellOptions = field(default_factory=CellOptions)
    scale: str = "gate"
    launches: int = 1
    device: str = CPU
    precision: str = "fp32"
    process: ProcessOptions = field(default_factory=ProcessOptions)
    worker_timeout: float = TIMEOUT
    fleet: FleetOptions = field(default_factory=FleetOptions)
    slurm: bool = False
    partition: str | None = None
    again: bool = False


def add(verbs: Any) -> None:
    about = "measure cells: environments times tasks times phases"
    verb = verbs.add_parser("run", help=about, description=about, epilog=EPILOG)
    add_run_options(verb)
    options.declare(verb, run, FleetRunOptions)


def add_run_options(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--framework",
        metavar="ID[,ID...]",
        action="append",
        help="environments, modes or requirements; default: all that are ready on this machine",
    )
    options.add_cell_options(verb)
    verb.add_argument(
        "--scale",
        choices=("gate", *tasks.SCALES),
        help="scale of a launch; default: %(default)s",
    )
    verb.add_argument(
        "--launches",
        type=options.parse_count,
        metavar="N",
        help="launches of each cell; default: %(default)s",
    )
    verb.add_argument("--device", choices=DEVICES, help="default: %(default)s")
    verb.add_argument("--precision", choices=PRECISIONS, help="default: %(default)s")
    options.add_process_options(verb)
    options.add_worker_timeout(verb)
    options.add_fleet_options(verb)
    verb.add_argument("--slurm", action="store_true", help="submit a Slurm job array instead of using Ray")
    verb.add_argument("--partition", metavar="NAME", help="partition of Slurm; default: that of the site")
    verb.add_argument("--again", action="store_true", help="do not continue a command that was interrupted")


def run(chosen: FleetRunOptions) -> int:
    """Measure the cells that the options select. Returns the exit code, as in EPILOG."""
    request = request_from(chosen)
    works = list(works_of(request, chosen.worker_timeout))
    dispatch.one_of_each(works)
    place, continued = campaign.open_campaign(request, again=chosen.again)
    missing = place.missing(works)
    if continued:
        say(f"continuing {place.folder}: {len(works) - len(missing)} of {len(works)} launches are measured")
    with engine(chosen, place) as started:
        state = measure(started, place, missing, len(works), lambda work, run: saved_on(place, work, run))
    if state.failed:
        print("\n".join(state.messages))
    else:
        place.end()
    runs = [store.load(path) for work in works if (path := place.path_of(work)).exists()]
    if runs:
        print(results.markdown(runs))
    return 2 if state.failed else 0


def request_from(chosen: FleetRunOptions) -> Request:
    """Return what identifies the command: an equal one continues it."""
    names = [environment.name for environment in wanted_environments(chosen.framework)]
    cells = chosen.cells.cells()
    measuring.announce_inputs(cell.task for cell in cells)
    settings: dict[str, Any] = {
        "device": chosen.device,
        "precision": chosen.precision,
        "malloc": chosen.process.malloc,
        "threads": options.threads_of(chosen.process.threads),
    }
    Settings(**settings)  # raises SteleError for settings that do not exist
    return {
        "command": "run",
        "environments": names,
        "cells": [list(cell) for cell in cells],
        "scale": chosen.scale,
        "launches": chosen.launches,
        "settings": settings,
        "types": sorted(set(chosen.fleet.type)),
        "code": node.code(),
        "data": {cell.task: fingerprint(cell.task) for cell in cells},
        "content": {name: content.of_node(environments.load(name)) for name in names},
    }


def wanted_environments(values: Sequence[str]) -> list[Environment]:
    """Return the named environments, which a node builds; or those that are ready here."""
    if not values:
        return environments.load_ready()
    return [environments.load(name) for value in values for name in value.split(",") if name]


def works_of(request: Request, timeout: float) -> Iterator[Work]:
    """Yield a work for each launch of each cell on each type. Cells that an environment lacks are left out."""
    settings = request["settings"]
    device, precision = settings["device"], settings["precision"]
    for needs in needs_of(device, request["types"]):
        for environment in map(environments.load, request["environments"]):
            for cell in (Cell(*cell) for cell in request["cells"]):
                if reason := environment.why_absent(*cell, device=device, precision=precision):
                    say(f"{environment.name} {cell}: left out: {reason}")
                    continue
                for number in range(1, request["launches"] + 1):
                    yield work_of(request, environment, cell, needs, number, timeout)


def work_of(request: Request, environment: Environment, cell: Cell, needs: Needs, number: int, timeout: float) -> Work:
    fields = {
        "environment": environment.name,
        "task": cell.task,
        "phase": cell.phase,
        "scale": request["scale"],
        "settings": request["settings"],
        "code": request["code"],
        "data": fingerprint(cell.task),
        "content": request["content"][environment.name],
        "timeout": timeout,
    }
    where = f" on {needs.type}" if needs.type else ""
    what = f"{environment.name} {cell}{where}, launch {number}"
    parts = [environment.slug, cell.task, cell.phase, needs.type or needs.device, str(number)]
    return Work("-".join(parts), what, fields, needs)


def fingerprint(task: str) -> str:
    """Return the fingerprint of a task's data on this machine, which the nodes must have, too."""
    fields, _ = measuring.inputs(task)
    return str(fields["data_origin"].fingerprint)


def needs_of(device: str, types: Sequence[str]) -> list[Needs]:
    """Return what the work of each type needs; without types, any device."""
    return [Needs(device, name) for name in types] or [Needs(device)]


@contextlib.contextmanager
def engine(chosen: FleetRunOptions, place: Campaign) -> Iterator[Engine]:
    """Yield what does the work: a Ray cluster, Ray on this machine, or Slurm."""
    if chosen.slurm:
        with slurm.submitted(place.folder / "slurm", node.measure_cell, chosen.partition) as array:
            yield array
        return
    with cluster.connected(chosen.fleet.address, node.measure_cell) as connected:
        yield connected


def measure(engine: Engine, place: Campaign, works: Sequence[Work], total: int, save: Save) -> Status:
    """Measure, call ``save`` with each result at once, and keep the status. Returns the status at the end."""
    messages: list[str] = []
    dispatched = Dispatch(engine, messages.append)
    state = status.begin(shlex.join(["stele", *sys.argv[1:]]), total)
    state.done = total - len(works)
    keeper = Keeper(place, state)
    names = {work.key: work.what for work in works}

    def ended(outcome: Ending) -> None:
        outcome, where = saved(save, outcome)
        state.end(outcome, time.time())
        keeper.write()
        say(line_of(outcome, state, where))
        show(state.done + state.failed)

    def idle(events: list[Started]) -> None:
        for event in events:
            state.start(names[event.key], event)
        for message in messages:
            say(f"stele: {message}")
            state.messages.append(message)
        messages.clear()
        state.places = dispatch.places(engine.nodes() or (), works, dispatched.unfit) or state.places
        keeper.write_if_due()

    with progress.counted("fleet", total) as show:
        try:
            dispatch.run(dispatched, works, ended=ended, idle=idle)
        finally:
            state.running.clear()
            state.ended = time.time() if state.waiting == 0 else None
            keeper.write()
    return state


class Keeper:
    """Writes the status of a campaign, at most once in a second unless something ended."""

    def __init__(self, place: Campaign, state: Status) -> None:
        self.path, self.state, self.written = place.folder / status.FILE, state, 0.0

    def write(self) -> None:
        status.write(self.path, self.state)
        self.written = time.monotonic()

    def write_if_due(self) -> None:
        if time.monotonic() - self.written >= STATUS_EVERY:
            self.write()


def saved(save: Save, outcome: Ending) -> tuple[Ending, str]:
    """Save the result of an outcome. Return the outcome, as a failure if the result cannot be read; and the machine."""
    if outcome.failure is not None:
        return outcome, ""
    try:
        return outcome, save(outcome.work, outcome.result)
    except files.WriteError:
        raise
    except (SteleError, ValueError, TypeError, KeyError) as error:
        return outcome._replace(failure=f"the node returned something else than a result: {error}"), ""


def saved_on(place: Campaign, work: Work, run: dict[str, Any]) -> str:
    """Save a Run. Return the name of its machine."""
    return str(place.save(work, run).machine.name)


def line_of(outcome: Ending, state: Status, machine: str) -> str:
    """Return ``3 of 12: jax cnn train, launch 1: measured on node-a``."""
    number = f"{state.done + state.failed} of {state.total}"
    if outcome.failure is not None:
        return f"{number}: {outcome.work.what}: FAILED: {outcome.failure}"
    return f"{number}: {outcome.work.what}: measured on {machine}"
