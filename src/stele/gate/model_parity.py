"""Whether NEW computes what OLD computes of a user's model: OLD is the reference, and rounding is measured."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from stele import text
from stele.environments import Environment
from stele.errors import SteleError
from stele.gate import durations
from stele.gate.record import Entry, Record
from stele.gate.trial import Trial
from stele.gate.verdict import Verdict
from stele.measuring import content, measure, processors, progress, worker
from stele.measuring.conditions import Monitor
from stele.measuring.content import NOTHING, Reads
from stele.measuring.settings import Settings
from stele.measuring.worker import Worker, WorkerError
from stele.models import inspection
from stele.models.comparison import Comparison
from stele.models.inspection import ModelError
from stele.models.spec import Model, OtherArm
from stele.parity import defaults, examination, ladder, reference
from stele.parity.defaults import Change
from stele.parity.reference import Rounding

INSPECTION = ("model inspection",)  # the key of what both arms said about the model
SHOWN = 4  # differences in a message
NEW_WITH = "new, with {} as in OLD"
AGAIN = "again"  # OLD in a second process in which everything is equal
SEEDED = "with another seed"
GUESS = (
    "NEW's parameters were matched by their order, and others of the same shape are possible. "
    "Name the pairs: --weights-map FILE"
)
# if OLD and NEW failed equally often, the probability that all of these launches of NEW fail, and none of OLD, is at
# most 1 / 4^4 = 0.4 %. Fewer are launched if two failures of NEW are the same
LAUNCHES = 4

Say = Callable[[str], object]
Ask = Callable[[Worker], dict[str, Any]]


def verdicts(trial: Trial, model: Model, record: Record, say: Say) -> Iterator[Verdict]:
    """Yield PASS or BROKEN; INCONCLUSIVE if the arms cannot be compared.

    Raises ModelError if no release could be compared: OLD computes something else in each process, or no numbers.
    """
    broken = asked_verdict(trial, model, record)
    yield broken or numbers_verdict(trial, model, record, say)


def numbers_verdict(trial: Trial, model: Model, record: Record, say: Say) -> Verdict:
    files = files_of(trial, record)
    phases = [phase for phase in ("infer", "train") if any(cell.phase == phase for cell in trial.cells)]
    precision = trial.settings.arithmetic

    def answers(
        live: Worker, read: OtherArm | None = files, settings: Settings = trial.settings, **options: Any
    ) -> Any:
        if read is not None and "save" not in options:
            check_files(record, files)
        return examination.model_answers(live, model, settings, phases, read=read, **options)

    def launch(
        name: str, ask: Ask, settings: Settings = trial.settings, variables: Mapping[str, str] = {}
    ) -> Entry:
        return entry(trial, record, name, settings, ask, say, variables)

    def verdict(status: str, message: str) -> Verdict:
        return Verdict(model.name, trial.parity_phase, "parity", status, message)

    of_old = files._replace(checkpoint=None)  # OLD's names are its own
    number = other_threads(trial.settings)
    threads = text.counted(number, "thread")
    asked: tuple[tuple[str, Ask, Settings], ...] = (
        ("old", lambda live: with_reversed(answers, live, files), trial.settings),
        (AGAIN, lambda live: answers(live, of_old, own=True), trial.settings),
        (threads, lambda live: answers(live, of_old), replace(trial.settings, threads=number)),
    )
    runs = []
    for name, ask, with_settings in asked:
        runs.append(launch(name, ask, with_settings))
        if runs[-1]["failure"]:
            return verdict("INCONCLUSIVE", f"OLD: {runs[-1]['failure']}")
    old, again, threaded = (one["numbers"] for one in runs)
    expected = old["reference"]
    check(model, expected, again, precision)
    new = launch("new", lambda live: answers(live, own=True))
    if new["failure"]:
        status, message, needs = of_failure(new, launch, answers)
        return verdict(status, message)._replace(needs=needs)
    numbers, seeded = new["numbers"], dict[str, Any]()
    if reference.own_weights(numbers, again):
        other = replace(trial.settings, seed=(trial.settings.seed + 1) % 2**32)
        launched = launch(SEEDED, lambda live: answers(live, of_old, other, own=True, redraw=True), other)
        if launched["failure"]:
            return verdict("INCONCLUSIVE", f"OLD {SEEDED}: {launched['failure']}")
        seeded = launched["numbers"]
    changes = {threads: threaded, reference.REVERSED: old["reversed"]}
    rounding = reference.measure_rounding(changes, expected, precision=precision, again=again)
    found = reference.findings(numbers, expected, rounding)
    first, doubt = ladder.first_difference(found), reference.doubt(expected, rounding, found)
    of_inputs, said = reference.input_differences(numbers, again)
    of_weights, remarks = reference.weight_differences(numbers, again, seeded)
    remarks = [*said, *remarks]
    settings = random_defaults(trial, record) if first or of_inputs or of_weights or remarks else []
    depends = bool(of_weights) or (first is not None and 1 < first.rung < 8)  # on which weights NEW got
    if reference.is_guess(numbers) and depends and not of_inputs:
        what = of_weights[:SHOWN] if first is None else [ladder.message(first)]
        status, messages = "INCONCLUSIVE", [f"not comparable: {'. '.join(what)}", GUESS]
    elif of_inputs or of_weights:
        differences = [*of_inputs, *of_weights]
        status, messages = "BROKEN", [f"NEW differs from OLD: {'. '.join(differences[:SHOWN])}"]
        messages += [f"The {default_changed(one)}" for one in settings]
    elif first is not None and rounding.by_change:
        status, messages = "BROKEN", [f"NEW differs from OLD: {ladder.message(first)}"]
        for change in settings:
            old_value = {change.fact.upper(): str(change.old).lower()}
            repaired = launch(NEW_WITH.format(change.fact), answers, variables=old_value)
            if reproduces(repaired, expected, rounding):
                messages.append(
                    f"Likely cause: the {default_changed(change)}. With the old value, NEW computes the same"
                )
    elif doubt is not None:
        status, messages = "INCONCLUSIVE", [f"OLD cannot be the reference: {doubt}"]
    else:
        status, messages = "PASS", [f"equal to OLD: {reference.summary(found)}"]
        remarks += [f"The {default_changed(one)}" for one in settings]
    left = [reference.left_out(numbers, expected, rounding), reference.incomparable(numbers, expected)]
    parts = [*messages, reference.loading(numbers), *remarks, *left, rounding.message()]
    return verdict(status, ". ".join(part.removesuffix(".") for part in parts if part))


def random_defaults(trial: Trial, record: Record) -> list[Change]:
    """Return the settings of random numbers whose defaults NEW changes; none if they cannot be asked for."""

    def launch() -> Entry:
        try:
            found, failure = defaults.random_changes(trial.old, trial.new), None
        except SteleError as error:
            found, failure = [], str(error)
        numbers = {"changes": [list(change) for change in found]}
        return {"numbers": numbers, "failure": failure, "took": 0.0}

    if record.closed and record.get("model parity", "defaults") is None:
        return []
    numbers = record.get_or_launch("model parity", "defaults", launch=launch)["numbers"]
    return [Change(*change) for change in numbers["changes"]]


def default_changed(change: Change) -> str:
    return f"default of {change.fact} changed from {change.old} to {change.new}"


def reproduces(found: Entry, expected: dict[str, Any], rounding: Rounding) -> bool:
    """Return whether the numbers of a launch are OLD's."""
    if found["failure"]:
        return False
    compared = reference.findings(found["numbers"], expected, rounding)
    return ladder.first_difference(compared) is None


def files_of(trial: Trial, record: Record) -> OtherArm:
    """Return the files that OLD writes beside the record for the other launches."""
    path = record.path.absolute()
    checkpoint = path.with_suffix(".checkpoint") if trial.compared.renamed else None
    return OtherArm(path.with_suffix(".npz"), path.with_suffix(".inputs.npz"), checkpoint)


def check(model: Model, expected: dict[str, Any], again: dict[str, Any], precision: str) -> None:
    """Raise ModelError if OLD's numbers cannot be compared with those of any release."""
    useless = reference.useless_outputs(expected)
    if useless is not None:
        raise ModelError(f"{model.spec}: {useless}. Check its weights and its inputs: --input")
    change = reference.change_between_processes(again, expected, precision=precision)
    if change is not None:
        raise ModelError(
            f"{model.spec} computes something else in each process of OLD, although everything is equal. {change}. "
            "Seed its random numbers, or take them out."
        )


def of_failure(
    new: Entry, launch: Callable[[str, Ask], Entry], answers: Callable[..., Any]
) -> tuple[str, str, float | None]:
    """Return the status and the message if NEW failed, and the seconds that may decide it.

    OLD has succeeded in three launches.
    """
    if new.get("kind") == inspection.UNFIT:
        return "INCONCLUSIVE", f"not comparable: {new['failure']} Name the pairs: --weights-map FILE", None
    if not new["repeated"] and new["launches"] < LAUNCHES:
        few = f"NEW failed in {new['launches']} launches, too few to exclude chance: {new['failure']}"
        return "INCONCLUSIVE", few, LAUNCHES * new["took"]
    # a failure that repeats itself is no accident
    more = [] if new["repeated"] else [launch(f"launch {LAUNCHES}", lambda live: answers(live, None))]
    failure = next((one["failure"] for one in more if one["failure"]), None)
    if failure is not None:
        return "INCONCLUSIVE", f"OLD fails, too: {failure}", None
    return "BROKEN", f"NEW: {new['failure']}", None


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
        return Verdict(model.name, trial.parity_phase, "parity", "BROKEN", f"NEW: {compared.failure}")
    if not compared.differences:
        return None
    shown, more = compared.differences[:SHOWN], len(compared.differences) - SHOWN
    rest = f". {more} more differences" if more > 0 else ""
    message = f"NEW differs from OLD: {'. '.join(shown)}{rest}"
    return Verdict(model.name, trial.parity_phase, "parity", "BROKEN", message)


def failures(trial: Trial, model: Model, say: Say) -> Iterator[Verdict]:
    """Yield BROKEN if NEW cannot build the model. Say how it differs: parity is not judged."""
    if trial.compared.failure:
        yield Verdict(model.name, trial.parity_phase, "parity", "BROKEN", f"NEW: {trial.compared.failure}")
    for difference in trial.compared.differences:
        say(f"NEW differs from OLD: {difference}")


def with_reversed(answers: Callable[..., Any], live: Worker, files: OtherArm) -> dict[str, Any]:
    """Return OLD's answers and those for the reversed batch; what it starts from is saved for the other launches."""
    expected = answers(live, None, save=files)
    saved = {"files": content_of(files)}
    return {
        "reference": expected,
        "reversed": answers(live, files._replace(checkpoint=None), flip=True),
        **saved,
    }


def content_of(files: OtherArm) -> dict[str, str | None]:
    """Return a hash of each file that OLD wrote."""
    paths = [path for path in (files.weights, files.values) if path is not None]
    if files.checkpoint is not None:
        paths += sorted(path for path in files.checkpoint.rglob("*") if path.is_file())
    return {path.name: content.of_file(path) for path in paths}


def check_files(record: Record, files: OtherArm) -> None:
    """Raise SteleError if a file is not as OLD wrote it for the other launches."""
    entry_of_old: Entry = record.get("model parity", "old") or {}
    written: dict[str, Any] = (entry_of_old.get("numbers") or {}).get("files") or {}
    now = content_of(files)
    changed = [name for name, value in written.items() if now.get(name) != value]
    if changed:
        raise SteleError(
            f"{record.path.with_name(changed[0])} does not contain what OLD saved: it was damaged, replaced or "
            "deleted. Restore it and continue with --resume, or run again without --resume."
        )


def other_threads(settings: Settings) -> int:
    """Return another number of threads, or the same where there is only one processor."""
    return min(2, processors.count()) if settings.threads == 1 else 1


def entry(
    trial: Trial,
    record: Record,
    name: str,
    settings: Settings,
    ask: Ask,
    say: Say,
    variables: Mapping[str, str] = {},
) -> Entry:
    """Return the record's entry of one launch: the numbers, or why there are none.

    Raises ModelError if the user's code fails in OLD, where no release is to blame.
    """
    is_new = name.startswith("new")
    environment = trial.new if is_new else trial.old
    environment = replace(environment, variables={**environment.variables, **variables})

    def launch() -> Entry:
        arm, _, change = name.partition(", ") if name.startswith(("old", "new")) else ("OLD", "", name)
        what = f"parity: {arm.upper()}{change and f', {change}'}"
        durations.announce(trial, what, [(trial.cells[0], "parity")], say)
        monitor = Monitor(settings)
        left, most = trial.budget - record.spent, LAUNCHES if name == "new" else 2
        numbers, reads, errors = None, NOTHING, list[WorkerError]()
        while numbers is None and len(errors) < most and not is_certain(errors):
            if len(errors) >= 2 and monitor.seconds >= left:
                break
            try:
                numbers, reads = launch_and_ask(trial, environment, settings, ask)
            except WorkerError as error:
                user_error = inspection.user_error(error)
                if user_error is not None and not is_new:
                    raise user_error from None
                errors.append(error)
        took = monitor.conditions().seconds
        durations.remember(trial, trial.cells[0], "parity", took)
        if numbers is not None:
            return {"numbers": numbers, "failure": None, "took": took, "reads": reads}
        failure = str(inspection.user_error(errors[-1]) or errors[-1])
        facts = {"kind": errors[-1].kind, "launches": len(errors), "repeated": is_certain(errors)}
        return {"numbers": None, "failure": failure, "took": took, **facts}

    return record.get_or_launch("model parity", name, launch=launch)


def is_certain(errors: Sequence[WorkerError]) -> bool:
    """Return whether failures are no chance: the last two are the same exception, or the weights do not fit."""
    reported = [(error.kind, error.message) for error in errors[-2:] if error.kind is not None]
    unfit = bool(errors) and errors[-1].kind == inspection.UNFIT
    return unfit or (len(reported) == 2 and reported[0] == reported[1])


def launch_and_ask(
    trial: Trial, environment: Environment, settings: Settings, ask: Ask
) -> tuple[dict[str, Any], Reads]:
    """Return the answers of a fresh worker, and what the model has read there. Raises WorkerError.

    Only a GPU needs deterministic kernels: the model is computed as it will be timed, wherever that repeats. The user's
    module is not imported yet: the worker notes from its import on which files are read.
    """
    settings = replace(settings, deterministic=settings.device == "cuda")
    launched = worker.launch(environment, settings, name="parity", timeout=trial.timeout)
    with progress.waiting(f"parity of {environment.name}"), launched as live:
        measure.configure(live, settings, tuned=False)
        numbers = ask(live)
        return numbers, measure.reads_of(live, None if trial.model is None else trial.model.as_request())
