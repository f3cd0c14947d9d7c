"""Launch the arms of a trial in one cell: one pass, or several at the same time on separate processors."""

import functools
import itertools
import math
import operator
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, TypedDict

import msgspec

from stele import schema
from stele.environments import Environment
from stele.gate.entries import Round
from stele.gate.metrics import KINDS, LONG, MOST_TRAININGS, Kind, phase_of
from stele.gate.record import Entry
from stele.gate.trial import ARMS, NEW_ARMS, Trial, content_of
from stele.measuring import content, machine, measure, processors
from stele.measuring.conditions import Conditions, Monitor
from stele.measuring.content import NOTHING
from stele.measuring.measure import SideFailed
from stele.measuring.run import Run
from stele.measuring.settings import Settings
from stele.subjects import Cell, Subject, errors
from stele.text import slug

ATTEMPTS = 2  # of a pass; a failed attempt is followed by a launch of each arm alone
LEAST_TIMEOUT = 30.0  # seconds
PATIENCE = 5  # after an arm failed, the timeout in times that a launch took that succeeded
LIKELY_MEMORY = 2 * 2**30  # bytes of a process, before one was measured
CACHES = Path(".stele/caches")  # compilations of earlier launches
SPARE_MEMORY = 1.2  # times what the processes of the passes need


class Request(TypedDict):
    """What ``measure.measure_lanes`` receives, without the timeout."""

    lanes: list[dict[str, Environment]]
    plans: tuple[measure.Plan, ...]
    settings: Settings
    groups: list[list[int]] | None
    caches: Path | None
    changed: dict[str, Settings]


class Launcher(NamedTuple):
    """Launches arms of a trial. A launch measures the plans one after the other."""

    trial: Trial
    plans: tuple[measure.Plan, ...]
    settings: Settings
    kind: Kind = KINDS[LONG]
    timed: bool = True
    number: int = 0  # of the pass
    attempts: int = ATTEMPTS
    left: float = math.inf  # seconds of the budget; when they are over, a failure is not looked at again

    def launch(self, orders: Sequence[Sequence[str]]) -> list[list[Entry | None]]:
        """Measure passes at the same time, each with its order of the arms. Return an entry for each pass and plan.

        If a launch fails, only the first pass is measured: perhaps there is not enough memory for all. Each of its arms
        is launched once alone, to see which ones fail, and then all are launched again, while the budget lasts. The
        entry of the plan that failed has the failures of each of these rounds: see ``stele.gate.failures``. If it fails
        to the end, the other plans have no entry. Raises SubjectError if the user's code fails in OLD.
        """
        monitor, timeout = Monitor(self.settings, lanes=len(orders)), self.trial.timeout
        rounds: list[list[Round]] = [[] for _ in self.plans]
        for _ in range(self.attempts):
            try:
                passes = self.of_passes(measure.measure_lanes(**self.request(orders), timeout=timeout))
                conditions = monitor.conditions()
                return [to_entries(runs, rounds, conditions, len(passes)) for runs in passes]
            except SideFailed as error:
                failed, failures = error.plan, {error.side: failure_message(error)}
            orders = orders[:1]
            rounds[failed].append({"arms": list(orders[0]), "failures": failures})
            if len(orders[0]) > 1:
                alone, timeout = self.launch_alone(orders[0], timeout, monitor)
                rounds[failed] += [alone] if alone["arms"] else []
            if monitor.seconds >= self.left:
                break
        return [to_entries(None, rounds, monitor.conditions(), 1)]

    def request(self, orders: Sequence[Sequence[str]]) -> Request:
        """Return what is measured and on which processors.

        The arms of a pass take turns; if they are not timed, each has processors of its own, if there are enough.
        Launches that are not timed may share a core.
        """
        trial, settings = self.trial, self.settings
        in_lanes = orders if self.timed else [[arm] for order in orders for arm in order]
        groups = processors.lanes(settings.processors, of=None if self.timed else processors.usable())
        together = len(in_lanes) > 1 and settings.device == "cpu" and len(groups) >= len(in_lanes)
        return Request(
            lanes=[{arm: trial.arm(arm) for arm in lane} for lane in in_lanes],
            plans=self.plans,
            settings=settings,
            groups=groups if together else None,
            caches=fill_caches(self) if self.kind.cached else None,
            changed=seeds_of(self, orders[0]),
        )

    def of_passes(self, lanes: list[dict[str, tuple[Run, ...]]]) -> list[dict[str, tuple[Run, ...]]]:
        """Return the Runs of each pass; the lanes of arms that are not timed are one pass."""
        return lanes if self.timed else [{arm: runs for lane in lanes for arm, runs in lane.items()}]

    def launch_alone(self, arms: Sequence[str], timeout: float, whole: Monitor) -> tuple[Round, float]:
        """Launch each arm alone, while the budget lasts. Return the round, and the timeout of the next launches.

        A launch that succeeds shows how long one takes, so that a release that hangs does not take the budget.
        ``whole`` observes all launches of the pass.
        """
        tried, failures = [], {}
        for arm in arms:
            if whole.seconds >= self.left:
                break
            monitor = Monitor(self.settings)
            tried.append(arm)
            try:
                measure.measure_lanes(**self.request([[arm]]), timeout=timeout)
            except SideFailed as error:
                failures[arm] = failure_message(error)
            else:
                timeout = min(timeout, max(PATIENCE * monitor.conditions().seconds, LEAST_TIMEOUT))
        return {"arms": tried, "failures": failures}, timeout


def failure_message(failed: SideFailed) -> str:
    """Return why a launch failed. Raises SubjectError if the user's code fails in OLD, where no release is to blame."""
    user_error = errors.user_error(failed.error)
    if user_error is not None and failed.side not in NEW_ARMS:
        raise user_error
    return str(user_error or failed)


def to_entries(
    launched: Mapping[str, tuple[Run, ...]] | None, rounds: Sequence[list[Round]], conditions: Conditions, passes: int
) -> list[Entry | None]:
    """Return the entries of one of so many ``passes`` that were measured at the same time, one for each plan.

    Each took a share of the time. ``rounds`` are the attempts that failed, by plan. If there are no Runs, a plan that
    did not fail has no entry.
    """
    counted = [plan for plan, of_plan in enumerate(rounds) if launched is not None or of_plan]
    took = conditions.seconds / passes / len(counted)
    entries: list[Entry | None] = [None] * len(rounds)
    for plan in counted:
        runs = None if launched is None else {arm: of_arm[plan] for arm, of_arm in launched.items()}
        reads = (run.reads for run in (runs or {}).values())
        entries[plan] = {
            "runs": runs,
            "rounds": rounds[plan],
            "conditions": conditions,
            "took": took,
            "reads": functools.reduce(operator.or_, reads, NOTHING),
        }
    return entries


def seeds_of(launcher: Launcher, arms: Iterable[str]) -> dict[str, Settings]:
    """Return the settings of arms that train, each with seeds of its own.

    With equal seeds, two launches of a release would give equal accuracies, so they would not show how much accuracies
    differ, and a release could be blamed for bad luck. The order of the arms is random, so the seeds are, too.
    """
    if not launcher.kind.trains:
        return {}
    first = launcher.number * len(ARMS)
    return {arm: replace(launcher.settings, seed=(first + place) * MOST_TRAININGS) for place, arm in enumerate(arms)}


def fill_caches(launcher: Launcher) -> Path:
    """Launch each release once, so that the next launches find its compilations. Return the folder of the caches.

    Compilations of something else do not fill it: the folder is that of all that decides what is compiled.
    """
    [plan] = launcher.plans
    what = schema.to_json((content_of(launcher.trial), plan, launcher.settings))
    folder = CACHES / content.digest(what) / slug(f"{plan.task} {plan.phase}")
    for arm in ("old", "new"):
        environment = launcher.trial.arm(arm)
        if not (folder / environment.slug).exists():
            try:
                measure.side_by_side(
                    {arm: environment}, plan, launcher.settings, timeout=launcher.trial.timeout, caches=folder
                )
            except BaseException:
                shutil.rmtree(folder / environment.slug, ignore_errors=True)
                raise
    return folder


def lanes_of_parity(trial: Trial, count: int, memory: float | None = None) -> list[list[int]]:
    """Return the processors of each of ``count`` launches that are not timed, and so may run at the same time.

    There are none on a GPU, with ``parallel`` 1, on too few processors, or if there is too little memory: each launch
    needs ``memory`` bytes.
    """
    lanes = processors.lanes(trial.settings.processors, of=processors.usable())
    if trial.parallel == 1 or trial.settings.device != "cpu" or count < 2 or len(lanes) < 2:
        return []
    enough = machine.available_memory() >= SPARE_MEMORY * count * (memory or LIKELY_MEMORY)
    return list(itertools.islice(itertools.cycle(lanes), count)) if enough else []


def parallel_passes(trial: Trial, earlier: Sequence[Mapping[str, Run]], *, busy: bool) -> int:
    """Return how many passes to measure at the same time: as many as there are cores and memory for.

    ``earlier`` are the Runs of earlier passes, whose memory the next ones need. One if other processes use the machine:
    then the system can move them to the processor that is free.
    """
    if trial.parallel == 1 or busy or trial.settings.device != "cpu":
        return 1
    runs = earlier[-1].values() if earlier else []
    memory = sum(run.memory.host or LIKELY_MEMORY for run in runs) or len(ARMS) * LIKELY_MEMORY
    enough = int(machine.available_memory() / (SPARE_MEMORY * memory))
    return max(1, min(trial.parallel, len(processors.lanes(trial.settings.processors)), enough))


def plan_of(
    cell: Cell,
    scale: str,
    subject: Subject,
    steps: int | None = None,
    kind: Kind = KINDS[LONG],
    *,
    target: float | None = None,
    limit: float | None = None,
) -> measure.Plan:
    """Return the plan of a cell. ``target`` is that of a kind that trains.

    ``limit`` is in seconds, of the steps of a launch.
    """
    limited = None if steps is None else limit
    options = msgspec.structs.replace(kind.options, steps=steps, limit=limited, target=target if kind.trains else None)
    return subject.plan(cell._replace(phase=phase_of(kind, cell.phase)), scale, options)
