"""Whether NEW computes what OLD computes of a user's model: OLD is the reference, and rounding is measured."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from stele.environments import Environment
from stele.errors import SteleError
from stele.gate import durations
from stele.gate.record import Entry, Record
from stele.gate.trial import Trial
from stele.gate.verdict import Verdict
from stele.measuring import content, measure, processors, progress, worker
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

    def from_old(live: Worker) -> Any:
        check_weights(weights, old)
        return answers(live, read=weights)

    old = entry(trial, record, "old", trial.settings, lambda live: of_old(answers, live, weights), say)
    threads = other_threads(trial.settings)
    again = entry(trial, record, f"{threads} threads", replace(trial.settings, threads=threads),
                  from_old, say)  # fmt: skip
    failure = old["failure"] or again["failure"]
    if failure:
        yield Verdict(model.name, "all", "parity", "INCONCLUSIVE", f"OLD: {failure}")
        return
    new = entry(trial, record, "new", trial.settings, from_old, say)
    if new["failure"] and new.get("repeated"):
        yield Verdict(model.name, "all", "parity", "BROKEN", f"NEW: {new['failure']}")
        return
    if new["failure"] and new.get("launches", LAUNCHES) < LAUNCHES:
        few = f"NEW failed in {new['launches']} launches, too few to exclude chance: {new['failure']}"
        yield Verdict(model.name, "all", "parity", "INCONCLUSIVE", few, needs=LAUNCHES * new["took"])
        return
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
    precision = trial.settings.arithmetic
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
    reversed_batch = answers(live, read=weights, flip=True)
    return {"reference": expected, "reversed": reversed_batch, "weights": content.of_file(weights)}


def check_weights(path: Path, old: Entry) -> None:
    """Raise SteleError if a file does not have the weights that OLD saved, unless OLD failed."""
    if not old["failure"] and content.of_file(path) != old["numbers"].get("weights"):
        raise SteleError(
            f"{path} does not contain the initial weights that OLD saved: it was damaged, replaced or deleted. "
            "Restore it and continue with --resume, or run again without --resume."
        )


def other_threads(settings: Settings) -> int:
    """Return another number of threads, or the same where there is only one processor."""
    return min(2, processors.count()) if settings.threads == 1 else 1


def entry(trial: Trial, record: Record, name: str, settings: Settings, ask: Ask, say: Say) -> Entry:
    """Return the record's entry of one launch: the numbers, or why there are none.

    Raises ModelError if the user's code fails in OLD, where no release is to blame.
    """
    environment = trial.new if name == "new" else trial.old

    def launch() -> Entry:
        what = f"parity: {name.upper() if name in ('old', 'new') else f'OLD, {name}'}"
        durations.announce(trial, what, [(trial.cells[0], "parity")], say)
        monitor = Monitor(settings)
        left, most = trial.budget - record.spent, LAUNCHES if name == "new" else 2
        numbers, errors = None, list[WorkerError]()
        while numbers is None and len(errors) < most and not is_repeated(errors):
            if len(errors) >= 2 and monitor.seconds >= left:
                break
            try:
                numbers = launch_and_ask(trial, environment, settings, ask)
            except WorkerError as error:
                user_error = inspection.user_error(error)
                if user_error is not None and name != "new":
                    raise user_error from None
                errors.append(error)
        took = monitor.conditions().seconds
        durations.remember(trial, trial.cells[0], "parity", took)
        failure = None if numbers is not None else str(inspection.user_error(errors[-1]) or errors[-1])
        launches = len(errors) + (numbers is not None)
        facts = {"launches": launches, "repeated": is_repeated(errors)} if failure else {}
        return {"numbers": numbers, "failure": failure, "took": took, **facts}

    return record.get_or_launch("model parity", name, launch=launch)


def is_repeated(errors: Sequence[WorkerError]) -> bool:
    """Return whether the last two failures are the same exception of the worker, which is no chance."""
    reported = [(error.kind, error.message) for error in errors[-2:] if error.kind is not None]
    return len(reported) == 2 and reported[0] == reported[1]


def launch_and_ask(trial: Trial, environment: Environment, settings: Settings, ask: Ask) -> dict[str, Any]:
    """Return the answers of a fresh worker. Raises WorkerError.

    Only a GPU needs deterministic kernels: the model is computed as it will be timed, wherever that repeats.
    """
    assert trial.model is not None
    settings = replace(settings, deterministic=settings.device == "cuda")
    launched = worker.launch(environment, settings, name="parity", timeout=trial.timeout)
    with progress.waiting(f"parity of {environment.name}"), launched as live:
        measure.configure(live, settings, model=trial.model.as_request())
        return ask(live)
