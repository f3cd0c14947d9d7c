"""The verdicts of a trial on time and memory: each metric, launches that failed, and the control."""

from stele.gate import control, failures, judgement
from stele.gate.judgement import Judgement
from stele.gate.metrics import Metric
from stele.gate.state import State
from stele.gate.trial import NEW_ARMS, Cell
from stele.gate.verdict import Verdict, from_judgement, unknown


def make_verdicts(state: State, *, stopped: bool) -> list[Verdict]:
    """Return failures first, then a verdict for each metric, then the control."""
    failed = [verdict for cell in state.cells if (verdict := failure_verdict(state, cell)) is not None]
    judgements = state.judge()
    verdicts = [
        metric_verdict(state, cell, metric, judgements[cell, metric], stopped=stopped)
        for cell, metric in state.cells_and_metrics()
        if cell not in [Cell(verdict.task, verdict.phase) for verdict in failed]
    ]
    controls = {
        cell: verdict for cell in state.cells if (verdict := control.verdict(state, cell)) is not None
    }
    untrusted = [cell for cell, verdict in controls.items() if verdict.status != "PASS"]
    verdicts = [
        doubted(verdict) if Cell(verdict.task, verdict.phase) in untrusted else verdict
        for verdict in verdicts
    ]
    return [*failed, *verdicts, *controls.values()]


def doubted(verdict: Verdict) -> Verdict:
    """Return the verdict on a metric if the machine changed during the measurement: no budget helps."""
    return verdict._replace(status="INCONCLUSIVE", needs=None)


def metric_verdict(state: State, cell: Cell, metric: Metric, result: Judgement, *, stopped: bool) -> Verdict:
    """Return the verdict on one metric in one cell. INCONCLUSIVE if its numbers are unknown."""
    if state.is_unknown(cell, metric):
        return unknown(cell, metric.name, missing_number(state, cell, metric))
    results = state.results_of(cell, metric.kinds)
    reasons = [result.excluded for result in results if result.excluded]
    with_ratio = judgement.with_ratio(result, state.series_of(cell, metric))
    needs = state.seconds_needed(cell, metric, result) if result.open and not state.has_ended(cell) else None
    return from_judgement(cell, metric, with_ratio, stopped=stopped, excluded=reasons, needs=needs)


def missing_number(state: State, cell: Cell, metric: Metric) -> str:
    """``NEW reported no host-memory, so it cannot be compared.``"""
    runs = next(result.runs for result in state.results_of(cell, metric.kinds) if result.runs)
    arms = {"NEW" if arm in NEW_ARMS else "OLD" for arm, run in runs.items() if not metric.value(run)}
    return f"{' and '.join(sorted(arms, reverse=True))} reported no {metric.name}, so it cannot be compared."


def failure_verdict(state: State, cell: Cell) -> Verdict | None:
    """Return BROKEN if NEW certainly fails more often than OLD and failed here; INCONCLUSIVE if a pass gave no Run."""
    results = state.results_of(cell)
    rounds = [one for result in results for one in result.rounds]
    old, new = failures.count(rounds)
    if new and state.is_broken():
        message = f"NEW failed in {new} of {len(rounds) + len(results)} rounds of launches, OLD in {old}: "
        return Verdict(*cell, "all", "BROKEN", message + failures.last_message(rounds, new=True))
    if all(result.runs for result in results):
        return None
    side = "OLD" if old else "NEW"
    message = f"{side}: {failures.last_message(rounds, new=not old)}"
    if old:
        return Verdict(*cell, "all", "INCONCLUSIVE", message)
    message = f"Launches of NEW failed, but too few to exclude chance. {message}"
    return Verdict(*cell, "all", "INCONCLUSIVE", message, needs=sum(result.took for result in results))
