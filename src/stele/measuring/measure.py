"""Measure a recipe: send the request to a Worker and return the Run.

This module writes no files and decides no verdicts.
"""

import contextlib
import functools
import itertools
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypedDict

import msgspec

from stele import config, data
from stele.config import Config
from stele.environments import Environment, builds
from stele.environments.environment import MODULE
from stele.errors import SteleError
from stele.measuring import answers, content, devices, energy, machine, nvml, processors
from stele.measuring.conditions import Monitor
from stele.measuring.content import NOTHING, Reads
from stele.measuring.progress import say
from stele.measuring.run import NO_OPTIONS, Framework, Lifetime, Options, Origin, Outcome, Run, Warmup
from stele.measuring.settings import Settings
from stele.measuring.worker import TIMEOUT, Progress, Worker, WorkerError, launch
from stele_suite import tasks
from stele_worker import protocol
from stele_worker.protocol import TIME_TO_ACCURACY

TURN = 1  # steps
FIRST_STEP = 2  # parts of a plan, which end with a pause: the preparation, with the import, and the first step
# the warm-up of each scale; a smoke run has too few steps for a wide window
WARMUP = {
    "smoke": Warmup(window=1, tolerance=0.5, most=3),
    "study": Warmup(window=5, tolerance=0.05, most=16),
    "gate": Warmup(window=5, tolerance=0.05, most=16),
    "quick": Warmup(window=5, tolerance=0.05, most=20),
    "paper": Warmup(window=10, tolerance=0.03, most=60),
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
    data_origin: Origin
    weights: str | None = None
    weights_origin: str = "seeded"
    model: dict[str, Any] | None = None  # a model or a program of the user, as its subject describes it to the worker
    options: Options = NO_OPTIONS  # without ``warmup``, ``form`` and ``turn``, which follow from the rest
    checkpoint: str | None = None  # where the worker saves the state of the training, and continues from it
    files: tuple[Path, ...] = ()  # of the model: its modules, and what they read
    sampler: str | None = None  # the path of py-spy, for a profile of a framework without a profiler

    @property
    def program(self) -> str | None:
        """The program of the user that the worker runs; None if it runs a framework."""
        return (self.model or {}).get("program")

    @property
    def verb(self) -> str:
        """What is asked of the worker."""
        return "rounds" if self.program else self.phase

    @property
    def warmup(self) -> Warmup:
        """The rule that defines steady steps, without its seconds."""
        return WARMUP.get(self.scale, WARMUP["gate"])  # a task may have scales of its own


class Weights(TypedDict, total=False):
    weights: str
    weights_origin: str


class Inputs(Weights):
    """The fields of a Plan that say where the data and the pretrained weights of a Task are."""

    data: dict[str, str] | None
    data_origin: Origin


def model_plan(
    task: str,
    phase: str,
    scale: str,
    model: dict[str, Any],
    *,
    options: Options = NO_OPTIONS,
    files: Sequence[Path] = (),
) -> Plan:
    """Return the Plan of a user's model, whose samples are those of its task file, or seeded noise."""
    origin = Origin(origin="seeded noise", fingerprint="none")
    if model.get("task"):
        path = Path(model["task"])
        origin = Origin(origin="/".join(path.parts[-2:]), fingerprint=content.of_file(path) or "unknown")
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
        options=options,
    )


def inputs(task: str) -> tuple[Inputs, str | None]:
    """Return where the data and weights of a Task are, and a notice if the data is synthetic.

    They are searched again only if the configuration or a file has changed. Raises DataError if an existing file is
    unsafe or damaged.
    """
    name, notice, configuration = tasks.make(task, "paper").data, None, config.current()
    if name is None:
        origin = "synthetic" if tasks.has_meaning(task) else "seeded noise"
        fields = Inputs(data=None, data_origin=Origin(origin=origin, fingerprint="none"))
    else:
        dataset = dataset_of(name, configuration, data.state(name, configuration))
        notice = dataset.notice
        paths = {part: str(path) for part, path in dataset.paths.items()}
        fields = Inputs(data=paths, data_origin=Origin(origin=dataset.origin, fingerprint=dataset.fingerprint))
    pretrained = weights_of(configuration, data.state(None, configuration)) if tasks.pretrained(task) else None
    if pretrained is not None:
        origin = f"{pretrained.origin} {pretrained.fingerprint}"
        fields["weights"], fields["weights_origin"] = str(pretrained.path), origin
    return fields, notice


@functools.cache
def dataset_of(name: str, configuration: Config, state: tuple[object, ...]) -> data.Dataset:
    """Return a data set; the files from which it is read are in this ``state``."""
    return data.load(name, configuration)


@functools.cache
def weights_of(configuration: Config, state: tuple[object, ...]) -> data.Weights | None:
    """Return the pretrained weights; the file from which they are read is in this ``state``."""
    return data.load_pretrained(configuration)


def announce_inputs(names: Iterable[str], say: Callable[[str], object] = say) -> None:
    """Find the data of the tasks before anything is timed, and say so if it is synthetic."""
    for name in dict.fromkeys(names):
        _, notice = inputs(name)
        if notice:
            say(f"stele: {notice}")


def measure(worker: Worker, plan: Plan, settings: Settings, *, progress: Progress | None = None) -> Run:
    """Measure one recipe in a fresh worker. Raises WorkerError if the worker fails."""
    monitor = Monitor(settings, session=worker.pid)
    runs = filter(None, measure_steps(worker, [plan], settings, progress=progress))
    [run] = with_content(list(runs), worker, plan)
    return msgspec.structs.replace(run, conditions=monitor.conditions())


def with_content(runs: Sequence[Run], worker: Worker, plan: Plan) -> tuple[Run, ...]:
    """Return the Runs of a launch that has ended, with what its model has read and what decided it.

    Raises SteleError, which names what changed, if something that decides it changed during the launch.
    """
    reads, before = reads_of(worker, plan.model), runs[0].content
    if changed := content.changed_groups(before, content_of(worker, plan)):
        raise SteleError(
            f"What is measured changed during a launch of '{worker.environment.name}': {changed}. "
            "Undo the change, and measure again; stele gate continues with --resume."
        )
    after = content_of(worker, plan, reads)
    return tuple(run.with_reads(reads, after) for run in runs)


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
    """The worker of one side failed, with this error, in one of the plans of its launch."""

    def __init__(self, side: str, error: WorkerError, lane: int = 0, plan: int = 0) -> None:
        super().__init__(str(error))
        self.side, self.error, self.lane, self.plan = side, error, lane, plan

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
    """Measure the same plan in a fresh worker of each environment, as one lane, and return a Run per side."""
    [runs] = measure_lanes([sides], [plan], settings, timeout=timeout, caches=caches, changed=changed)
    return {side: run for side, [run] in runs.items()}


def measure_lanes(
    lanes: Sequence[Mapping[str, Environment]],
    plans: Sequence[Plan],
    settings: Settings,
    *,
    timeout: float = TIMEOUT,
    groups: Sequence[Sequence[int]] | None = None,
    caches: Path | None = None,
    changed: Mapping[str, Settings] = {},
) -> list[dict[str, tuple[Run, ...]]]:
    """Measure the plans, one after the other, in a fresh worker of each side. Return a Run per plan, side and lane.

    On a CPU, the sides of a lane take turns step by step. Another process on the second thread of a core can halve the
    speed for a short time: that changes the ratio of two launches by a tenth, but the ratio of two neighbouring steps
    hardly at all. What a launch does once, the import and the first step, all sides do at the same time, if they can
    share a processor: see ``can_share``. On a GPU, all sides run one after the other, because their processes would
    share its memory.

    Lanes run at the same time if ``groups`` has the numbers of the processors of each; they then step together, so that
    every turn of a lane has the same company. Without ``groups``, they run one after the other. A plan starts when all
    have ended the one before. ``changed`` has the settings of sides that have others; the device is the same.
    ``caches`` has the compilations of earlier launches; by default, a launch has none. Raises SideFailed.
    """
    one_by_one = [
        [lane] if settings.device == "cpu" else [{side: environment} for side, environment in lane.items()]
        for lane in lanes
    ]
    if groups is None and sum(map(len, one_by_one)) > 1:
        alone = functools.partial(measure_lanes, timeout=timeout, caches=caches, changed=changed)
        runs_of_parts = [[alone([part], plans, settings)[0] for part in parts] for parts in one_by_one]
        return [{side: of_side for part in parts for side, of_side in part.items()} for parts in runs_of_parts]
    workers: list[dict[str, Worker]] = [{} for _ in lanes]
    runs: list[dict[str, list[Run]]] = [{side: [] for side in lane} for lane in lanes]
    everyone = [environment for lane in lanes for environment in lane.values()]
    in_turns = min(map(len, lanes)) > 1 and plans[0].phase != TIME_TO_ACCURACY
    together = in_turns and can_share(everyone, plans[0].program, settings)
    ended = 0  # plans
    with contextlib.ExitStack() as stack:
        threads = stack.enter_context(ThreadPoolExecutor(sum(map(len, lanes))))  # ends last, after the workers
        try:
            for number, lane in enumerate(lanes):
                for side, environment in lane.items():
                    with processors.pinned(groups[number] if groups else None):
                        name, caches_of_side = log_name(side, number), caches and caches / environment.slug
                        of_side = changed.get(side, settings)
                        worker = launch(
                            environment,
                            of_side,
                            name=name,
                            timeout=timeout,
                            caches=caches_of_side,
                            program=plans[0].program,
                        )
                    workers[number][side] = stack.enter_context(worker)
            steps_of = [
                {
                    side: measure_steps(
                        worker,
                        plans,
                        changed.get(side, settings),
                        turn=TURN if len(lane) > 1 else None,
                        together=together,
                    )
                    for side, worker in lane.items()
                }
                for lane in workers
            ]
            while ended < len(plans):
                # the sides that have not ended, in the order of their turns
                waiting = [[(number, side) for side in lane] for number, lane in enumerate(lanes)]
                for part in itertools.count():
                    turns = [lane if together and part < FIRST_STEP else lane[:1] for lane in waiting]
                    if not (turn := list(itertools.chain(*turns))):
                        break
                    parts = threads.map(next, [steps_of[number][side] for number, side in turn])
                    for (number, side), run in zip(turn, parts, strict=True):
                        waiting[number].remove((number, side))
                        if run is None:
                            waiting[number].append((number, side))
                        else:
                            runs[number][side].append(run)
                ended += 1
            return [
                {side: with_content(runs[number][side], worker, plans[0]) for side, worker in lane.items()}
                for number, lane in enumerate(workers)
            ]
        except WorkerError as error:
            side, number = find_side(error.worker, workers, default=(side, number))
            raise SideFailed(side, error, number, min(ended, len(plans) - 1)) from None


def can_share(environments: Iterable[Environment], program: str | None, settings: Settings) -> bool:
    """Return whether launches of these environments import, and make the first step, at the same time on a processor.

    Then a disturbance of milliseconds hits all of them. One after the other, four imports of the same release differed
    by 15 to 21 % on a virtual machine; at the same time, by 0.3 to 0.5 % (standard deviation; AMD EPYC, 2 processors,
    2026-12-01). The time in which a side waits for the processor does not count: see ``stele_worker.clock.stopwatch``.
    Programs of the user, except functions, may use the same files and ports, and workers in other languages do not
    know it.
    """
    return (
        settings.device == "cpu"
        and settings.processors == 1
        and program in (None, "function")
        and all(map(is_in_python, environments))
        and processors.usage() is not None
    )


def is_in_python(environment: Environment) -> bool:
    """Return whether the worker of an environment is that in Python: others know fewer options."""
    return builds.command(environment)[-len(MODULE) :] == MODULE


def log_name(side: str, lane: int) -> str:
    return f"side-{side}" if lane == 0 else f"side-{side}-{lane + 1}"


def find_side(
    worker: Worker | None, lanes: Sequence[Mapping[str, Worker]], default: tuple[str, int]
) -> tuple[str, int]:
    """Return the side and the lane of a worker; ``default`` if it never started."""
    sides = ((side, number) for number, lane in enumerate(lanes) for side in lane if lane[side] is worker)
    return next(sides, default)


def measure_steps(
    worker: Worker,
    plans: Sequence[Plan],
    settings: Settings,
    *,
    turn: int | None = None,
    together: bool = False,
    progress: Progress | None = None,
) -> Iterator[Run | None]:
    """Measure the plans one after the other: yield None at every pause of the worker, and the Run of each plan.

    The worker pauses every ``turn`` steps; never with ``turn=None``. ``together``: other workers import, and make the
    first step, at the same time on the same processor.
    """
    before, earlier = content_of(worker, plans[0]), Lifetime(start=0.0, waiting=0.0, total=0.0)
    framework = configure(worker, settings, model=plans[0].model, together=together)
    if plans[0].program:
        worker.ask("collect", expected=answers.Collected)
    for plan, following in itertools.zip_longest(plans, plans[1:]):
        options = options_of(worker, plan, settings, turn, together=together)
        metered = settings.device if plan.phase == TIME_TO_ACCURACY and turn is None else None
        with energy.metered(metered) as joules:
            request = request_of(plan, settings, options)
            request |= {"following": following.task} if plan.program and following else {}
            outcome = yield from worker.exchange(plan.verb, progress=progress, expected=Outcome, **request)
        parts: dict[str, Any] = msgspec.structs.asdict(outcome)
        if settings.device == "cuda":
            parts["memory"] = msgspec.structs.replace(outcome.memory, process=nvml.memory_of(worker.pid))
        until_now = Lifetime(start=worker.start or 0.0, waiting=worker.waiting, total=worker.age)
        with worker.checking(plan.phase):
            run = Run(
                **parts,
                when=datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
                environment=worker.environment.name,
                label=worker.environment.label,
                mode=worker.environment.mode,
                task=plan.task,
                phase=plan.phase,
                scale=plan.scale,
                settings=settings,
                options=options,
                framework=framework,
                machine=machine.facts(),
                data=plan.data_origin,
                weights=plan.weights_origin,
                lifetime=until_now.since(earlier),
                energy=joules() or None,
                content=before,
            )
        earlier = until_now
        yield run


def options_of(worker: Worker, plan: Plan, settings: Settings, turn: int | None, *, together: bool) -> Options:
    """Return the options of a plan with those that follow from the worker and the settings."""
    return msgspec.structs.replace(
        plan.options,
        form=worker.environment.forms.get(plan.task),
        warmup=msgspec.structs.replace(plan.warmup, seconds=0.0 if settings.device == "cpu" else devices.WARM_SECONDS),
        turn=turn,
        together=together,
        limit=plan.options.limit if is_in_python(worker.environment) else None,
    )


def request_of(plan: Plan, settings: Settings, options: Options) -> dict[str, Any]:
    """Return the fields of the request of a plan."""
    places = {"model": plan.model, "checkpoint": plan.checkpoint, "sampler": plan.sampler}
    return {
        "task": plan.task,
        "scale": plan.scale,
        "seed": settings.seed,
        "data": plan.data,
        "weights": plan.weights,
        **options.as_request(),
        **{name: value for name, value in places.items() if value is not None},
    }


def configure(
    worker: Worker,
    settings: Settings,
    *,
    model: dict[str, Any] | None = None,
    tuned: bool | None = None,
    shards: int = 1,
    together: bool = False,
) -> Framework:
    """Import and configure the framework, and import the module of the user's ``model``.

    A user's model runs without the flags with which Stele makes a framework fast; without ``model``, ``tuned`` says
    so. With ``shards``, one device computes a batch in so many parts, as the reference for so many devices.
    ``together``: other workers import at the same time on the same processor.
    The flags that this returns also have the versions of Python and NumPy.
    """
    environment = worker.environment
    request = {
        **settings.as_request(tuned=model is None if tuned is None else tuned),
        "mode": environment.mode,
    }
    request |= {} if shards == 1 else {"shards": shards}
    request |= {"together": True} if together else {}
    host: answers.Hello = worker.ask("hello", expected=answers.Hello)
    if host.protocol != protocol.VERSION:
        raise protocol_error(worker, host.protocol)
    more: dict[str, Any] = {} if model is None else {"model": model}
    result: Framework = worker.ask(
        "configure", framework=environment.framework, settings=request, expected=Framework, **more
    )
    flags = {**result.flags, "python": host.python, "numpy": host.numpy}
    return msgspec.structs.replace(result, flags=flags)


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
