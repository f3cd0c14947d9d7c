"""The outcome of a gate from its record alone. Nothing can be launched: no module here imports the launcher."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from stele import subjects
from stele.errors import SteleError
from stele.gate import behaviour_verdicts, correctness_verdicts, model_verdict, outcome
from stele.gate import record as records
from stele.gate.entries import Header, Verdict
from stele.gate.metrics import ALL, KINDS, LESS, NAMES, Metric, of_subject, reported, with_reported
from stele.gate.outcome import Outcome
from stele.gate.record import Entry, NotRecorded, Record
from stele.gate.state import State
from stele.gate.verdict import make_verdicts, unknown
from stele.measuring.settings import Settings
from stele.subjects import Cell, Comparison, Program, Subject
from stele.subjects.base import GOLDEN_NUMBERS
from stele.subjects.errors import SubjectError

NOT_MEASURED = "The gate ended before this was measured."


def load(path: Path) -> Outcome:
    """Return the outcome of the gate with this record. Raises SteleError if the file is not one."""
    record = records.read(path)
    outcome.check(record.header, Header, str(path))
    entries = record.entries()
    # a gate that was resumed and then interrupted has launches after its last verdicts
    if entries and record.last_key == outcome.KEY:
        last = record.get(*outcome.KEY) or {}
        return outcome.of_record(record, outcome.with_known_statuses(last["verdicts"], str(path)), last)
    return outcome.of_record(record, judge(record), {})


def judge(record: Record) -> list[Verdict]:
    """Return the verdicts on the launches of a record, as the gate itself would have judged them.

    Raises SteleError if the header does not describe a trial.
    """
    header = record.header
    try:
        cells = [Cell(task, phase) for task, phase in header["cells"]]
        subject = subjects.of_header(header)
        metrics = of_subject(to_metrics(header), tuned=subject.tuned)
        settings, judges_accuracy = Settings(**header["settings"]), header["accuracy"]
    except (TypeError, ValueError, KeyError) as error:
        raise SteleError(f"{record.path} does not say what was compared: {error!r}.") from None
    if isinstance(subject, Program):
        return of_program(record, subject, metrics)
    verdicts = []
    if header["parity"]:
        for task in dict.fromkeys(cell.task for cell in cells):
            of_task = [cell for cell in cells if cell.task == task]
            try:
                verdicts.append(parity(record, task, of_task, subject, settings))
            except (NotRecorded, SubjectError) as error:  # with a SubjectError, the gate ended
                phase = subject.parity_phase({cell.phase for cell in of_task})
                message = NOT_MEASURED if isinstance(error, NotRecorded) else str(error)
                verdicts.append(unknown(Cell(task, phase), "parity", message))
    measured_cells = [cell for cell in cells if any(entry["key"][1:2] == [str(cell)] for entry in record.entries())]
    agreeing = correctness_verdicts.agreeing_tasks(verdicts)
    if judges_accuracy:
        for cell in measured_cells:
            if cell.phase == "train" and subject.has_accuracy(cell.task):
                trained = trainings(record, cell)
                same = correctness_verdicts.equal_steps(cell, record.entries()) if cell.task in agreeing else None
                verdicts.append(
                    same if same and not trained else correctness_verdicts.trainings_verdict(cell, trained)[0]
                )
    if metrics and measured_cells:
        state = State(measured_cells, metrics).read(record)
        verdicts += make_verdicts(state, stopped=bool(state.open_probes()))
    return verdicts


def of_program(record: Record, program: Program, metrics: Sequence[Metric]) -> list[Verdict]:
    """Return the verdicts on the items of a program, and on those that were timed."""
    passes = behaviour_verdicts.passes_of(record)
    if not passes:
        return [unknown(Cell(program.label, "all"), "outcomes", NOT_MEASURED)]
    try:
        judged = behaviour_verdicts.judge(program, passes)
    except SubjectError as error:
        return [unknown(Cell(program.label, "all"), "outcomes", str(error))]
    timed = [Cell(name, program.phase) for name in judged.timings]
    cells = [cell for cell in timed if any(record.get(kind, str(cell), 0) for kind in KINDS)]
    if not (metrics or program.selected) or not cells:
        return judged.verdicts
    every = with_reported([*metrics, *thresholds_of(record.header, judged.reported)], judged.reported, program.selected)
    state = State(cells, every).read(record)
    return [*judged.verdicts, *make_verdicts(state, stopped=bool(state.open_probes()))]


def parity(record: Record, task: str, cells: list[Cell], subject: Subject, settings: Settings) -> Verdict:
    """Return the verdict on a task, or on a subject. Raises NotRecorded if it needs a launch that the record lacks."""
    if subject.reference == GOLDEN_NUMBERS:
        new, old = (require(record, "parity", task, arm) for arm in ("new", "old"))
        return correctness_verdicts.ladder_verdict(task, old["findings"], new["findings"])
    inspection = record.get(*model_verdict.INSPECTION) or {}
    compared = Comparison(tuple(inspection.get("differences", ())), inspection.get("failure"))

    def source(name: str) -> Entry:
        if name == model_verdict.DEFAULTS and record.get(model_verdict.KEY, name) is None:
            return {"numbers": {"changes": []}}
        return require(record, model_verdict.KEY, name)

    return model_verdict.verdict(subject, cells, settings, compared, source)


def require(record: Record, *key: str | int) -> Entry:
    """Return an entry. Raises NotRecorded if there is none."""
    entry = record.get(*key)
    if entry is None:
        raise NotRecorded(f"{record.path} has no {key!r}.")
    return entry


def trainings(record: Record, cell: Cell) -> list[Entry]:
    """Return the entries of the trainings, from the first seed on."""
    entries: list[Entry] = []
    while (entry := record.get("accuracy", cell.task, len(entries))) is not None:
        entries.append(entry)
    return entries


def thresholds_of(header: Mapping[str, Any], names: Iterable[str]) -> Iterator[Metric]:
    """Yield metrics that a command reports and that have thresholds of their own."""
    for name in names:
        if name in header["metrics"] and name not in NAMES:
            margin, tolerance = header["metrics"][name], header["tolerances"][name]
            yield reported(name, LESS)._replace(margin=margin, tolerance=tolerance)


def to_metrics(header: Mapping[str, Any]) -> Iterator[Metric]:
    """Yield the metrics that were judged, with their thresholds. A metric of a newer version is left out."""
    for metric in ALL:
        if metric.name in header["metrics"]:
            margin = header["metrics"][metric.name]
            tolerance = header["tolerances"][metric.name]
            yield metric._replace(margin=margin, tolerance=tolerance)
