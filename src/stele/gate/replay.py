"""The outcome of a gate from its record alone. Nothing is launched."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from stele.environments import Environment
from stele.errors import SteleError
from stele.gate import correctness, outcome, record, timing
from stele.gate.metrics import ALL, Metric
from stele.gate.outcome import Outcome
from stele.gate.record import NotRecorded, Record
from stele.gate.trial import Cell, Trial
from stele.gate.verdict import Verdict, unknown
from stele.measuring.settings import Settings
from stele.models.inspection import ModelError
from stele.models.spec import Model

NOT_MEASURED = "The gate ended before this was measured."


def load(path: Path) -> Outcome:
    """Return the outcome of the gate with this record. Raises SteleError if the file is not one."""
    log = record.read(path)
    outcome.check(log.header, outcome.Header, str(path))
    entries = log.entries()
    # a gate that was resumed and then interrupted has launches after its last verdicts
    if entries and log.last_key == outcome.KEY:
        said = log.get(*outcome.KEY) or {}
        return outcome.of_record(log, outcome.to_verdicts(said, str(path)), said)
    return outcome.of_record(log, judge(log), {})


def judge(log: Record) -> list[Verdict]:
    """Return the verdicts on the launches of a record, as the gate itself would have judged them.

    Raises SteleError if the header does not describe a trial.
    """
    try:
        trial = to_trial(log)
    except (TypeError, ValueError, KeyError) as error:
        raise SteleError(f"{log.path} does not say what was compared: {error!r}.") from None
    cells = [cell for cell in trial.cells if has_launches(log, cell)]
    verdicts = list(parity(trial, log)) if trial.parity else []
    if trial.accuracy:
        verdicts += accuracy(trial, log, cells)
    if trial.metrics and cells:
        verdicts += timing.measure_passes(trial, log, cells, ignore)
    return verdicts


def has_launches(log: Record, cell: Cell) -> bool:
    return any(one["key"][1:2] == [str(cell)] for one in log.entries())


def parity(trial: Trial, log: Record) -> Iterator[Verdict]:
    """Yield the verdict on each task; INCONCLUSIVE if an arm was not examined yet."""
    for task in dict.fromkeys(cell.task for cell in trial.cells):
        subject = replace(trial, cells=tuple(cell for cell in trial.cells if cell.task == task))
        verdicts = correctness.parity_verdicts(subject, log, ignore)
        yield from recorded(verdicts, Cell(task, trial.parity_phase), "parity")


def accuracy(trial: Trial, log: Record, cells: list[Cell]) -> Iterator[Verdict]:
    for cell in cells:
        verdicts = correctness.accuracy_verdicts(trial, log, [cell], ignore)
        yield from recorded(verdicts, cell, "accuracy")


def recorded(verdicts: Iterator[Verdict], cell: Cell, metric: str) -> Iterator[Verdict]:
    """Yield the verdicts, or that the record lacks a launch that they need."""
    try:
        yield from verdicts
    except NotRecorded:
        yield unknown(cell, metric, NOT_MEASURED)
    except ModelError as error:  # with which the gate ended
        yield unknown(cell, metric, str(error))


def to_trial(log: Record) -> Trial:
    """Return the trial of a record, without a budget: so nothing is launched."""
    header = log.header
    return Trial(
        old=placeholder(header["old"]),
        new=placeholder(header["new"]),
        cells=tuple(Cell(task, phase) for task, phase in header["cells"]),
        metrics=tuple(to_metrics(header)),
        settings=Settings(**header["settings"]),
        seed=header["seed"],
        budget=0.0,
        parity=header["parity"],
        accuracy=header["accuracy"],
        scale=header["scales"][0],
        training=header["scales"][1],
        model=to_model(header.get("model")),
    )


def placeholder(name: str) -> Environment:
    """Return an environment with this name, which may not exist here. NumPy has a recipe for every task."""
    return Environment(name=name, label=name, framework="numpy")


def to_metrics(header: dict[str, Any]) -> Iterator[Metric]:
    """Yield the metrics that were judged, with their thresholds. A metric of a newer version is left out."""
    for metric in ALL:
        if metric.name in header["metrics"]:
            margin = header["metrics"][metric.name]
            tolerance = header.get("tolerances", {}).get(metric.name, min(metric.tolerance, margin))
            yield metric._replace(margin=margin, tolerance=tolerance)


def to_model(request: dict[str, Any] | None) -> Model | None:
    """Return the model of a header, as far as its name and its verdicts need it."""
    if request is None:
        return None
    recipe = request.get("recipe")
    return Model(request["spec"], Path(request["folder"]), recipe=None if recipe is None else Path(recipe))


def ignore(line: str) -> None:
    """Say nothing: the gate has said it."""
