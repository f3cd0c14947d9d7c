"""The launches that show whether NEW computes what OLD computes, where OLD is the reference: rounding is measured."""

import contextlib
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stele import text
from stele.environments import Environment
from stele.errors import SteleError
from stele.gate import durations, model_verdict
from stele.gate.entries import Verdict
from stele.gate.gate import Gate
from stele.gate.launcher import lanes_of_parity
from stele.gate.model_verdict import AGAIN, DEFAULTS, INSPECTION, KEY, LAST, LAUNCHES, NEW, NEW_WITH, OLD, SEEDED
from stele.gate.record import Entry, Record
from stele.gate.trial import Trial
from stele.measuring import content, machine, measure, progress, worker
from stele.measuring.answers import Numbers
from stele.measuring.conditions import Monitor
from stele.measuring.content import NOTHING
from stele.measuring.settings import Settings
from stele.measuring.together import together
from stele.measuring.worker import Worker, WorkerError
from stele.parity import defaults, examination
from stele.subjects import errors
from stele.subjects.base import OtherArm

Ask = Callable[[Worker], Numbers]


def verdict(gate: Gate) -> Verdict:
    """Return the verdict on the subject, of which the record may have some launches already."""
    trial, compared = gate.trial, gate.trial.compared
    if compared.failure or compared.differences:
        inspection = {"differences": list(compared.differences), "failure": compared.failure, "took": 0.0}
        gate.record.add({INSPECTION: inspection})
    launches = Launches(gate, files_of(trial, gate.record))
    if not (compared.failure or compared.differences):
        launches.launch_together()
    return model_verdict.verdict(trial.subject, trial.cells, trial.settings, compared, launches.entry)


def without_numbers(gate: Gate) -> list[Verdict]:
    """Return BROKEN if NEW does not have the subject. Say how it differs: parity is not judged."""
    compared, cells = gate.trial.compared, gate.trial.cells
    phase = gate.trial.subject.parity_phase({cell.phase for cell in cells})
    for difference in compared.differences:
        gate.say(f"NEW differs from OLD: {difference}")
    failure = compared.failure
    return [Verdict(cells[0].task, phase, "parity", "BROKEN", f"NEW: {failure}")] if failure else []


@dataclass(frozen=True)
class Launches:
    """The launches of a gate, by name. OLD writes ``files`` beside the record, from which the others start."""

    gate: Gate
    files: OtherArm

    def entry(self, name: str) -> Entry:
        """Return the entry of the record; launch what it lacks.

        Raises SubjectError if the user's code fails in OLD, where no release is to blame.
        """
        launch = self.ask_defaults if name == DEFAULTS else lambda: self.launch(name)
        return self.gate.record.get_or_launch(KEY, name, launch=launch)

    def launch_together(self) -> None:
        """Launch what starts from the files of OLD at the same time, if there are processors and memory for it.

        A launch that fails beside others counts for nothing: it is repeated alone.
        """
        trial, record = self.gate.trial, self.gate.record
        old, threads = self.entry(OLD), text.counted(model_verdict.other_threads(trial.settings), "thread")
        names = [name for name in (threads, AGAIN, NEW) if record.get(KEY, name) is None]
        lanes = lanes_of_parity(trial, len(names), old.get("memory"))
        if old["failure"] or not lanes:
            return
        progress.part("parity", f"OLD, again; OLD, {threads}; NEW, at the same time", runs=True)
        record.check(NOTHING)
        monitor = Monitor(trial.settings)
        calls = [functools.partial(self.answer_once, name, *self.how(name)[:2]) for name in names]
        places = [None if name == threads else lane for name, lane in zip(names, lanes, strict=True)]
        with progress.waiting("parity"):
            answers = together(list(zip(calls, places, strict=True)))
        took = monitor.conditions().seconds / len(names)
        for name, entry in zip(names, answers, strict=True):
            if entry is not None:
                record.add({(KEY, name): {**entry, "took": took}})

    def answer_once(self, name: str, settings: Settings, ask: Ask) -> Entry | None:
        """Return the entry of a launch, without its duration; None if it fails."""
        environment = self.gate.trial.new if name == NEW else self.gate.trial.old
        with contextlib.suppress(WorkerError):
            return entry_of(self.gate.trial, environment, settings, ask)
        return None

    def ask_defaults(self) -> Entry:
        """Ask both arms for their settings of random numbers."""
        try:
            changes, failure = defaults.random_changes(self.gate.trial.old, self.gate.trial.new), None
        except SteleError as error:
            changes, failure = [], str(error)
        numbers = {"changes": [list(change) for change in changes]}
        return {"numbers": numbers, "failure": failure, "took": 0.0}

    def answers(self, live: Worker, settings: Settings, read: OtherArm | None, **options: Any) -> Any:
        phases = [phase for phase in ("infer", "train") if any(cell.phase == phase for cell in self.gate.trial.cells)]
        if read is not None and "save" not in options:
            check_files(self.gate.record, self.files)
        return examination.model_answers(live, self.gate.trial.subject, settings, phases, read=read, **options)

    def how(self, name: str) -> tuple[Settings, Ask, dict[str, str]]:
        """Return the settings of a launch, what its worker is asked, and its variables."""
        settings = self.gate.trial.settings
        of_old = self.files._replace(checkpoint=None)  # OLD's names are its own
        other_seed = replace(settings, seed=(settings.seed + 1) % 2**32)
        threads = model_verdict.other_threads(settings)
        launches: dict[str, tuple[Settings, Ask]] = {
            OLD: (settings, lambda live: with_reversed(self, live, settings)),
            AGAIN: (settings, lambda live: self.answers(live, settings, of_old, own_values=True)),
            text.counted(threads, "thread"): (
                replace(settings, threads=threads),
                lambda live: self.answers(live, settings, of_old),
            ),
            NEW: (settings, lambda live: self.answers(live, settings, self.files, own_values=True)),
            SEEDED: (other_seed, lambda live: self.answers(live, other_seed, of_old, own_values=True, redraw=True)),
            LAST: (settings, lambda live: self.answers(live, settings, None)),
        }
        if name in launches:
            return *launches[name], {}
        changes = {
            NEW_WITH.format(change.fact): change for change in model_verdict.random_changes(self.entry(DEFAULTS))
        }
        old_value = {changes[name].fact.upper(): str(changes[name].old).lower()}
        return settings, lambda live: self.answers(live, settings, self.files), old_value

    def launch(self, name: str) -> Entry:
        """Return the numbers of a launch, or why there are none."""
        gate, trial, is_new = self.gate, self.gate.trial, name.startswith("new")
        settings, ask, variables = self.how(name)
        environment = trial.new if is_new else trial.old
        environment = replace(environment, variables={**environment.variables, **variables})
        arm, _, change = name.partition(", ") if name.startswith(("old", "new")) else ("OLD", "", name)
        durations.announce(gate, "parity", f"{arm.upper()}{change and f', {change}'}", trial.cells[0], "parity")
        monitor = Monitor(settings)
        left, most = gate.left, LAUNCHES if name == NEW else 2
        entry, failures = None, list[WorkerError]()
        while entry is None and len(failures) < most and not is_certain(failures):
            if len(failures) >= 2 and monitor.seconds >= left:
                break
            try:
                entry = entry_of(trial, environment, settings, ask)
            except WorkerError as error:
                user_error = errors.user_error(error)
                if user_error is not None and not is_new:
                    raise user_error from None
                failures.append(error)
        took = monitor.conditions().seconds
        durations.remember(trial, trial.cells[0], "parity", took)
        if entry is not None:
            return {**entry, "took": took}
        failure = str(errors.user_error(failures[-1]) or failures[-1])
        facts = {"kind": failures[-1].kind, "launches": len(failures), "repeated": is_certain(failures)}
        return {"numbers": None, "failure": failure, "took": took, **facts}


def files_of(trial: Trial, record: Record) -> OtherArm:
    """Return the files that OLD writes beside the record for the other launches."""
    path = record.path.absolute()
    checkpoint = path.with_suffix(".checkpoint") if trial.compared.renamed else None
    return OtherArm(path.with_suffix(".npz"), path.with_suffix(".inputs.npz"), checkpoint)


def with_reversed(launches: Launches, live: Worker, settings: Settings) -> Numbers:
    """Return OLD's answers and those for the reversed batch; what it starts from is saved for the other launches."""
    files = launches.files
    expected = launches.answers(live, settings, None, save=files)
    saved = content_of(files)
    of_reversed = launches.answers(live, settings, files._replace(checkpoint=None), flip=True)
    return {"reference": expected, "reversed": of_reversed, "files": saved}


def content_of(files: OtherArm) -> dict[str, str | None]:
    """Return a hash of each file that OLD wrote."""
    paths = [path for path in (files.weights, files.values) if path is not None]
    if files.checkpoint is not None:
        paths += sorted(path for path in files.checkpoint.rglob("*") if path.is_file())
    return {path.name: content.of_file(path) for path in paths}


def check_files(record: Record, files: OtherArm) -> None:
    """Raise SteleError if a file is not as OLD wrote it for the other launches."""
    entry_of_old: Entry = record.get(KEY, OLD) or {}
    written: dict[str, str | None] = (entry_of_old.get("numbers") or {}).get("files") or {}
    now = content_of(files)
    changed = [name for name, value in written.items() if now.get(name) != value]
    if changed:
        raise SteleError(
            f"{record.path.with_name(changed[0])} does not contain what OLD saved: it was damaged, replaced or "
            "deleted. Restore it and continue with --resume, or run again without --resume."
        )


def is_certain(failures: Sequence[WorkerError]) -> bool:
    """Return whether failures are no chance: the last two are the same exception, or the weights do not fit."""
    reported = [(error.kind, error.message) for error in failures[-2:] if error.kind is not None]
    unfit = bool(failures) and failures[-1].kind == errors.UNFIT
    return unfit or (len(reported) == 2 and reported[0] == reported[1])


def entry_of(trial: Trial, environment: Environment, settings: Settings, ask: Ask) -> Entry:
    """Return the entry of a fresh worker's answers, without its duration. Raises WorkerError.

    Only a GPU needs deterministic kernels: the model is computed as it will be timed, wherever that repeats. The user's
    module is not imported yet: the worker notes from its import on which files are read.
    """
    settings = replace(settings, deterministic=settings.device == "cuda")
    launched = worker.launch(environment, settings, name="parity", timeout=trial.timeout)
    with progress.waiting(f"parity of {environment.name}"), launched as live:
        measure.configure(live, settings, tuned=False)
        numbers = ask(live)
        reads = measure.reads_of(live, trial.subject.as_request())
        return {"numbers": numbers, "failure": None, "reads": reads, "memory": machine.peak_memory(live.pid)}
