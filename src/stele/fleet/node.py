"""What a node does: it checks itself, builds an environment if it lacks one, and measures a cell. No import of Ray."""

import contextlib
import itertools
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock

from stele import environments, schema
from stele.data import cache
from stele.environments import Environment, builds
from stele.errors import SteleError
from stele.fleet import slots
from stele.fleet.work import NodeLacks, NodeUnfit, Request
from stele.measuring import content, measure, processors, space, worker
from stele.measuring.content import Content
from stele.measuring.settings import Settings
from stele.measuring.worker import TIMEOUT, WorkerError

LEAST_DISK = 2**30  # bytes: the smallest environment needs about half of it


@dataclass(frozen=True)
class CellRequest:
    """A launch of a cell, as the node receives it. ``settings`` are those that were typed, of ``Settings``."""

    environment: str
    task: str
    phase: str
    scale: str
    settings: dict[str, Any]
    code: str  # ``code()`` on the machine of the command
    data: str  # the fingerprint of the data on the machine of the command
    content: Content  # of_node(...) of the environment on the machine of the command
    timeout: float = TIMEOUT
    folder: str | None = None  # where logs are written; None for a folder in the node's cache


def code() -> str:
    """Return a hash of the code that runs on a node."""
    return content.digest(content.of_code())


def check(expected: str) -> None:
    """Raise NodeUnfit if this node has other code than the machine of the command, or a full disk."""
    if code() != expected:
        raise NodeUnfit("it has another version of Stele. Install the same version there, then start the node again.")
    folder = cache.create()
    free = shutil.disk_usage(folder).free
    if free < LEAST_DISK:
        raise NodeUnfit(
            f"its disk has {free / 2**30:.1f} GiB left in {folder}. "
            f"Free {LEAST_DISK / 2**30:.0f} GiB, or set STELE_CACHE there to another disk."
        )


def check_content(expected: Content, environment: Environment | None = None) -> None:
    """Raise NodeLacks, which names what differs, if a launch here has other variables or another description."""
    changed = content.changes(expected, content.of_node(environment))
    if changed is not None:
        raise NodeLacks(
            f"it would measure something else than the command's machine: {changed} here. Set the same variables and "
            "install the same packages on this node, then start the node again."
        )


def measure_cell(request: Request) -> dict[str, Any]:
    """Measure a launch, and return its Run as a dict. ``request`` has the fields of CellRequest.

    Raises NodeUnfit, NodeLacks if the environment or the data is not to be had here, and WorkerError if the framework
    fails.
    """
    cell = CellRequest(**request)
    check(cell.code)
    environment = environments.load(cell.environment)
    check_content(cell.content, environment)
    what = f"stele fleet: {environment.name} {cell.task} {cell.phase}"
    device = cell.settings.get("device", "cpu")
    with working_in(cell.folder), slots.slot_for(what, device, lambda message: None) as slot:
        settings = Settings(**cell.settings)
        check_threads(settings)
        build(environment)
        fields = inputs(cell.task, cell.data)
        plan = measure.Plan(cell.task, cell.phase, cell.scale, **fields)
        name = f"{environment.name}-{cell.task}-{cell.phase}-{slot.number}"
        try:
            with worker.launch(environment, settings, name=name, timeout=cell.timeout) as live:
                run: dict[str, Any] = schema.to_json(measure.measure(live, plan, settings))
                return run
        except WorkerError:
            raise
        except SteleError as error:  # not the framework's fault
            raise unfit_if_full(error) from error


def check_threads(settings: Settings) -> None:
    """Raise NodeLacks if the threads of a launch would share processors."""
    present = processors.count()
    if settings.device == "cpu" and settings.threads > present:
        raise NodeLacks(f"--threads {settings.threads} needs as many processors, and a launch has {present} here.")


def inputs(task: str, fingerprint: str) -> measure.Inputs:
    """Return the data of a task as ``measure.inputs`` does.

    Raises NodeLacks if it cannot be read, or is not that of the command: without a network, a node has synthetic data.
    """
    try:
        fields, _ = measure.inputs(task)
    except (SteleError, OSError) as error:
        raise NodeLacks(f"it cannot read the data of {task}: {error}") from error
    origin = fields["data_origin"]
    if origin.fingerprint != fingerprint:
        raise NodeLacks(
            f"its data of {task} ({origin.origin}) is not that of the command's machine. Set STELE_DATA on this node "
            "to a folder with the same data, then start the node again."
        )
    return fields


def unfit_if_full(error: SteleError) -> Exception:
    """Return NodeUnfit if a disk of this node is full, else the error."""
    full = space.full_disk([cache.folder(), Path.cwd()], str(error).splitlines())
    return NodeUnfit(f"{full} is full: {error}") if full else error


def build(environment: Environment) -> None:
    """Build the environment unless it is ready. Raises NodeLacks if that cannot be done here."""
    try:
        state = environments.state(environment)
        if state.status == "ready":
            return
        if environment.lock is None:
            raise SteleError(f"'{environment.name}' is {state.status}: {state.reason}")
        builds.make(environment)
    except SteleError as error:
        full = unfit_if_full(error)
        raise full if isinstance(full, NodeUnfit) else NodeLacks(str(error)) from error


@contextlib.contextmanager
def working_in(folder: str | None, name: str = "") -> Iterator[None]:
    """Work in a folder, where logs and records are written: ``name`` in ``folder``, or in one of the node's cache.

    If another work with this name runs here, the folder is ``name-2``, and so on: each has its files for itself.
    """
    base = Path(folder) if folder else cache.create() / "fleet"
    with contextlib.ExitStack() as stack:
        target = free_folder(base, name, stack) if name else base
        target.mkdir(parents=True, exist_ok=True)
        stack.callback(os.chdir, Path.cwd())
        os.chdir(target)
        yield


def free_folder(base: Path, name: str, stack: contextlib.ExitStack) -> Path:
    """Return the first of the folders ``name``, ``name-2`` and so on that no other process works in, and hold it."""
    for number in itertools.count(1):
        target = base / (name if number == 1 else f"{name}-{number}")
        target.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(filelock.Timeout):
            stack.enter_context(filelock.FileLock(target / ".held", blocking=False))
            return target
    raise AssertionError
