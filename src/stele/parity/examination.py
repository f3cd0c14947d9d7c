"""One recipe examined: a Worker asked for its numbers, the ladder climbed, the oracle asked why it breaks."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from stele import environments
from stele.environments import Environment
from stele.measuring import measure, progress, store, worker
from stele.measuring.run import Run
from stele.measuring.settings import Settings
from stele.measuring.worker import Worker, WorkerError
from stele.parity import accuracy, golden_numbers, ladder
from stele.parity.ladder import Finding, LadderResult
from stele_worker.causes import CAUSES

Variant = Callable[
    [str, str], dict[str, Any]
]  # of a cause and a phase, what the oracle computes with that cause in it
# a cause explains a break if the error with it is at most so many times what is allowed, and so many times smaller
LENIENCE, GAIN = 10, 3


def run_ladder(
    row: Environment, task: str, settings: Settings, *, timeout: float = worker.TIMEOUT
) -> LadderResult:
    """Climb rungs 1 to 9 in workers of their own, with deterministic kernels. A worker that fails breaks at rung 1."""
    settings = replace(settings, deterministic=True)
    having = phases(row, task, settings)
    day, versions = date.today().isoformat(), {}
    try:
        with worker.live(row, settings, timeout=timeout) as live:
            versions = measure.configure(live, settings)["versions"]
            findings = examine(live, task, settings, having)
        if "train" in having:
            findings = [*findings, repetition(row, task, settings)]
    except WorkerError as error:
        findings = [Finding(1, "differs", str(error))]
    return LadderResult(findings, versions, day)


def phases(row: Environment, task: str, settings: Settings) -> list[str]:
    """The phases of a Task that a row has."""
    where = {"device": settings.device, "precision": settings.precision}
    return [phase for phase in ("infer", "train") if row.why_absent(task, phase, **where) is None]


def examine(
    live: Worker, task: str, settings: Settings, phases: Iterable[str] = ("infer", "train")
) -> list[Finding]:
    """Climb rungs 1 to 8 with a configured Worker; the first that breaks says its likely cause, if one is known."""
    form = live.environment.forms.get(task)
    golden = golden_numbers.load(task, form)
    numbers = parity_answers(live, task, form, phases)
    findings = ladder.compare(numbers, golden, task=task, precision=settings.precision)
    if ladder.first_difference(findings) and "logits" not in numbers:  # what shows in training may lie deeper
        numbers |= parity_answers(live, task, form, ["infer"])
        findings = ladder.compare(numbers, golden, task=task, precision=settings.precision)
    first = ladder.first_difference(findings)
    if first is None:
        return findings
    with worker.live(environments.ORACLE, Settings(device="cpu")) as oracle:
        measure.configure(oracle, Settings(device="cpu"))
        cause = likely(first, numbers, golden, task, settings.precision, variants(oracle, task, form))
    return [with_cause(finding, cause) if finding is first else finding for finding in findings]


def parity_answers(live: Worker, task: str, form: str | None, phases: Iterable[str]) -> dict[str, Any]:
    """A Worker's answers to ``parity``, put together."""
    numbers: dict[str, Any] = {}
    for phase in phases:
        numbers.update(live.ask("parity", task=task, phase=phase, seed=golden_numbers.SEEDS[task], form=form))
    return numbers


def variants(oracle: Worker, task: str, form: str | None) -> Variant:
    norms = golden_numbers.norms(task, form)

    def variant(cause: str, phase: str) -> dict[str, Any]:
        seed = golden_numbers.SEEDS[task]
        return {
            "norms": norms,
            **oracle.ask("parity", task=task, phase=phase, seed=seed, form=form, cause=cause),
        }

    return variant


def likely(
    first: Finding,
    numbers: dict[str, Any],
    golden: dict[str, Any],
    task: str,
    precision: str,
    variant: Variant,
) -> str | None:
    """The message of the known cause with which the oracle computes what the recipe computed; None if there is none.

    The weights' own finding says what became of them, and that inference is none needs no other words.
    """
    if first.rung in (1, 8):
        return None
    phase = ladder.PHASE[first.rung]
    # the same loss at the start has more than one cause
    decisive = 3 if phase == "infer" else max(first.rung, 5)
    _, check = ladder.RUNGS[decisive]
    allowed = LENIENCE * ladder.limit(decisive, task, precision)
    unexplained = check(decisive, allowed, numbers, golden).error
    left = {}
    for name, cause in CAUSES.items():
        if task in cause.tasks and cause.phase == phase:
            error = check(decisive, allowed, numbers, variant(name, phase)).error
            if error is not None and unexplained is not None and error <= min(allowed, unexplained / GAIN):
                left[cause.message] = error
    return min(left, key=lambda message: left[message], default=None)


def with_cause(finding: Finding, cause: str | None) -> Finding:
    said = "" if cause is None else f". Likely cause: {cause}"
    return finding._replace(message=finding.message + said)


def repetition(row: Environment, task: str, settings: Settings) -> Finding:
    """Rung 9, in two launches; ``settings`` should be deterministic ones."""
    if row.varies is not None:
        return ladder.repetition([], promised=row.varies)
    answers = []
    for _ in range(2):
        with worker.live(row, settings) as live:
            measure.configure(live, settings)
            answers.append(parity_answers(live, task, row.forms.get(task), ["repeat"]))
    return ladder.repetition(answers, promised=None)


SEED = 100  # the first: the reference was measured from 0 on, and has to be independent


def accuracy_rung(
    row: Environment, task: str, scale: str, seeds: int, settings: Settings, runs: Path
) -> Finding:
    """Rung 10: train from several seeds, each in a launch of its own, and keep every Run.

    Where so many do not show that the accuracies are equivalent, twice as many may.
    """
    accuracies: list[float] = []
    found = None
    while found is None or (found.status == "differs" and len(accuracies) < 2 * seeds):
        run = trained(row, task, scale, replace(settings, seed=SEED + len(accuracies)))
        store.save(run, runs)
        if run.accuracy is None:
            return Finding(10, "absent", "labels mean nothing here")
        if accuracy.band(run) is None:
            return Finding(10, "absent", f"nobody measured a band at scale {scale} on this data: stele band")
        accuracies.append(run.accuracy)
        if len(accuracies) % seeds == 0:  # to look more often would be to choose when to stop
            found = learned(accuracies, run)
    return found


def learned(accuracies: list[float], run: Run) -> Finding:
    """The accuracies of Runs like this one beside the reference's, where it has a band, and the published ones."""
    reference, published = accuracy.reference(run), accuracy.published(run)
    found = [] if reference is None else [ladder.accuracy(accuracies, reference)]
    if published is not None:
        found.append(ladder.within(accuracies, published.low, published.high))
    return ladder.first_difference(found) or found[0]


def trained(row: Environment, task: str, scale: str, settings: Settings) -> Run:
    fields, _ = measure.inputs(task)
    plan = measure.Plan(task=task, phase="train", scale=scale, **fields)
    with worker.live(row, settings) as live, progress.bar(f"{row.name} {task}, seed {settings.seed}") as show:
        return measure.measure(live, plan, settings, progress=show)
