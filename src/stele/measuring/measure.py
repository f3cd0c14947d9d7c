"""Measure a recipe: send the request to a Worker and return the Run.

This module writes no files and decides no verdicts.
"""

import contextlib
import copy
import functools
import os
import shlex
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar

from stele import data
from stele.environments import Environment, builds
from stele.environments.description import MODULE
from stele.errors import SteleError
from stele.measuring import answers, content, devices, energy, machine, nvml, processors
from stele.measuring.conditions import Monitor
from stele.measuring.content import NOTHING, Reads
from stele.measuring.run import Run
from stele.measuring.settings import Settings
from stele.measuring.worker import TIMEOUT, Progress, Worker, WorkerError, launch, run_to_end
from stele_worker import protocol, tasks
from stele_worker.protocol import TIME_TO_ACCURACY

Answer = TypeVar("Answer")

TURN = 1  # steps
# the warm-up of each scale; a smoke run has too few steps for a wide window
WARMUP = {
    "smoke": {"window": 1, "tolerance": 0.5, "most": 3},
    "study": {"window": 5, "tolerance": 0.05, "most": 16},
    "gate": {"window": 5, "tolerance": 0.05, "most": 16},
    "quick": {"window": 5, "tolerance": 0.05, "most": 20},
    "paper": {"window": 10, "tolerance": 0.03, "most": 60},
}


@dataclass(frozen=True)
class Plan:
    """What to measure: the name of a Task, a phase of a Run, a scale, and the inputs with their origin.

    ``data`` and ``weights`` are paths for the worker, or None if the Task generates its own.
    """

    task: str
    phase: str
    scale: str
    data: dict[str, str] | None
    data_origin: dict[str, str]
    weights: str | None = None
    weights_origin: str = "seeded"
    model: dict[str, Any] | None = None  # a model of the user, as stele.models describes it to the worker
    steps: int | None = None  # stop after so many, and do not evaluate; None for all
    asked: Mapping[str, Any] = field(
        default_factory=dict
    )  # more fields of the request: see stele_worker.protocol
    checkpoint: str | None = None  # where the worker saves the state of the training, and continues from it
    files: tuple[Path, ...] = ()  # of the model: its modules, and what they read
    sampler: str | None = None  # the path of py-spy, for a profile of a framework without a profiler

    @property
    def warmup(self) -> dict[str, Any]:
        """The window and tolerance that define steady steps, and the maximum number of warm-up steps."""
        return WARMUP.get(self.scale, WARMUP["gate"])  # a task may have scales of its own


def model_plan(
    task: str,
    phase: str,
    scale: str,
    model: dict[str, Any],
    *,
    steps: int | None = None,
    asked: Mapping[str, Any] = {},
    files: Sequence[Path] = (),
) -> Plan:
    """Return the Plan of a user's model, whose samples are those of its task file, or seeded noise."""
    origin = {"origin": "seeded noise", "fingerprint": "none"}
    if model.get("task"):
        path = Path(model["task"])
        origin = {"origin": "/".join(path.parts[-2:]), "fingerprint": content.of_file(path) or "unknown"}
    weights = "seeded" if model["pretrained"] is None else f"pretrained {model['pretrained']}"
    return Plan(
        task,
        phase,
        scale,
        data=None,
        data_origin=origin,
        weights_origin=weights,
        model=model,
        files=tuple(files),
        steps=steps,
        asked=asked,
    )


def inputs(task: str) -> tuple[dict[str, Any], str | None]:
    """Return the Plan fields for the data and weights of a Task, and a notice if the data is synthetic.

    They are searched again only if a file or a variable has changed. Raises DataError if an existing file is unsafe or
    damaged.
    """
    name, variables = tasks.make(task, "paper").data, ("STELE_DATA", "STELE_CACHE", "STELE_OFFLINE")
    state = (*(os.environ.get(one) for one in variables), data.state(name))
    fields, notice = search_inputs(task, state)
    return copy.deepcopy(fields), notice


@functools.cache
def search_inputs(task: str, state: tuple[object, ...]) -> tuple[dict[str, Any], str | None]:
    """Return ``inputs``; ``state`` is that of the variables and files that decide what is found."""
    fields: dict[str, Any] = {}
    name, notice = tasks.make(task, "paper").data, None
    if name is None:
        origin = "synthetic" if tasks.has_meaning(task) else "seeded noise"
        fields.update(data=None, data_origin={"origin": origin, "fingerprint": "none"})
    else:
        dataset = data.load(name)
        notice = dataset.notice
        fields["data"] = {part: str(path) for part, path in dataset.paths.items()}
        fields["data_origin"] = {"origin": dataset.origin, "fingerprint": dataset.fingerprint}
    pretrained = data.load_pretrained() if tasks.pretrained(task) else None
    if pretrained is not None:
        origin = f"{pretrained.origin} {pretrained.fingerprint}"
        fields.update(weights=str(pretrained.path), weights_origin=origin)
    return fields, notice


def measure(worker: Worker, plan: Plan, settings: Settings, *, progress: Progress | None = None) -> Run:
    """Measure one recipe in a fresh worker. Raises WorkerError if the worker fails."""
    monitor = Monitor(settings, session=worker.pid)
    run = run_to_end(measure_steps(worker, plan, settings, progress=progress))
    return replace(with_content(run, worker, plan), conditions=monitor.conditions()._asdict())


def with_content(run: Run, worker: Worker, plan: Plan) -> Run:
    """Return the Run of a launch that has ended, with what its model has read and what decided it.

    Raises SteleError, which names what changed, if something that decides it changed during the launch.
    """
    reads, before = reads_of(worker, plan.model), run.content
    if changed := content.changed_groups(before, content_of(worker, plan)):
        raise SteleError(
            f"What is measured changed during a launch of '{worker.environment.name}': {changed}. "
            "Undo the change, and measure again; stele gate continues with --resume."
        )
    return replace(run, content=content_of(worker, plan, reads), reads=reads)


def reads_of(worker: Worker, model: Mapping[str, Any] | None) -> Reads:
    """Return what the user's ``model`` has read in the process of a worker. Raises WorkerError."""
    if model is None:
        return NOTHING
    return Reads.of(worker.ask("reads", folder=model["folder"], expected=answers.Reads))


def content_of(worker: Worker, plan: Plan, reads: Reads = NOTHING) -> dict[str, str]:
    """Return what decides a launch, as a Run has it."""
    folder = Path((plan.model or {}).get("folder", ""))
    return content.of_launch(worker.environment, plan.files, folder, model=plan.model, reads=reads)


class SideFailed(Exception):
    """The worker of one side failed, with this error."""

    def __init__(self, side: str, error: WorkerError, lane: int = 0) -> None:
        super().__init__(str(error))
        self.side, self.error, self.lane = side, error, lane

    @property
    def headline(self) -> str:
        return str(self).partition("\n")[0]


def side_by_side(
    sides: Mapping[str, Environment],
    plan: Plan,
    settings: Settings,
    *,
    timeout: float = TIMEOUT,
    caches: Path | None = None,
    changed: Mapping[str, Settings] = {},
) -> dict[str, Run]:
    """Measure the same plan in a fresh worker of each environment and return a Run per side.

    ``changed`` has the settings of sides that have others; the device is the same.

    On a CPU the workers take turns step by step; on a GPU they run one after the other. Another process on the second
    thread of a core can halve the speed for a short time: that changes the ratio of two launches by a tenth, but the
    ratio of two neighbouring steps hardly at all. ``caches`` has the compilations of earlier launches; by default, a
    launch has none. Raises SideFailed.
    """
    if settings.device == "cpu" or len(sides) == 1:
        return at_once([sides], plan, settings, timeout=timeout, caches=caches, changed=changed)[0]
    return {
        side: at_once(
            [{side: environment}], plan, changed.get(side, settings), timeout=timeout, caches=caches
        )[0][side]
        for side, environment in sides.items()
    }


def at_once(
    lanes: Sequence[Mapping[str, Environment]],
    plan: Plan,
    settings: Settings,
    *,
    timeout: float = TIMEOUT,
    groups: Sequence[Sequence[int]] | None = None,
    caches: Path | None = None,
    changed: Mapping[str, Settings] = {},
) -> list[dict[str, Run]]:
    """Measure the sides of several lanes at the same time, and return a Run per side for each lane.

    Lane by lane, ``groups`` has the numbers of its processors; None leaves all to the only lane. The sides of a lane
    take turns, so one worker of each lane computes at any time. Raises SideFailed.
    """
    workers: list[dict[str, Worker]] = [{} for _ in lanes]
    with contextlib.ExitStack() as stack:
        threads = stack.enter_context(ThreadPoolExecutor(len(lanes)))  # ends last, after the workers
        try:
            for number, lane in enumerate(lanes):
                for side, environment in lane.items():
                    with processors.pinned(groups[number] if groups else None):
                        name, own = log_name(side, number), caches and caches / environment.slug
                        of_side = changed.get(side, settings)
                        worker = launch(environment, of_side, name=name, timeout=timeout, caches=own)
                    workers[number][side] = stack.enter_context(worker)
            lanes_of_runs = run_together(
                [take_turns(lane, plan, settings, changed) for lane in workers], threads
            )
            return [
                {side: with_content(run, lane[side], plan) for side, run in runs.items()}
                for lane, runs in zip(workers, lanes_of_runs, strict=True)
            ]
        except WorkerError as error:
            side, number = find_side(error.worker, workers, default=(side, number))
            raise SideFailed(side, error, number) from None


def log_name(side: str, lane: int) -> str:
    return f"side-{side}" if lane == 0 else f"side-{side}-{lane + 1}"


def find_side(
    worker: Worker | None, lanes: Sequence[Mapping[str, Worker]], default: tuple[str, int]
) -> tuple[str, int]:
    """Return the side and the lane of a worker; ``default`` if it never started."""
    sides = ((side, number) for number, lane in enumerate(lanes) for side in lane if lane[side] is worker)
    return next(sides, default)


def take_turns(
    workers: Mapping[str, Worker], plan: Plan, settings: Settings, changed: Mapping[str, Settings] = {}
) -> Generator[None, None, dict[str, Run]]:
    """Measure the same plan in fresh workers that take turns of TURN steps, so that they share the same conditions.

    The workers start one after the other, and only one computes at any time. Yields after every turn. Raises
    WorkerError if one fails.
    """
    turn = TURN if len(workers) > 1 else None
    measurements = {
        side: measure_steps(worker, plan, changed.get(side, settings), turn=turn)
        for side, worker in workers.items()
    }
    runs: dict[str, Run] = {}
    while len(runs) < len(measurements):
        for side in [side for side in measurements if side not in runs]:
            try:
                next(measurements[side])
            except StopIteration as end:
                runs[side] = end.value
            yield
    return {side: runs[side] for side in workers}


def run_together(lanes: Sequence[Generator[None, None, Answer]], threads: ThreadPoolExecutor) -> list[Answer]:
    """Resume all lanes at the same time, and again when all have yielded. Return what they return.

    So every turn of a lane has the same company, until a lane ends.
    """
    ended: dict[int, Answer] = {}

    def resume(number: int) -> None:
        try:
            next(lanes[number])
        except StopIteration as end:
            ended[number] = end.value

    while left := [number for number in range(len(lanes)) if number not in ended]:
        for _ in threads.map(resume, left):
            pass
    return [ended[number] for number in range(len(lanes))]


def measure_steps(
    worker: Worker,
    plan: Plan,
    settings: Settings,
    *,
    turn: int | None = None,
    progress: Progress | None = None,
) -> Generator[int, None, Run]:
    """Measure one recipe, yield at every pause of the worker, and return the Run.

    The worker pauses every ``turn`` steps; never with ``turn=None``.
    """
    facts = facts_of(worker, plan, settings)
    framework = configure(worker, settings, model=plan.model)
    form = worker.environment.forms.get(plan.task)
    warmup = {**plan.warmup, **({} if settings.device == "cpu" else {"seconds": devices.WARM_SECONDS})}
    limit: dict[str, Any] = {**({} if plan.steps is None else {"steps": plan.steps}), **plan.asked}
    if builds.command(worker.environment)[-len(MODULE) :] != MODULE:
        limit.pop("limit", None)  # workers in other languages do not know it
    places = {"model": plan.model, "checkpoint": plan.checkpoint, "sampler": plan.sampler}
    known: dict[str, Any] = {name: value for name, value in places.items() if value is not None}
    fields: dict[str, Any] = {"form": form, "warmup": warmup, "turn": turn, **limit}
    metered = settings.device if plan.phase == TIME_TO_ACCURACY and turn is None else None
    with energy.metered(metered) as joules:
        outcome = yield from worker.exchange(
            plan.phase,
            progress=progress,
            task=plan.task,
            scale=plan.scale,
            seed=settings.seed,
            data=plan.data,
            weights=plan.weights,
            **fields,
            **known,
        )
    values = {
        **framework,
        **outcome,
        **facts,
        "plan": fields,
        "when": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
        "energy": joules() or None,
        "process_memory": nvml.memory_of(worker.pid) if settings.device == "cuda" else None,
    }
    with worker.checking(plan.phase):
        return Run.from_dict(values)


def facts_of(worker: Worker, plan: Plan, settings: Settings) -> dict[str, Any]:
    """Return what a Run says about its environment, its cell and the machine."""
    return {
        "environment": worker.environment.name,
        "label": worker.environment.label,
        "mode": worker.environment.mode,
        "task": plan.task,
        "phase": plan.phase,
        "scale": plan.scale,
        "settings": settings.as_fields(),
        "machine": machine.facts(),
        "data": plan.data_origin,
        "weights": plan.weights_origin,
        "content": content_of(worker, plan),
    }


def configure(
    worker: Worker,
    settings: Settings,
    *,
    model: dict[str, Any] | None = None,
    tuned: bool | None = None,
    shards: int = 1,
) -> dict[str, Any]:
    """Import and configure the framework, and import the module of the user's ``model``.

    A user's model runs without the flags with which Stele makes a framework fast; without ``model``, ``tuned`` says
    so. With ``shards``, one device computes a batch in so many parts, as the reference for so many devices.
    Returns the import time (seconds), its versions, and the flags in effect, with the versions of Python and NumPy.
    """
    environment = worker.environment
    request = {
        **settings.as_request(tuned=model is None if tuned is None else tuned),
        "mode": environment.mode,
    }
    request |= {} if shards == 1 else {"shards": shards}
    host = worker.ask("hello")
    if host.get("protocol") != protocol.VERSION:
        raise protocol_error(worker, host.get("protocol"))
    more: dict[str, Any] = {} if model is None else {"model": model}
    result = worker.ask(
        "configure",
        framework=environment.framework,
        settings=request,
        expected=answers.Configuration,
        **more,
    )
    return {**result, "flags": {**result["flags"], "python": host.get("python"), "numpy": host.get("numpy")}}


def protocol_error(worker: Worker, version: object) -> SteleError:
    """Return the error that a worker uses another version of the protocol, with what to do.

    It is no WorkerError, because it says nothing about the framework: a gate must not count it against NEW.
    """
    command = shlex.join(builds.command(worker.environment))
    return SteleError(
        f"Worker '{worker.environment.name}' uses version {version!r} of the protocol, but Stele uses version "
        f"{protocol.VERSION}. The command {command} starts another program than this release expects. Update the "
        "worker as docs/protocol.md describes, or use the release of Stele that it was written for."
    )
