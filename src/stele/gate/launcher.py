"""Launch the arms of a trial in one cell: one pass, or several at the same time on separate processors."""

import dataclasses
import functools
import math
import operator
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from stele.environments.description import slug
from stele.gate.metrics import KINDS, LONG, MOST_TRAININGS, Kind, phase_of
from stele.gate.record import Entry
from stele.gate.trial import ARMS, NEW_ARMS, Cell, Trial, content_of
from stele.measuring import content, machine, measure, processors
from stele.measuring.conditions import Conditions, Monitor
from stele.measuring.content import NOTHING
from stele.measuring.measure import SideFailed
from stele.measuring.run import Run
from stele.measuring.settings import Settings
from stele.models import inspection
from stele.models.spec import Model

ATTEMPTS = 2  # of a pass; a failed attempt is followed by a launch of each arm alone
LEAST_TIMEOUT = 30.0  # seconds
PATIENCE = 5  # after an arm failed, the timeout in times that a launch took that succeeded
LIKELY_MEMORY = 2 * 2**30  # bytes of a process, before one was measured
CACHES = Path(".stele/caches")  # compilations of earlier launches
SPARE_MEMORY = 1.2  # times what the processes of the passes need


class Launcher(NamedTuple):
    """Launches arms of a trial in one cell."""

    trial: Trial
    cell: Cell
    settings: Settings
    scale: str
    steps: int | None = None  # of each launch; None for all of the scale
    kind: Kind = KINDS[LONG]
    timed: bool = True
    number: int = 0  # of the pass
    attempts: int = ATTEMPTS
    limit: float | None = None  # seconds of the steps of a launch
    left: float = math.inf  # seconds of the budget; when they are over, a failure is not looked at again

    def launch_passes(self, orders: Sequence[Sequence[str]]) -> list[Entry]:
        """Measure passes at the same time, each with its order of the arms, and return an entry for each.

        If a launch fails, only the first pass is measured: perhaps there is not enough memory for all.
        """
        if len(orders) == 1:
            return [self.launch(orders[0])]
        monitor = Monitor(self.settings, lanes=len(orders))
        try:
            lanes = measure_lanes(self, orders, self.trial.timeout)
        except SideFailed as error:
            return [self.launch(orders[0], failed=error, monitor=monitor)]
        conditions = monitor.conditions()
        return [to_entry(runs, [], conditions, len(lanes)) for runs in lanes]

    def launch(
        self, arms: Sequence[str], *, failed: SideFailed | None = None, monitor: Monitor | None = None
    ) -> Entry:
        """Measure a fresh process for each arm, in this order, and return the entry for the record.

        If one fails, each arm is launched once alone, to see which ones fail, and then all are launched again, while
        the budget lasts. The entry has the failures of each of these rounds: see ``stele.gate.failures``. ``failed`` is
        a first attempt that has failed, which ``monitor`` observed. Raises ModelError if the user's code fails in OLD.
        """
        monitor, runs = monitor or Monitor(self.settings), None
        rounds: list[dict[str, Any]] = []
        timeout = self.trial.timeout
        for _ in range(self.attempts):
            if failed is None:
                try:
                    runs = measure_arms(self, arms, timeout)
                    break
                except SideFailed as error:
                    failed = error
            rounds.append({"arms": list(arms), "failures": {failed.side: failure_message(failed)}})
            if len(arms) > 1:
                alone, timeout = self.launch_alone(arms, timeout, monitor)
                rounds += [alone] if alone["arms"] else []
            failed = None
            if monitor.seconds >= self.left:
                break
        return to_entry(runs, rounds, monitor.conditions(), 1)

    def launch_alone(
        self, arms: Sequence[str], timeout: float, whole: Monitor
    ) -> tuple[dict[str, Any], float]:
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
                measure_arms(self, [arm], timeout)
            except SideFailed as error:
                failures[arm] = failure_message(error)
            else:
                timeout = min(timeout, max(PATIENCE * monitor.conditions().seconds, LEAST_TIMEOUT))
        return {"arms": tried, "failures": failures}, timeout


def failure_message(failed: SideFailed) -> str:
    """Return why a launch failed. Raises ModelError if the user's code fails in OLD, where no release is to blame."""
    user_error = inspection.user_error(failed.error)
    if user_error is not None and failed.side not in NEW_ARMS:
        raise user_error
    return str(user_error or failed)


def to_entry(
    runs: Mapping[str, Run] | None, rounds: list[dict[str, Any]], conditions: Conditions, passes: int
) -> Entry:
    """Return the entry of one of so many ``passes`` that were measured at the same time: each took a share of it."""
    reads = (run.reads or NOTHING for run in (runs or {}).values())
    return {
        "runs": None if runs is None else {arm: run.to_dict() for arm, run in runs.items()},
        "rounds": rounds,
        "conditions": conditions._asdict(),
        "took": conditions.seconds / passes,
        "reads": functools.reduce(operator.or_, reads, NOTHING),
    }


def measure_arms(launcher: Launcher, arms: Sequence[str], timeout: float) -> dict[str, Run]:
    """Measure the arms in turns; if they are not timed, each on processors of its own."""
    if launcher.timed:
        [runs] = measure_lanes(launcher, [arms], timeout)
        return runs
    lanes = measure_lanes(launcher, [[arm] for arm in arms], timeout)
    return {arm: run for runs in lanes for arm, run in runs.items()}


def measure_lanes(
    launcher: Launcher, orders: Sequence[Sequence[str]], timeout: float
) -> list[dict[str, Run]]:
    """Measure arms that take turns, in several lanes at the same time; or one lane after the other.

    One after the other on a GPU, and without a processor for each lane. Launches that are not timed may share a core.
    """
    trial, settings = launcher.trial, launcher.settings
    plan = plan_of(
        launcher.cell,
        launcher.scale,
        trial.model,
        launcher.steps,
        launcher.kind,
        target=trial.target_of(launcher.cell.task),
        limit=launcher.limit,
    )
    caches = fill_caches(launcher, plan, timeout) if launcher.kind.cached else None
    lanes = [{arm: trial.arm(arm) for arm in order} for order in orders]
    groups = processors.lanes(settings.processors, of=None if launcher.timed else processors.usable())
    if len(lanes) > 1 and settings.device == "cpu" and len(groups) >= len(lanes):
        return measure.at_once(lanes, plan, settings, timeout=timeout, groups=groups, caches=caches)
    return [
        measure.side_by_side(
            lane, plan, settings, timeout=timeout, caches=caches, changed=seeds_of(launcher, lane)
        )
        for lane in lanes
    ]


def seeds_of(launcher: Launcher, arms: Iterable[str]) -> dict[str, Settings]:
    """Return the settings of arms that train, each with seeds of its own.

    With equal seeds, two launches of a release would give equal accuracies, so they would not show how much accuracies
    differ, and a release could be blamed for bad luck. The order of the arms is random, so the seeds are, too.
    """
    if not launcher.kind.trains:
        return {}
    first = launcher.number * len(ARMS)
    return {
        arm: replace(launcher.settings, seed=(first + place) * MOST_TRAININGS)
        for place, arm in enumerate(arms)
    }


def fill_caches(launcher: Launcher, plan: measure.Plan, timeout: float) -> Path:
    """Launch each release once, so that the next launches find its compilations. Return the folder of the caches.

    Compilations of something else do not fill it: the folder is that of all that decides what is compiled.
    """
    what = content_of(launcher.trial), dataclasses.asdict(plan), launcher.settings.as_fields()
    folder = CACHES / content.digest(what) / slug(str(launcher.cell))
    for arm in ("old", "new"):
        environment = launcher.trial.arm(arm)
        if not (folder / environment.slug).exists():
            try:
                measure.side_by_side(
                    {arm: environment}, plan, launcher.settings, timeout=timeout, caches=folder
                )
            except BaseException:
                shutil.rmtree(folder / environment.slug, ignore_errors=True)
                raise
    return folder


def passes_at_once(trial: Trial, earlier: Sequence[Mapping[str, Run]], *, busy: bool) -> int:
    """Return how many passes to measure at the same time: as many as there are cores and memory for.

    ``earlier`` are the Runs of earlier passes, whose memory the next ones need. One if other processes use the machine:
    then the system can move them to the processor that is free.
    """
    if trial.at_once == 1 or busy or trial.settings.device != "cpu":
        return 1
    runs = earlier[-1].values() if earlier else []
    memory = sum(run.host_memory or LIKELY_MEMORY for run in runs) or len(ARMS) * LIKELY_MEMORY
    enough = int(machine.available_memory() / (SPARE_MEMORY * memory))
    return max(1, min(trial.at_once, len(processors.lanes(trial.settings.processors)), enough))


def plan_of(
    cell: Cell,
    scale: str,
    model: Model | None,
    steps: int | None = None,
    kind: Kind = KINDS[LONG],
    *,
    target: float | None = None,
    limit: float | None = None,
) -> measure.Plan:
    """Return the plan of a cell of a task, or of a user's model. ``target`` is that of a kind that trains.

    ``limit`` is in seconds, of the steps of a launch.
    """
    asked = {**kind.asked, **({} if limit is None or steps is None else {"limit": limit})}
    if model is not None:
        request = model.as_request()
        return measure.model_plan(
            cell.task, cell.phase, scale, request, steps=steps, asked=asked, files=model.sources()
        )
    fields, _ = measure.inputs(cell.task)
    if kind.trains:
        asked["target"] = target
    return measure.Plan(
        task=cell.task, phase=phase_of(kind, cell.phase), scale=scale, steps=steps, asked=asked, **fields
    )


def failure_messages(entry: Mapping[str, Any]) -> dict[str, str]:
    """Return the last failure of each arm, for a launch without Runs; else nothing."""
    if entry["runs"] is not None:
        return {}
    return {arm: message for one in entry["rounds"] for arm, message in one["failures"].items()}
