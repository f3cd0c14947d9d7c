"""The verdict on the parity of a subject whose reference is OLD, from the entries of its launches. Pure.

A launch has a name. The ``source`` returns its entry: a gate launches what its record lacks, and a replay raises
NotRecorded. So the same function decides which launches are needed, and what they mean.
"""

from collections.abc import Callable, Sequence

from stele import text
from stele.gate.entries import Verdict
from stele.gate.record import Entry
from stele.measuring import processors
from stele.measuring.answers import Numbers
from stele.measuring.settings import Settings
from stele.parity import ladder, reference
from stele.parity.defaults import DefaultChange
from stele.parity.reference import Rounding
from stele.subjects import Cell, Comparison, Subject, errors
from stele.subjects.errors import SubjectError

KEY = "model parity"  # of the launches in the record, before the name of each
INSPECTION = ("model inspection",)  # the key of what both arms said about the model
SHOWN = 4  # differences in a message
OLD, NEW, DEFAULTS = "old", "new", "defaults"  # launches, and what is asked about random numbers
AGAIN = "again"  # OLD in a second process in which everything is equal
SEEDED = "with another seed"
NEW_WITH = "new, with {} as in OLD"
GUESS = (
    "NEW's parameters were matched by their order, and others of the same shape are possible. "
    "Name the pairs: --weights-map FILE"
)
# if OLD and NEW failed equally often, the probability that all of these launches of NEW fail, and none of OLD, is at
# most 1 / 4^4 = 0.4 %. Fewer are launched if two failures of NEW are the same
LAUNCHES = 4
LAST = f"launch {LAUNCHES}"  # of OLD, without what the other launches start from

EntryOf = Callable[[str], Entry]


def verdict(
    subject: Subject, cells: Sequence[Cell], settings: Settings, compared: Comparison, source: EntryOf
) -> Verdict:
    """Return PASS or BROKEN; INCONCLUSIVE if the arms cannot be compared. ``compared`` is what both arms said.

    Raises SubjectError if no release could be compared: OLD computes something else in each process, or no numbers.
    """
    name, phase = cells[0].task, subject.parity_phase({cell.phase for cell in cells})
    if compared.failure:
        return Verdict(name, phase, "parity", "BROKEN", f"NEW: {compared.failure}")
    if compared.differences:
        shown, more = compared.differences[:SHOWN], len(compared.differences) - SHOWN
        rest = f". {more} more differences" if more > 0 else ""
        message = f"NEW differs from OLD: {'. '.join(shown)}{rest}"
        return Verdict(name, phase, "parity", "BROKEN", message)
    status, message, needs = judge(subject, settings, source)
    return Verdict(name, phase, "parity", status, message, needs=needs)


def judge(subject: Subject, settings: Settings, source: EntryOf) -> tuple[str, str, float | None]:
    """Return the status, the message, and the seconds that may still decide it, from the numbers of the launches."""
    threads = text.counted(other_threads(settings), "thread")
    of_old: list[Numbers] = []
    for name in (OLD, AGAIN, threads):
        launched = source(name)
        if launched["failure"]:
            return "INCONCLUSIVE", f"OLD: {launched['failure']}", None
        of_old.append(launched["numbers"])
    old, again, threaded = of_old
    expected, precision = old["reference"], settings.arithmetic
    check(subject, expected, again, precision)
    new = source(NEW)
    if new["failure"]:
        return of_failure(new, source)
    numbers, seeded = new["numbers"], Numbers()
    if reference.own_weights(numbers, again):
        launched = source(SEEDED)
        if launched["failure"]:
            return "INCONCLUSIVE", f"OLD {SEEDED}: {launched['failure']}", None
        seeded = launched["numbers"]
    with_changes = {threads: threaded, reference.REVERSED: old["reversed"]}
    rounding = reference.measure_rounding(with_changes, expected, precision=precision, again=again)
    findings = reference.findings(numbers, expected, rounding)
    first, doubt = ladder.first_difference(findings), reference.doubt(expected, rounding, findings)
    of_inputs, about_inputs = reference.input_differences(numbers, again)
    of_weights, about_weights = reference.weight_differences(numbers, again, seeded)
    remarks = [*about_inputs, *about_weights]
    changes = random_changes(source(DEFAULTS)) if first or of_inputs or of_weights or remarks else []
    depends = bool(of_weights) or (first is not None and 1 < first.rung < 8)  # on which weights NEW got
    if reference.is_guess(numbers) and depends and not of_inputs:
        what = of_weights[:SHOWN] if first is None else [ladder.message(first)]
        status, messages = "INCONCLUSIVE", [f"not comparable: {'. '.join(what)}", GUESS]
    elif of_inputs or of_weights:
        differences = [*of_inputs, *of_weights]
        status, messages = "BROKEN", [f"NEW differs from OLD: {'. '.join(differences[:SHOWN])}"]
        messages += [f"The {default_changed(change)}" for change in changes]
    elif first is not None and rounding.by_change:
        status, messages = "BROKEN", [f"NEW differs from OLD: {ladder.message(first)}"]
        for change in changes:
            if reproduces(source(NEW_WITH.format(change.fact)), expected, rounding):
                messages.append(
                    f"Likely cause: the {default_changed(change)}. With the old value, NEW computes the same"
                )
    elif doubt is not None:
        status, messages = "INCONCLUSIVE", [f"OLD cannot be the reference: {doubt}"]
    else:
        status, messages = "PASS", [f"equal to OLD: {reference.summary(findings)}"]
        remarks += [f"The {default_changed(change)}" for change in changes]
    left = [reference.left_out(numbers, expected, rounding), reference.incomparable(numbers, expected)]
    work = reference.operations_message(numbers, expected, again)
    parts = [*messages, reference.loading(numbers), *remarks, *left, rounding.message(), work]
    return status, ". ".join(part.removesuffix(".") for part in parts if part), None


def of_failure(new: Entry, source: EntryOf) -> tuple[str, str, float | None]:
    """Return the status, the message, and the seconds that may decide it, if NEW failed.

    OLD has succeeded in three launches.
    """
    if new.get("kind") == errors.UNFIT:
        return "INCONCLUSIVE", f"not comparable: {new['failure']} Name the pairs: --weights-map FILE", None
    if not new["repeated"] and new["launches"] < LAUNCHES:
        few = f"NEW failed in {new['launches']} launches, too few to exclude chance: {new['failure']}"
        return "INCONCLUSIVE", few, LAUNCHES * new["took"]
    # a failure that repeats itself is no accident
    if not new["repeated"] and (failure := source(LAST)["failure"]) is not None:
        return "INCONCLUSIVE", f"OLD fails, too: {failure}", None
    return "BROKEN", f"NEW: {new['failure']}", None


def random_changes(entry: Entry) -> list[DefaultChange]:
    """Return the settings of random numbers whose defaults NEW changes; none if they could not be asked for."""
    return [DefaultChange(*change) for change in entry["numbers"]["changes"]]


def default_changed(change: DefaultChange) -> str:
    return f"default of {change.fact} changed from {change.old} to {change.new}"


def reproduces(launched: Entry, expected: Numbers, rounding: Rounding) -> bool:
    """Return whether the numbers of a launch are OLD's."""
    if launched["failure"]:
        return False
    compared = reference.findings(launched["numbers"], expected, rounding)
    return ladder.first_difference(compared) is None


def check(subject: Subject, expected: Numbers, again: Numbers, precision: str) -> None:
    """Raise SubjectError if OLD's numbers cannot be compared with those of any release."""
    useless = reference.useless_outputs(expected)
    if useless is not None:
        raise SubjectError(f"{subject.label}: {useless}. Check its weights and its inputs: --input")
    change = reference.change_between_processes(again, expected, precision=precision)
    if change is not None:
        raise SubjectError(
            f"{subject.label} computes something else in each process of OLD, although everything is equal. {change}. "
            "Seed its random numbers, or take them out."
        )


def other_threads(settings: Settings) -> int:
    """Return another number of threads, or the same where there is only one processor."""
    return min(2, processors.count()) if settings.threads == 1 else 1
