"""What the items of a program did in OLD and in NEW, from the entries of its launches. Pure.

A launch runs all items, or some that need more evidence. A pass has a launch of each arm. The second launch of each
release has another number of threads, so that rounding shows itself.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from stele.gate import failures, judgement, values
from stele.gate.entries import MovedValue, Round, Verdict
from stele.gate.record import Entry, Record
from stele.gate.trial import ARMS, NEW_ARMS
from stele.gate.values import CHANGED, EQUAL, ROUNDING, UNSTABLE, Change
from stele.measuring.answers import ItemOutcome, Timing
from stele.subjects import Program
from stele.subjects.errors import SubjectError
from stele.text import counted, first_of

KEY = "behaviour"  # of the launches in the record, before the number of the pass and the arm
OLD_ARMS = tuple(arm for arm in ARMS if arm not in NEW_ARMS)
END = "the end of the process"  # an item
MOST_PASSES = 12  # of an item that failed more often in NEW
VALUE_PASSES = 3  # of an item with a changed value: what is random does not change in all of them
SHOWN = 5  # names in a message
RECORDED = " at "  # in the name of a value that a plain assertion compared
Pass = Mapping[str, Entry]


@dataclass(frozen=True, eq=False)
class Item:
    """What an item did, by arm, in each pass in which it was run. An arm that does not have it is missing.

    If it fails in NEW after all other items and not without them, only passes with all of them count.
    """

    name: str
    passes: tuple[Mapping[str, ItemOutcome], ...]
    needs_others: bool = False

    @cached_property
    def changes(self) -> dict[str, Change]:
        """How the values changed that it computed. What changed in some passes only is not stable."""
        complete = [of_pass for of_pass in self.passes if all(arm in of_pass for arm in ARMS)]
        every = [changes_in(self, of_pass) for of_pass in complete]
        if not every:
            return {}
        first, *others = every
        return {
            name: change._replace(kind=UNSTABLE)
            if change.kind == CHANGED and any(other[name].kind != CHANGED for other in others if name in other)
            else change
            for name, change in first.items()
        }

    @property
    def rounds(self) -> list[Round]:
        return [
            {
                "arms": list(of_pass),
                "failures": {arm: described(did) for arm, did in of_pass.items() if did.failed},
            }
            for of_pass in self.passes
        ]

    def failed(self, arms: Sequence[str]) -> list[bool]:
        """Return whether it failed, for each launch of these arms."""
        return [of_pass[arm].failed for of_pass in self.passes for arm in arms if arm in of_pass]

    @property
    def state(self) -> str:
        """How OLD and NEW differ, without asking how certain that is."""
        old, new = self.failed(OLD_ARMS), self.failed(NEW_ARMS)
        if not old or not new:
            return "only in NEW" if new else "missing"
        if not any(old) and not any(new):
            skipped = [self.passes[0][arm].status == "skipped" for arm in ARMS if arm in self.passes[0]]
            return "skipped" if all(skipped) else "skipped in NEW" if any(skipped[len(OLD_ARMS) :]) else "passed"
        if all(old) and all(new):
            return "fails in both"
        if all(old) and not any(new):
            return "fixed"
        return "fails in NEW" if all(new) and not any(old) else "flaky"


@dataclass(frozen=True)
class Behaviour:
    """What all passes say."""

    verdicts: list[Verdict]
    suspects: list[str]  # items that failed more often in NEW, and need more passes
    timings: dict[str, Timing] = field(default_factory=dict)  # of the items that can be timed
    reported: dict[str, str] = field(default_factory=dict)  # direction of each metric that a command reports
    whole: bool = False  # whether the next pass runs all items, because a suspect needs those before it


def judge(program: Program, passes: Sequence[Pass]) -> Behaviour:
    """Return the verdicts on what was launched, and what to launch next.

    Raises SubjectError if OLD does not run.
    """
    first, start = passes[0], start_of_program(program)
    for arm in OLD_ARMS:
        if first[arm]["failure"]:
            raise SubjectError(f"{program.label} does not run in OLD. {first[arm]['failure']}")
    items = items_of(program, passes)
    hidden = hidden_by_failures(first)
    items = [item for item in items if item.state != "missing" or item.name not in hidden]
    require_success(program, items)
    evidence = {item.name: failures.log_evidence(item.rounds) for item in items if any(item.failed(NEW_ARMS))}
    if program.accept:
        accepted = accepted_failures(items)
        evidence = {name: value for name, value in evidence.items() if name not in accepted}
    certain = judgement.certain_together(evidence, len(items))
    suspected = [item for item in items if item.name in evidence and item.name not in certain and is_suspected(item)]
    moved = [item for item in items if len(item.passes) < VALUE_PASSES and has_changed_value(item)]
    suspects = [item.name for item in (*suspected, *(item for item in moved if item not in suspected))]
    judged = [
        item
        for item in items
        if item.name in certain or item in suspected or (item.state == "fails in NEW" and item.name in evidence)
    ]
    verdicts = [broken(item) if item.name in certain else undecided(item) for item in judged]
    absent = [item for item in items if item.state == "missing" and item not in judged]
    verdicts += missing(program, absent)
    changes = {item.name: item.changes for item in items if item.state in ("passed", "fails in NEW", "flaky")}
    verdicts += changed_values(changes)
    rest = [item for item in items if item not in (*judged, *absent)]
    if rest and start not in [item.name for item in items]:
        verdicts.append(summary(program, rest))
        named = {verdict.task for verdict in verdicts if verdict.metric == "values"}
        verdicts += values_summary(program, {name: changes[name] for name in changes if name not in named})
    timings = {
        item.name: timing
        for item in items
        if item.state == "passed" and (timing := timing_of(item.passes[0])) is not None
    }
    reported = {name: better for item in items for name, better in directions(item).items()}
    whole = any(item.needs_others for item in suspected)
    return Behaviour(verdicts, suspects, timings, reported, whole)


def is_suspected(item: Item) -> bool:
    """Return whether more passes may show that it fails more often in NEW."""
    if any(item.failed(OLD_ARMS)) or len(item.passes) >= MOST_PASSES:
        return False
    return any(did.failed for arm, did in item.passes[-1].items() if arm in NEW_ARMS)


def has_changed_value(item: Item) -> bool:
    """Return whether a value that the user named, or that a failing assertion compares, changed in all passes."""
    if any(item.failed(OLD_ARMS)):
        return False
    return any(change.kind == CHANGED for change in item.changes.values())


def require_success(program: Program, items: Sequence[Item]) -> None:
    """Raise SubjectError if nothing passes in OLD: then no release is to blame."""
    failed = [item for item in items if any(item.failed(OLD_ARMS))]
    if not failed or len(failed) < len(items):
        return
    message = failures.last_message(failed[0].rounds, new=False)
    if len(items) == 1:
        raise SubjectError(f"{failed[0].name} fails in OLD: {message}")
    raise SubjectError(f"All {counted(len(items), program.item)} fail in OLD. {failed[0].name}: {message}")


def directions(item: Item) -> dict[str, str]:
    """Return which direction is better of each metric that a command reports.

    Raises SubjectError if nobody says it.
    """
    of_old = item.passes[0].get("old")
    for name, better in (of_old.metrics if of_old else {}).items():
        if better is None:
            raise SubjectError(
                f"{item.name} reports the metric {name!r} without a direction. Report "
                f'{{"metric": "{name}", "value": ..., "better": "higher"}}, or use --better higher={name}'
            )
    return {name: better for name, better in of_old.metrics.items() if better} if of_old else {}


def items_of(program: Program, passes: Sequence[Pass]) -> list[Item]:
    """Return all items in the order of OLD. What fails while they are collected, or at the start, is an item, too."""
    outcomes: dict[str, list[dict[str, ItemOutcome]]] = {}
    of_all = dict[str, list[bool]]()  # for each pass of an item: whether it ran all items
    for of_pass in passes:
        by_name: dict[str, dict[str, ItemOutcome]] = {}
        alike = dict.fromkeys(failure["name"] for entry in of_pass.values() for failure in entry["not_collected"])
        for arm in ARMS:
            entry = of_pass[arm]
            by_name.setdefault(start_of_program(program), {})[arm] = start_of(entry)
            if entry["failure"]:
                continue
            messages = {failure["name"]: failure for failure in entry["not_collected"]}
            for name in alike:
                by_name.setdefault(name, {})[arm] = collection_of(messages.get(name))
            for name, did in entry["items"].items():
                by_name.setdefault(name, {})[arm] = did
        for name, of_arms in by_name.items():
            outcomes.setdefault(name, []).append(of_arms)
            of_all.setdefault(name, []).append(of_pass["old"]["whole"])
    for name in (start_of_program(program), END):  # of the process: an item only if it fails
        if not any(did.failed for of_pass in outcomes.get(name, ()) for did in of_pass.values()):
            outcomes.pop(name, None)
    return [to_item(name, of_passes, of_all[name]) for name, of_passes in outcomes.items()]


def to_item(name: str, of_passes: Sequence[Mapping[str, ItemOutcome]], of_all: Sequence[bool]) -> Item:
    """Return an item. What fails only after all others in NEW, and passes without them, needs the others."""
    whole = [of_pass for of_pass, ran_all in zip(of_passes, of_all, strict=True) if ran_all]
    alone = [of_pass for of_pass, ran_all in zip(of_passes, of_all, strict=True) if not ran_all]
    needs_others = bool(alone) and fails_in_new(whole) and not fails_in_new(alone)
    return Item(name, tuple(whole if needs_others else of_passes), needs_others)


def fails_in_new(passes: Sequence[Mapping[str, ItemOutcome]]) -> bool:
    return all(any(did.failed for arm, did in of_pass.items() if arm in NEW_ARMS) for of_pass in passes)


def start_of_program(program: Program) -> str:
    return f"start of {program.label}"


def start_of(entry: Entry) -> ItemOutcome:
    lines = [line.strip() for line in (entry["failure"] or "").splitlines() if line.strip(" ^~")]
    message = " … ".join(dict.fromkeys([*lines[:1], *lines[-1:]]))
    return ItemOutcome(status="error" if lines else "passed", message=message)


def collection_of(failure: Mapping[str, str] | None) -> ItemOutcome:
    if failure is None:
        return ItemOutcome(status="passed")
    return ItemOutcome(status="error", message=failure["message"], place=failure["place"])


def hidden_by_failures(first: Pass) -> set[str]:
    """Return the items that NEW does not have because their file was not collected, or because it did not start."""
    hidden = set[str]()
    for arm in NEW_ARMS:
        places = [failure["name"] for failure in first[arm]["not_collected"]]
        for name in first["old"]["items"]:
            if first[arm]["failure"] or any(name.startswith((f"{place}::", f"{place}/")) for place in places):
                hidden.add(name)
    return hidden


def timing_of(of_pass: Mapping[str, ItemOutcome]) -> Timing | None:
    """Return the shortest timing of an item, of which all arms time as many calls; None if one has none."""
    timings = [did.timing for did in of_pass.values()]
    if len(timings) < len(ARMS):
        return None
    return min((timing for timing in timings if timing), key=lambda timing: timing["seconds"]) if all(timings) else None


def is_timed_in_part(item: Item) -> bool:
    timings = [did.timing for did in item.passes[0].values()]
    return any(timings) and not all(timings)


def described(did: ItemOutcome) -> str:
    place = f" ({did.place})" if did.place else ""
    return f"{did.message or did.status}{place}"


def times_failed(item: Item) -> str:
    """``failed in 6 of 6 launches of NEW, in 0 of 6 of OLD``"""
    old, new = item.failed(OLD_ARMS), item.failed(NEW_ARMS)
    return f"failed in {sum(new)} of {len(new)} launches of NEW, in {sum(old)} of {len(old)} of OLD"


def last_failure(item: Item) -> str:
    return failures.last_message(item.rounds, new=True)


def broken(item: Item) -> Verdict:
    reasons = [f"{name} {change.message}" for name, change in failing_values(item).items()]
    message = "; ".join([last_failure(item), *reasons, times_failed(item)])
    return Verdict(item.name, "all", "outcome", "BROKEN", message)


def failing_values(item: Item) -> dict[str, Change]:
    """Return how the values changed that the failing assertion compares."""
    did = next((of_pass["new"] for of_pass in item.passes if "new" in of_pass), None)
    if did is None or not did.place:
        return {}
    at_place = re.compile(rf"{RECORDED}{re.escape(did.place)}(?!\d)")
    return {name: change for name, change in item.changes.items() if at_place.search(name) and change.kind != EQUAL}


def accepted_failures(items: Sequence[Item]) -> set[str]:
    """Return the items that fail in NEW only, because a value moved by no more than rounding."""
    of_items = {item.name: failing_values(item) for item in items if item.state == "fails in NEW"}
    return {
        name
        for name, changes in of_items.items()
        if changes and all(change.kind == ROUNDING for change in changes.values())
    }


def undecided(item: Item) -> Verdict:
    message = f"{last_failure(item)}; {times_failed(item)}. That is too few to exclude chance."
    return Verdict(item.name, "all", "outcome", "INCONCLUSIVE", message)


def missing(program: Program, items: Sequence[Item]) -> list[Verdict]:
    if not items:
        return []
    if len(items) > SHOWN:
        what = f"NEW does not collect {counted(len(items), program.item)} of OLD: {names_of(items)}"
        return [Verdict(program.label, "all", "outcome", "MISSING", what)]
    return [Verdict(item.name, "all", "outcome", "MISSING", "OLD collects it, and NEW does not") for item in items]


def names_of(items: Sequence[Item]) -> str:
    return first_of([item.name for item in items], SHOWN)


def summary(program: Program, items: Sequence[Item]) -> Verdict:
    """Return the verdict on the items that are not judged one by one."""
    by_state, rounded = dict[str, list[Item]](), accepted_failures(items)
    for item in items:
        state = f"fails in NEW {ROUNDING}" if item.name in rounded else item.state
        by_state.setdefault(state, []).append(item)
    passed = by_state.pop("passed", [])
    skipped = len(by_state.pop("skipped", []))
    parts = [f"{counted(len(passed), program.item)} passed in OLD and in NEW"] if passed or len(items) > 1 else []
    untimed = [item for item in passed if is_timed_in_part(item)]
    parts += [f"timed in some launches only, so not judged: {names_of(untimed)}"] if untimed else []
    parts += [f"{skipped} skipped in both"] if skipped else []
    parts += [f"{len(of_state)} {state}: {names_of(of_state)}" for state, of_state in by_state.items()]
    status = "PASS" if passed else "INCONCLUSIVE"
    return Verdict(program.label, "all", "outcomes", status, "; ".join(parts))


def changes_in(item: Item, of_pass: Mapping[str, ItemOutcome]) -> dict[str, Change]:
    old, new = ([of_pass[arm].values for arm in arms] for arms in (OLD_ARMS, NEW_ARMS))
    if any(item.failed(ARMS)):  # a failure ends the computation
        old = [{name: value for name, value in of_arm.items() if all(name in each for each in new)} for of_arm in old]
    return values.compare_all(old, new)


def moved_values(program: Program, passes: Sequence[Pass]) -> list[MovedValue]:
    """Return the values that are not equal, of all items, from the first launches of OLD and NEW."""
    return [
        MovedValue(
            item=item.name,
            name=name,
            kind=change.kind,
            message=change.message,
            old=item.passes[0]["old"].values[name],
            new=item.passes[0]["new"].values[name],
        )
        for item in (items_of(program, passes) if passes else [])
        for name, change in item.changes.items()
        if change.kind != EQUAL and name in item.passes[0]["new"].values
    ]


def passes_of(record: Record) -> list[Pass]:
    """Return the complete passes of a record."""
    passes = list[Pass]()
    while all(record.get(KEY, len(passes), arm) for arm in ARMS):
        passes.append({arm: record.get(KEY, len(passes), arm) or {} for arm in ARMS})
    return passes


def changed_values(changes: Mapping[str, Mapping[str, Change]]) -> list[Verdict]:
    """Return BROKEN for each item with a changed value that the user named: an assertion has its own tolerance."""
    verdicts = []
    for name, of_item in changes.items():
        of_user = {value: change for value, change in of_item.items() if RECORDED not in value}
        changed = [f"{value} {change.message}" for value, change in of_user.items() if change.kind == CHANGED]
        if changed:
            more = f"; and {len(changed) - SHOWN} more" if len(changed) > SHOWN else ""
            verdicts.append(Verdict(name, "all", "values", "BROKEN", "; ".join(changed[:SHOWN]) + more))
    return verdicts


def values_summary(program: Program, changes: Mapping[str, Mapping[str, Change]]) -> list[Verdict]:
    """Return the verdict on all values, with those that assertions accept although they changed."""
    every = [(name, value, change) for name, of_item in changes.items() for value, change in of_item.items()]
    if not every:
        return []
    counts = {kind: sum(change.kind == kind for *_, change in every) for kind in (EQUAL, ROUNDING, CHANGED, UNSTABLE)}
    text = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    moved = [f"{value} {change.message}" for _, value, change in every if change.kind == CHANGED and RECORDED in value]
    shown = f"; changed: {'; '.join(moved[:SHOWN])}" if moved else ""
    compared = f"{counted(len(every), 'value')}: {text}"
    return [Verdict(program.label, "all", "values", "PASS", compared + shown)]
