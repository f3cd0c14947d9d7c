"""Examine one recipe: ask a Worker for its numbers, compare them on the ladder, and find the likely cause."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import msgspec

from stele import environments
from stele.environments import Environment
from stele.measuring import answers, content, measure, progress, store, worker
from stele.measuring.answers import Numbers
from stele.measuring.run import Run
from stele.measuring.settings import Settings
from stele.measuring.worker import Worker, WorkerError
from stele.parity import accuracy, golden_numbers, ladder, reference
from stele.parity.ladder import Finding, LadderResult
from stele.subjects import Subject
from stele.subjects.base import OtherArm
from stele_worker.causes import CAUSES

# (cause, phase) -> the oracle's numbers with that cause planted
Variant = Callable[[str, str], Numbers]
# a cause explains a difference if the error with it is at most LENIENCE times the tolerance, and GAIN times smaller
LENIENCE, GAIN = 10, 3


def run_ladder(
    environment: Environment, task: str, settings: Settings, *, timeout: float = worker.TIMEOUT
) -> LadderResult:
    """Return the findings of rungs 1 to 9, with deterministic kernels. A worker that fails differs at rung 1."""
    settings = replace(settings, deterministic=True)
    available = phases(environment, task, settings)
    day, versions, failure = date.today().isoformat(), {}, None
    try:
        title = f"{environment.name} {task}: the ladder"
        with progress.waiting(title), worker.launch(environment, settings, timeout=timeout) as live:
            versions = measure.configure(live, settings).versions
            findings = examine(live, task, settings, available)
        if "train" in available:
            findings = [*findings, repetition(environment, task, settings)]
    except WorkerError as error:
        failure = str(error)
        findings = [Finding(1, "differs", failure)]
    return LadderResult(findings, versions, day, failure)


def phases(environment: Environment, task: str, settings: Settings) -> list[str]:
    """Return the phases of a Task that an environment can run."""
    return [
        phase
        for phase in ("infer", "train")
        if environment.why_absent(task, phase, device=settings.device, precision=settings.precision) is None
    ]


def examine(live: Worker, task: str, settings: Settings, phases: Iterable[str] = ("infer", "train")) -> list[Finding]:
    """Return the findings of rungs 1 to 8 for a configured Worker.

    The first difference names its likely cause if a known cause explains it.
    """
    form = live.environment.forms.get(task)
    golden = golden_numbers.load(task, form)
    numbers = parity_answers(live, task, form, phases)
    where = {"precision": settings.arithmetic, "device": settings.device}
    findings = ladder.compare(numbers, golden, task=task, **where)
    if ladder.first_difference(findings) and "logits" not in numbers:  # inference may differ at a lower rung
        numbers |= parity_answers(live, task, form, ["infer"])
        findings = ladder.compare(numbers, golden, task=task, **where)
    lowest = ladder.first_difference(findings)
    if lowest is None:
        return findings
    with worker.launch(environments.ORACLE, Settings(device="cpu")) as oracle:
        measure.configure(oracle, Settings(device="cpu"))
        variant = make_variant(oracle, task, form)
        cause = likely_cause(lowest, numbers, golden, task, settings, variant)
    return [with_cause(finding, cause) if finding is lowest else finding for finding in findings]


def parity_answers(live: Worker, task: str, form: str | None, phases: Iterable[str]) -> Numbers:
    """Return the worker's answers to ``parity`` for all phases, merged."""
    numbers: Numbers = {}
    for phase in phases:
        numbers.update(ask(live, task=task, phase=phase, seed=golden_numbers.seed(task), form=form))
    return numbers


def ask(live: Worker, **request: Any) -> Numbers:
    """Return the worker's answer to ``parity`` for one phase. Raises WorkerError if it is not as the protocol says."""
    if request["phase"] == "repeat":
        return live.ask("parity", expected=answers.Repetition, **request)
    numbers = live.ask("parity", expected=answers.Parity, **request)
    with live.checking("parity"):
        answers.check_sketches(numbers)
        answers.check_places(numbers)
    return numbers


def repeat_answer(live: Worker, task: str, form: str | None) -> Numbers:
    """Return the worker's answer to phase "repeat"."""
    seed = golden_numbers.seed(task)
    return live.ask("parity", expected=answers.Repetition, task=task, phase="repeat", seed=seed, form=form)


def examine_alone(live: Worker, subject: Subject, settings: Settings, phases: Sequence[str]) -> list[Finding]:
    """Return the findings that need no reference: the weights read back, and inference is repeatable."""
    return reference.alone(model_answers(live, subject, settings, phases))


def model_answers(
    live: Worker,
    subject: Subject,
    settings: Settings,
    phases: Sequence[str],
    *,
    read: OtherArm | None = None,
    save: OtherArm | None = None,
    flip: bool = False,
    own_values: bool = False,
    redraw: bool = False,
) -> Numbers:
    """Return a worker's answers of all phases, merged. ``read`` and ``save`` are files of weights and inputs.

    With ``own_values``, the worker also compares what this arm's own functions return with the files that it reads;
    with ``redraw`` too, from several seeds. With these, and with ``save``, it counts the operations of a step.
    """
    numbers: Numbers = {}
    for phase in phases:
        first = phase == phases[0]
        # training starts from the weights that inference has saved
        source = save if save is not None and not first else read
        fields: dict[str, Any] = {
            "task": subject.names[0],
            "seed": settings.seed,
            "model": subject.as_request(source),
        }
        if save is not None and first:
            paths = {"save": save.weights, "save_inputs": save.values, "checkpoint": save.checkpoint}
            fields |= {name: str(path) for name, path in paths.items() if path is not None}
        if own_values and first:
            fields["own"] = True
        if redraw and first:
            fields["redraw"] = True
        if own_values or save is not None:
            fields["operations"] = True
        numbers.update(ask(live, phase=phase, flip=flip, **fields))
    return numbers


def make_variant(oracle: Worker, task: str, form: str | None) -> Variant:
    """Return a function that asks the oracle for its numbers with a cause planted."""
    norms = golden_numbers.norms(task, form)

    def variant(cause: str, phase: str) -> Numbers:
        seed = golden_numbers.seed(task)
        return {
            "norms": norms,
            **ask(oracle, task=task, phase=phase, seed=seed, form=form, cause=cause),
        }

    return variant


def likely_cause(
    difference: Finding,
    numbers: Numbers,
    golden: Numbers,
    task: str,
    settings: Settings,
    variant: Variant,
) -> str | None:
    """Return the message of the known cause with which the oracle computes the recipe's numbers, or None.

    Rungs 1 and 8 give None, because their messages name the cause themselves.
    """
    if difference.rung in (1, 8):
        return None
    phase = ladder.PHASE[difference.rung]
    # several causes give the same loss before the first step, so decide at the gradients
    decisive = 3 if phase == "infer" else max(difference.rung, 5)
    _, check = ladder.RUNGS[decisive]
    accepted = LENIENCE * ladder.limit(decisive, task, settings.arithmetic, settings.device)
    unexplained = check(decisive, accepted, numbers, golden).error
    errors = {}
    for name, cause in CAUSES.items():
        if task in cause.tasks and cause.phase == phase:
            error = check(decisive, accepted, numbers, variant(name, phase)).error
            if error is not None and unexplained is not None and error <= min(accepted, unexplained / GAIN):
                errors[cause.message] = error
    return min(errors, key=lambda message: errors[message], default=None)


def with_cause(finding: Finding, cause: str | None) -> Finding:
    """Return the finding with its likely cause, if there is one, in the message."""
    suffix = "" if cause is None else f". Likely cause: {cause}"
    return msgspec.structs.replace(finding, message=finding.message + suffix)


def repetition(environment: Environment, task: str, settings: Settings) -> Finding:
    """Return the finding of rung 9, from two launches. ``settings`` should be deterministic."""
    if environment.varies is not None:
        return ladder.repetition([], nondeterminism=environment.varies)
    launches = []
    for _ in range(2):
        with worker.launch(environment, settings) as live:
            measure.configure(live, settings)
            launches.append(repeat_answer(live, task, environment.forms.get(task)))
    return ladder.repetition(launches, nondeterminism=None)


FIRST_SEED = 100  # the reference uses seeds from 0 on, and these accuracies must be independent of it


def accuracy_rung(
    environment: Environment,
    task: str,
    scale: str,
    seeds: int,
    settings: Settings,
    runs: Path,
    versions: Mapping[str, str | None],
) -> Finding:
    """Return the finding of rung 10: train from several seeds, one launch each, and save every Run below ``runs``.

    If ``seeds`` accuracies are not shown to be equivalent, train from as many seeds again. A seed that an interrupted
    command has trained with the same ``versions`` is not trained again.
    """
    accuracies: list[float] = []
    contents: list[dict[str, str] | None] = []
    finding = None
    while finding is None or (finding.status == "differs" and len(accuracies) < 2 * seeds):
        of_seed = replace(settings, seed=FIRST_SEED + len(accuracies))
        run = trained_before(environment, task, scale, of_seed, runs, versions)
        if run is None:
            run = train(environment, task, scale, of_seed)
            store.save(run, runs / store.UNFINISHED)
        if run.learning.accuracy is None:
            return Finding(10, "absent", "the task has no meaningful labels, so it has no accuracy")
        if accuracy.band(run) is None:
            return Finding(10, "absent", why_no_band(task, scale))
        accuracies.append(run.learning.accuracy)
        contents.append(run.content)
        content.require_same(contents, f"The trainings of {environment.name}")
        if len(accuracies) % seeds == 0:  # more frequent tests would raise the chance of false agreement
            finding = accuracy_finding(accuracies, run)
    return finding


def why_no_band(task: str, scale: str) -> str:
    scales = accuracy.scales(task)
    if scale not in scales:
        return f"{task} has bands only at the scales {', '.join(scales)}, which stele time-to-accuracy trains"
    return f"no band at scale {scale} on this data. Measure one with: stele band"


def trained_before(
    environment: Environment,
    task: str,
    scale: str,
    settings: Settings,
    runs: Path,
    versions: Mapping[str, str | None],
) -> Run | None:
    """Return the Run of the same training that an interrupted command has saved, or None."""
    origin = measure.inputs(task)[0]["data_origin"]
    facts = (environment.name, task, "train", scale, settings, dict(versions), origin)
    now = content.of_launch(environment)
    for run in store.load_all(runs / store.UNFINISHED):
        facts_of_run = (run.environment, run.task, run.phase, run.scale, run.settings, run.framework.versions, run.data)
        if facts == facts_of_run and run.content == now:
            return run
    return None


def accuracy_finding(accuracies: list[float], run: Run) -> Finding:
    """Return the finding of accuracies compared with the reference's, and with the published results.

    ``run`` gives the task, scale and data. The first difference counts.
    """
    reference, published = accuracy.reference_accuracies(run), accuracy.published_band(run)
    findings = [] if reference is None else [ladder.accuracy(accuracies, reference)]
    if published is not None:
        findings.append(ladder.within_range(accuracies, published.low, published.high))
    return ladder.first_difference(findings) or findings[0]


def train(environment: Environment, task: str, scale: str, settings: Settings) -> Run:
    """Train once in a fresh worker and return the Run."""
    fields, _ = measure.inputs(task)
    plan = measure.Plan(task=task, phase="train", scale=scale, **fields)
    title = f"{environment.name} {task}, seed {settings.seed}"
    with worker.launch(environment, settings) as live, progress.bar(title) as show:
        return measure.measure(live, plan, settings, progress=show)
