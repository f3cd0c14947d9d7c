"""Whether NEW computes what OLD computes of a user's model: OLD is the reference, and rounding is measured."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from stele.environments import Environment
from stele.gate import durations
from stele.gate.record import Entry, Record
from stele.gate.trial import Trial
from stele.gate.verdict import Verdict
from stele.measuring import measure, processors, progress, worker
from stele.measuring.conditions import Monitor
from stele.measuring.settings import Settings
from stele.measuring.worker import Worker, WorkerError
from stele.models import inspection
from stele.models.comparison import Comparison
from stele.models.spec import Model
from stele.parity import examination, ladder, reference

INSPECTION = ("model inspection",)  # the key of what both arms said about the model
SHOWN = 4  # differences in a message
REVERSED = "the batch reversed"
# if OLD and NEW failed equally often, the probability that all of these launches of NEW fail, and none of OLD, is at
# most 1 / 4^4 = 0.4 %
LAUNCHES = 4

Say = Callable[[str], object]
Ask = Callable[[Worker], dict[str, Any]]


def verdicts(trial: Trial, model: Model, record: Record, say: Say) -> Iterator[Verdict]:
    """Yield PASS or BROKEN; INCONCLUSIVE if OLD's answers are not a sufficient reference."""
    broken = asked_verdict(trial, model, record)
    if broken is not None:
        yield broken
        return
    weights = record.path.with_suffix(".npz")
    phases = [phase for phase in ("infer", "train") if any(cell.phase == phase for cell in trial.cells)]

    def answers(
        live: Worker, *, read: Path | None = None, save: Path | None = None, flip: bool = False
    ) -> Any:
        return examination.model_answers(live, model, trial.settings, phases, read=read, save=save, flip=flip)

    old = entry(trial, record, "old", trial.settings, lambda live: of_old(answers, live, weights), say)
    threads = other_threads(trial.settings)
    again = entry(trial, record, f"{threads} threads", replace(trial.settings, threads=threads),
                  lambda live: answers(live, read=weights), say)  # fmt: skip
    failure = old["failure"] or again["failure"]
    if failure:
        yield Verdict(model.name, "all", "parity", "INCONCLUSIVE", f"OLD: {failure}")
        return
    new = entry(trial, record, "new", trial.settings, lambda live: answers(live, read=weights), say)
    if new["failure"]:
        names = [f"OLD, launch {number}" for number in range(3, LAUNCHES + 1)]  # two have succeeded
        more = [entry(trial, record, name, trial.settings, lambda live: answers(live), say) for name in names]
        old_failure = next((one["failure"] for one in more if one["failure"]), None)
        status, message = ("BROKEN", f"NEW: {new['failure']}") if old_failure is None else (
            "INCONCLUSIVE", f"OLD fails, too: {old_failure}")  # fmt: skip
        yield Verdict(model.name, "all", "parity", status, message)
        return
    expected = old["numbers"]["reference"]
    changes = {f"{threads} threads": again["numbers"], REVERSED: old["numbers"]["reversed"]}
    precision = trial.settings.precision
    rounding = reference.measure_rounding(changes, expected, precision=precision)
    found = reference.findings(new["numbers"], expected, rounding, precision=precision)
    first, doubt = ladder.first_difference(found), reference.doubt(expected, rounding)
    if first is not None and rounding.by_change:
        status, message = "BROKEN", f"NEW differs from OLD: {ladder.message(first)}"
    elif doubt is not None:
        status, message = "INCONCLUSIVE", f"OLD cannot be the reference: {doubt}"
    else:
        status, message = "PASS", f"equal to OLD: {reference.summary(found)}"
    yield Verdict(model.name, "all", "parity", status, f"{message.removesuffix('.')}. {rounding.message()}")


def asked_verdict(trial: Trial, model: Model, record: Record) -> Verdict | None:
    """Return BROKEN if NEW's model is another one, or cannot be built; None if the numbers decide."""
    compared = trial.compared
    if record.closed:
        entry = record.get(*INSPECTION) or {}
        compared = Comparison(tuple(entry.get("differences", ())), entry.get("failure"))
    elif compared.failure or compared.differences:
        said = {"differences": list(compared.differences), "failure": compared.failure, "took": 0.0}
        record.add({INSPECTION: said})
    if compared.failure:
        return Verdict(model.name, "all", "parity", "BROKEN", f"NEW: {compared.failure}")
    if not compared.differences:
        return None
    shown, more = compared.differences[:SHOWN], len(compared.differences) - SHOWN
    rest = f". {more} more differences" if more > 0 else ""
    message = f"NEW differs from OLD: {'. '.join(shown)}{rest}"
    return Verdict(model.name, "all", "parity", "BROKEN", message)


def failures(trial: Trial, model: Model, say: Say) -> Iterator[Verdict]:
    """Yield BROKEN if NEW cannot build the model. Say how it differs: parity is not judged."""
    if trial.compared.failure:
        yield Verdict(model.name, "all", "parity", "BROKEN", f"NEW: {trial.compared.failure}")
    for difference in trial.compared.differences:
        say(f"NEW differs from OLD: {difference}")


def of_old(answers: Callable[..., Any], live: Worker, weights: Path) -> dict[str, Any]:
    """Return OLD's answers and those for the reversed batch; the initial weights are saved for the other arms."""
    expected = answers(live, save=weights)
    return {"reference": expected, "reversed": answers(live, read=weights, flip=True)}


def other_threads(settings: Settings) -> int:
    """Return another number of threads, or the same where there is only one processor."""
    return min(2, processors.count()) if settings.threads == 1 else 1


def entry(trial: Trial, record: Record, name: str, settings: Settings, ask: Ask, say: Say) -> Entry:
    """Return the record's entry of one launch: the numbers, or why there are none."""
    environment = trial.new if name == "new" else trial.old

    def launch() -> Entry:
        what = f"parity: {name.upper() if name in ('old', 'new') else f'OLD, {name}'}"
        durations.announce(trial, what, [(trial.cells[0], "parity")], say)
        monitor = Monitor(settings)
        numbers, failure = launch_and_ask(environment, settings, ask, trial.timeout)
        for _ in range(LAUNCHES - 1 if name == "new" else 1):
            if failure:
                numbers, failure = launch_and_ask(environment, settings, ask, trial.timeout)
        took = monitor.conditions().seconds
        durations.remember(trial, trial.cells[0], "parity", took)
        return {"numbers": numbers, "failure": failure, "took": took}

    return record.get_or_launch("model parity", name, launch=launch)


def launch_and_ask(
    environment: Environment, settings: Settings, ask: Ask, timeout: float
) -> tuple[dict[str, Any] | None, str | None]:
    settings = replace(settings, deterministic=True)
    try:
        launched = worker.launch(environment, settings, name="parity", timeout=timeout)
        with progress.waiting(f"parity of {environment.name}"), launched as live:
            measure.configure(live, settings)
            return ask(live), None
    except WorkerError as error:
        return None, str(inspection.user_error(error) or error)
