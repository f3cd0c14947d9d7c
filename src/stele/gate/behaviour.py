"""What the items of a program do and compute in OLD and in NEW: the launches of a gate that run them."""

import functools
import itertools
import signal
from collections.abc import Mapping, Sequence
from dataclasses import replace

from stele.errors import SteleError
from stele.gate import behaviour_verdicts as verdicts
from stele.gate import durations
from stele.gate.behaviour_verdicts import END, KEY, Behaviour, Pass
from stele.gate.gate import Gate
from stele.gate.launcher import LEAST_TIMEOUT, PATIENCE
from stele.gate.model_verdict import other_threads
from stele.gate.record import Entry
from stele.gate.timing import order_of
from stele.gate.trial import ARMS, NEW_ARMS, Trial
from stele.measuring import measure, progress, worker
from stele.measuring.answers import Collected, ItemOutcome, NotCollected
from stele.measuring.conditions import Monitor
from stele.measuring.content import NOTHING
from stele.measuring.worker import Worker, WorkerError
from stele.subjects import Program, errors
from stele.text import counted

PART = "outcomes"  # of a gate
THREADED = ("control", "repeat")  # arms with another number of threads
MOST_CRASHES = 20  # of a launch: an item that ends the process does not hide those after it
SLOWEST = 3  # items that are named


def judge(gate: Gate) -> Behaviour:
    """Run all items in each arm, and then those that failed more often in NEW until chance is excluded."""
    program, passes = gate.trial.subject, list[Pass]()
    assert isinstance(program, Program)
    names: Sequence[str] | None = program.only or None
    while True:
        passes.append(run_pass(gate, len(passes), names))
        judged = verdicts.judge(program, passes)
        if not judged.suspects or gate.is_spent:
            return judged
        names = None if judged.whole else judged.suspects
        suspects = counted(len(judged.suspects), program.item)
        others = ", with all others" if judged.whole else ""
        progress.part(PART, f"{suspects} failed or changed in NEW only: run again{others}", runs=True)


def run_pass(gate: Gate, number: int, names: Sequence[str] | None) -> Pass:
    """Launch each arm, in random order. ``names`` are the items that are run; None for all."""
    entries = dict[str, Entry]()
    for arm in order_of(gate.trial, (KEY, number)):
        launched = functools.partial(launch, gate.trial, arm, names, timeout=timeout_after(gate.trial, entries))
        entries[arm] = gate.record.get_or_launch(KEY, number, arm, launch=launched)
        if number == 0 and len(entries) == 1:
            announce(gate, entries[arm])
    return {arm: entries[arm] for arm in ARMS}


def announce(gate: Gate, entry: Entry) -> None:
    """Say how long all launches take, and which items take longest."""
    slowest = sorted(entry["items"].items(), key=lambda pair: -pair[1].seconds)[:SLOWEST]
    shown = ", ".join(f"{name} {durations.minutes(did.seconds)}" for name, did in slowest if did.seconds >= 1)
    text = f"a run takes {durations.minutes(entry['took'])}; there are {len(ARMS)}"
    progress.part(PART, f"{text}. Slowest: {shown}" if shown else text, runs=True)


def timeout_after(trial: Trial, entries: Mapping[str, Entry]) -> float:
    """Return how many seconds without an answer a launch may take: an item that hangs must not take the budget."""
    took = [entry["took"] for entry in entries.values() if not entry["failure"] and not has_crashed(entry)]
    return min(trial.timeout, max(PATIENCE * max(took), LEAST_TIMEOUT)) if took else trial.timeout


def has_crashed(entry: Entry) -> bool:
    return any(did.status == "crashed" for did in entry["items"].values())


def launch(trial: Trial, arm: str, names: Sequence[str] | None, *, timeout: float) -> Entry:
    """Run items in an arm. If the process ends, the item that ran has crashed, and a new process runs the others.

    Raises SubjectError if the user has to change something, as OLD says it.
    """
    program, settings = trial.subject, trial.settings
    assert isinstance(program, Program)
    if arm in THREADED:
        settings = replace(settings, threads=other_threads(settings))
    monitor, reads = Monitor(settings), NOTHING
    items, failed, failure = dict[str, ItemOutcome](), list[NotCollected](), None
    versions: Mapping[str, str | None] = {}
    for crashes in itertools.count():
        launched = worker.launch(trial.arm(arm), settings, name=f"items-{arm}", timeout=timeout, program=program.kind)
        with launched as live, progress.waiting(f"{arm.upper()}"):
            try:
                versions = measure.configure(live, settings, model=program.as_request()).versions
                collected: Collected = live.ask("collect", expected=Collected)
            except WorkerError as error:
                user_error = errors.user_error(error)
                if user_error is not None and arm not in NEW_ARMS:
                    raise user_error from None
                failure = str(user_error or error)
                break
            failed = collected["failures"]
            selected = [item["name"] for item in collected["items"] if names is None or item["name"] in names]
            crashed = run_items(live, [name for name in selected if name not in items], items)
            if not crashed:
                reads |= measure.reads_of(live, program.as_request())
                items[END] = end_of(live)
                break
            if crashes >= MOST_CRASHES:
                not_run = ItemOutcome(status="error", message=f"not run: {crashes + 1} items ended the process")
                items |= {name: not_run for name in selected if name not in items}
                break
    return {
        "whole": names is None,
        "items": items,
        "not_collected": failed,
        "failure": failure,
        "versions": dict(versions),
        "conditions": monitor.conditions(),
        "took": monitor.seconds,
        "reads": reads,
    }


def with_timings(trial: Trial, names: Sequence[str] = ()) -> Trial:
    """Run the items of a program in OLD once, and return the trial with the cells of those that can be timed.

    ``names`` are the items that are run; without them, all. Raises SteleError if none can be timed.
    """
    entry = launch(trial, ARMS[0], names or None, timeout=trial.timeout)
    timings = {name: did.timing for name, did in entry["items"].items() if did.timing is not None}
    program = trial.subject
    assert isinstance(program, Program)
    if not timings:
        raise SteleError(f"{program.label}: nothing in OLD can be timed{of_failure(entry)}")
    timed = replace(program, timings=timings)
    return replace(trial, subject=timed, cells=timed.cells())


def of_failure(entry: Entry) -> str:
    """Return why nothing was timed, as the end of a sentence."""
    failed = next((did for did in entry["items"].values() if did.message), None)
    message = entry["failure"] or (failed and failed.message)
    return f": {message}" if message else ". Name a benchmark."


def end_of(live: Worker) -> ItemOutcome:
    """Let the program end by itself, and return how it did: a library may fail at its end."""
    try:
        live.ask("finish")
    except WorkerError as error:
        return ItemOutcome(status="error", message=str(error).partition("\n")[0])
    code = live.end()
    return ItemOutcome(status="passed") if code in (0, None) else ItemOutcome(status="error", message=ended(code))


def ended(code: int) -> str:
    return f"exit code {code}" if code > 0 else f"ended by {signal.Signals(-code).name}"


def run_items(live: Worker, names: Sequence[str], items: dict[str, ItemOutcome]) -> bool:
    """Run items one after the other, and add what they did. Return whether the process ended."""
    for name, following in itertools.zip_longest(names, names[1:]):
        try:
            items[name] = live.ask("run", name=name, following=following, expected=ItemOutcome)
        except WorkerError as error:
            user_error = errors.user_error(error)
            if user_error is not None:
                raise user_error from None
            items[name] = ItemOutcome(status="crashed", message=str(error).partition("\n")[0])
            if error.kind is None:
                return True
    return False
