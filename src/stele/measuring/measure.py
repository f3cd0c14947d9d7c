"""How to measure, and one measurement: ask a Worker, return the Run. Knows no file and no judgement."""

import contextlib
import os
from collections.abc import Generator, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Any

from stele import data
from stele.environments import Environment
from stele.measuring import machine
from stele.measuring.run import Run
from stele.measuring.settings import Settings, default_threads
from stele.measuring.worker import TIMEOUT, Progress, Worker, WorkerError, finished, live
from stele_worker import tasks

TURN = 1  # steps
# warm-up by scale: a smoke run has too few steps for wide windows
WARMUP = {
    "smoke": {"window": 1, "tolerance": 0.5, "most": 3},
    "study": {"window": 5, "tolerance": 0.05, "most": 16},
    "gate": {"window": 5, "tolerance": 0.05, "most": 16},
    "quick": {"window": 5, "tolerance": 0.05, "most": 20},
    "paper": {"window": 10, "tolerance": 0.03, "most": 60},
}


@dataclass(frozen=True)
class Plan:
    """What to measure: a Task's name, a phase ("train" or "infer"), a scale, and the inputs' origin.

    ``data`` and ``weights`` are paths for the worker, or None where the Task makes its own.
    """

    task: str
    phase: str
    scale: str
    data: dict[str, str] | None
    data_origin: dict[str, str]
    weights: str | None = None
    weights_origin: str = "seeded"

    @property
    def warmup(self) -> dict[str, Any]:
        """The window and tolerance that tell steady steps, and the most warm-up steps there may be."""
        return WARMUP[self.scale]


def inputs(task: str) -> tuple[dict[str, Any], str | None]:
    """The fields of a Plan that say where a Task's data and weights lie, and a notice if the data is synthetic.

    Raises DataError if a file that is there is hostile or damaged.
    """
    fields: dict[str, Any] = {}
    name, notice = tasks.make(task, "paper").data, None
    if name is None:
        fields.update(data=None, data_origin={"origin": "seeded noise", "fingerprint": "none"})
    else:
        found = data.load(name)
        notice = found.notice
        fields["data"] = {part: str(path) for part, path in found.paths.items()}
        fields["data_origin"] = {"origin": found.origin, "fingerprint": found.fingerprint}
    pretrained = data.pretrained() if task == "resnet50" else None
    if pretrained is not None:
        origin = f"{pretrained.origin} {pretrained.fingerprint}"
        fields.update(weights=str(pretrained.path), weights_origin=origin)
    return fields, notice


def measure(worker: Worker, plan: Plan, settings: Settings, *, progress: Progress | None = None) -> Run:
    """Measure one recipe in a fresh worker. Raises WorkerError if it fails."""
    return finished(measuring(worker, plan, settings, progress=progress))


class SideFailed(Exception):
    """The worker of one side failed."""

    def __init__(self, side: str, error: WorkerError) -> None:
        super().__init__(str(error))
        self.side = side


def side_by_side(
    sides: Mapping[str, Environment],
    plan: Plan,
    settings: Settings,
    *,
    timeout: float = TIMEOUT,
    timed: bool = True,
) -> dict[str, Run]:
    """Measure the same in a fresh worker of each, in this order: on a CPU in turns, on a GPU one after the other.

    A neighbour on the other thread of a core halves its speed, for moments: between two launches of the same that
    makes a tenth, between two steps next to nothing. What is not ``timed`` needs no turns: all work at once, if each
    can have processors of its own. Raises SideFailed.
    """
    together = settings.device == "cpu" and (timed or room(len(sides), settings.threads))
    if len(sides) > 1 and not together:
        return {
            side: side_by_side({side: row}, plan, settings, timeout=timeout)[side]
            for side, row in sides.items()
        }
    workers: dict[str, Worker] = {}
    with contextlib.ExitStack() as stack:
        try:
            for number, (side, row) in enumerate(sides.items()):
                with contextlib.nullcontext() if timed else apart(number, settings.threads):
                    started = live(row, settings, name=f"side-{side}", timeout=timeout)
                workers[side] = stack.enter_context(started)
            return in_turns(workers, plan, settings, turn=TURN if timed and len(sides) > 1 else None)
        except WorkerError as error:
            failing = next((name for name, one in workers.items() if one is error.worker), side)
            raise SideFailed(failing, error) from None


def room(sides: int, threads: int) -> bool:
    """Whether each side can have processors of its own."""
    return hasattr(os, "sched_setaffinity") and default_threads() >= sides * threads


@contextlib.contextmanager
def apart(number: int, threads: int) -> Iterator[None]:
    """What is started in it has other processors than what is started under another number."""
    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(everywhere)[number * threads : (number + 1) * threads])
    try:
        yield
    finally:
        os.sched_setaffinity(0, everywhere)


def in_turns(
    workers: Mapping[str, Worker], plan: Plan, settings: Settings, *, turn: int | None
) -> dict[str, Run]:
    """Measure the same in fresh workers that take turns of ``turn`` steps, so that all see the same machine.

    They start one after the other; only one of them works at any time, or without turns all. Raises WorkerError if one
    fails.
    """
    going = {side: measuring(worker, plan, settings, turn=turn) for side, worker in workers.items()}
    runs: dict[str, Run] = {}
    while len(runs) < len(going):
        for side in [side for side in going if side not in runs]:
            try:
                next(going[side])
            except StopIteration as end:
                runs[side] = end.value
    return {side: runs[side] for side in workers}


def measuring(
    worker: Worker,
    plan: Plan,
    settings: Settings,
    *,
    turn: int | None = None,
    progress: Progress | None = None,
) -> Generator[int, None, Run]:
    """One measurement, step by step: yields where the worker pauses, which is every ``turn`` steps; else once, when it
    was asked."""
    facts, form = machine.facts(), worker.environment.forms.get(plan.task)
    framework = configure(worker, settings)
    outcome = yield from worker.answering(
        plan.phase,
        progress=progress,
        task=plan.task,
        scale=plan.scale,
        seed=settings.seed,
        form=form,
        data=plan.data,
        weights=plan.weights,
        warmup=plan.warmup,
        turn=turn,
        early=turn is None,
    )
    return Run.from_dict(
        {
            "when": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
            "environment": worker.environment.name,
            "label": worker.environment.label,
            "task": plan.task,
            "phase": plan.phase,
            "scale": plan.scale,
            "settings": asdict(settings),
            "plan": {"warmup": plan.warmup, "form": form, "tuned": worker.environment.tuned, "turn": turn},
            "machine": facts,
            "data": plan.data_origin,
            "weights": plan.weights_origin,
            **framework,
            **outcome,
        }
    )


def configure(worker: Worker, settings: Settings) -> dict[str, Any]:
    """Import the framework and set it; return its import time, versions and the flags in force, its Python's too."""
    asked = {**settings.as_request(), "tuned": worker.environment.tuned}
    host = worker.ask("hello")
    found = worker.ask("configure", framework=worker.environment.framework, settings=asked)
    return {**found, "flags": {**found["flags"], "python": host.get("python"), "numpy": host.get("numpy")}}
