"""Time and memory: measure passes until every metric is decided or the budget is spent.

A pass launches each arm of a cell once: OLD twice and NEW twice, in an order that is drawn from the trial's seed. So a
resumed trial continues in the same order. The cells of a pass start with the cheapest one, because that one is decided
soonest. The import is the same in every cell, so it is judged in the cheapest one.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from stele.gate import control, durations, failures, judgement, steps
from stele.gate.judgement import Judgement, Series
from stele.gate.metrics import LONG, SHORT, Metric, launch_settings
from stele.gate.record import Entry, Record
from stele.gate.trial import ARMS, NEW_ARMS, Cell, Launcher, Trial, failure_messages
from stele.gate.verdict import Verdict, from_judgement, message_of, unknown
from stele.measuring.conditions import Conditions
from stele.measuring.run import Run
from stele.statistics import Pass

CHEAPEST = (("gru", "infer"), ("cnn", "infer"), ("gru", "train"))
MAX_FAILED = 3  # passes of a cell without a Run
MAX_EXCLUDED = 40  # passes of a cell that do not count

Say = Callable[[str], object]


class Probe(NamedTuple):
    """The launches of a cell of one kind, "long" or "short"."""

    cell: Cell
    kind: str

    def launcher(self, trial: Trial, results: Sequence["Result"]) -> Launcher:
        """Return what launches the next pass; ``results`` are those of the earlier passes."""
        scale, settings = launch_settings(self.kind, trial.scale, trial.settings)
        count = steps.of_next_launch(self.kind, scale, [(result.runs, result.took) for result in results])
        return Launcher(trial, self.cell, settings, scale, count)


class Result(NamedTuple):
    """What a pass of one probe gave. ``runs`` has all of ARMS, or is empty if a launch failed."""

    runs: dict[str, Run]
    rounds: list[dict[str, Any]]  # attempts that failed
    conditions: Conditions
    took: float  # seconds

    @property
    def excluded(self) -> str | None:
        """Why the pass does not count: a rule on conditions, never on what was measured."""
        return self.conditions.excluded


Results = dict[Probe, list[Result]]


class State:
    """The results of a trial so far, and what they mean."""

    def __init__(self, trial: Trial, cells: Sequence[Cell]) -> None:
        self.trial, self.cells = trial, sorted(cells, key=cost_rank)
        self.results: Results = {
            probe: [] for cell in self.cells for probe in probes_of(cell, self.metrics_of(cell))
        }

    def metrics_of(self, cell: Cell) -> list[Metric]:
        """Return the metrics that are judged in a cell."""
        first = cell == self.cells[0]
        return [metric for metric in self.trial.metrics if metric.name != "import" or first]

    def judged(self) -> Iterator[tuple[Cell, Metric]]:
        for cell in self.cells:
            for metric in self.metrics_of(cell):
                yield cell, metric

    @property
    def rounds(self) -> list[dict[str, Any]]:
        return [one for results in self.results.values() for result in results for one in result.rounds]

    def results_of(self, cell: Cell, kinds: Sequence[str] = (LONG, SHORT)) -> list[Result]:
        """Return the results of a cell, pass by pass."""
        probes = [self.results.get(Probe(cell, kind), []) for kind in kinds]
        longest = max(map(len, probes))
        return [of_kind[number] for number in range(longest) for of_kind in probes if number < len(of_kind)]

    def series(self) -> dict[tuple[Cell, Metric], Series]:
        """Return what was measured of each metric in each cell, in the passes that count."""
        return {(cell, metric): self.series_of(cell, metric) for cell, metric in self.judged()}

    def series_of(self, cell: Cell, metric: Metric) -> Series:
        counted = [
            result for result in self.results_of(cell, metric.kinds) if result.runs and not result.excluded
        ]
        passes = (to_pass(metric, result.runs) for result in counted)
        measured = tuple(arms for arms in passes if arms is not None)
        return Series(metric.margin, metric.tolerance, metric.noise, measured)

    def judge(self) -> dict[tuple[Cell, Metric], Judgement]:
        """Return the Judgement of each metric in each cell. The failures are one more test at the gate's level."""
        return judgement.judge(self.series(), others=1)

    def is_unknown(self, cell: Cell, metric: Metric) -> bool:
        """Return whether launches of the cell gave Runs, but none of them all the numbers of the metric."""
        runs = [result.runs for result in self.results_of(cell, metric.kinds) if result.runs]
        return bool(runs) and all(to_pass(metric, of_pass) is None for of_pass in runs)

    def is_broken(self) -> bool:
        """Return whether it is certain, at the level of the gate, that NEW fails more often than OLD."""
        return failures.log_evidence(self.rounds) >= judgement.certainty(len(list(self.judged())) + 1)

    def has_ended(self, cell: Cell) -> bool:
        """Return whether launches of a cell fail, or do not count, so often that no more are worth their time."""
        failed = sum(not result.runs for result in self.results_of(cell))
        excluded = sum(result.excluded is not None for result in self.results_of(cell))
        return max(failed - MAX_FAILED, excluded - MAX_EXCLUDED) >= 0 or (failed > 0 and self.is_broken())

    def open_probes(self) -> list[Probe]:
        """Return the probes that another pass could help to decide, the cheapest first."""
        judgements = self.judge()
        probes = []
        for cell in self.cells:
            names = {
                metric for metric in self.metrics_of(cell)
                if judgements[cell, metric].open and not self.is_unknown(cell, metric)
            }  # fmt: skip
            if names and not self.has_ended(cell):
                probes += [probe for probe in probes_of(cell, list(names)) if probe in self.results]
        return probes


def probes_of(cell: Cell, metrics: Sequence[Metric]) -> list[Probe]:
    """Return the fewest probes that measure these metrics in a cell."""
    long = any(metric.kinds == (LONG,) for metric in metrics)
    short = any(LONG not in metric.kinds or not long for metric in metrics)
    return [Probe(cell, kind) for kind, needed in ((LONG, long), (SHORT, short)) if needed]


def cost_rank(cell: Cell) -> int:
    return CHEAPEST.index(cell) if cell in CHEAPEST else len(CHEAPEST)


def to_pass(metric: Metric, runs: Mapping[str, Run]) -> Pass | None:
    """Return the logarithms of a metric in a pass; None if a launch has no number."""
    values = metric.values(runs)
    if values is None:
        return None
    old, new = (
        [value for arm, value in values.items() if (arm in NEW_ARMS) == is_new] for is_new in (False, True)
    )
    return tuple(old), tuple(new)


def measure_passes(
    trial: Trial, record: Record, cells: list[Cell], say: Say, *, share: float = 1.0
) -> list[Verdict]:
    """Measure until all is decided or a share of the budget is spent. Launches in the record are not repeated."""
    state, number, announced = State(trial, cells), 0, set[tuple[Cell, str]]()
    estimated = durations.announce_timing(trial, record, list(state.results), say)
    while active := state.open_probes():
        launches_before = record.launches
        for probe in active:
            key = probe.kind, str(probe.cell), number
            if trial.budget_spent(record, share) and record.get(*key) is None:
                return make_verdicts(state, stopped=True)
            state.results[probe].append(measure_pass(trial, record, probe, key, state.results[probe]))
            ended = announce(state, announced, say)
            if ended and trial.fail_fast:
                return make_verdicts(state, stopped=True)
        number += 1
        if (
            record.launches > launches_before
        ):  # else the whole pass is from the record: it was reported before
            say(progress_message(trial, record, state, number))
            if number == 1 and not estimated:
                durations.announce_timing(trial, record, list(state.results), say, measured=1)
    return make_verdicts(state, stopped=False)


def measure_pass(
    trial: Trial, record: Record, probe: Probe, key: tuple[str | int, ...], earlier: Sequence[Result]
) -> Result:
    """Launch each arm once, in random order, or take the launches from the record."""
    arms = list(ARMS)
    random.Random(f"{trial.seed} {key}").shuffle(arms)

    def launch() -> Entry:
        entry = probe.launcher(trial, earlier).launch(arms)
        if entry["runs"]:
            durations.remember(trial, probe.cell, probe.kind, entry["took"])
        return entry

    entry = record.get_or_launch(*key, launch=launch)
    runs = {arm: Run.from_dict(run) for arm, run in (entry["runs"] or {}).items()}
    for arm, run in runs.items():
        record.check_versions(arm, run.versions)
    rounds = [*entry["rounds"]]
    if not runs and not rounds:
        rounds.append({"arms": arms, "failures": failure_messages(entry)})
    return Result(runs, rounds, Conditions(**entry["conditions"]), float(entry["took"]))


def announce(state: State, announced: set[tuple[Cell, str]], say: Say) -> bool:
    """Print each verdict against NEW as soon as it is certain. Return whether there is one."""
    for (cell, metric), result in state.judge().items():
        if result.status == "REGRESSED" and (cell, metric.name) not in announced:
            announced.add((cell, metric.name))
            with_ratio = judgement.with_ratio(result, state.series_of(cell, metric))
            say(f"REGRESSED: {cell} {metric.name}, {message_of(metric, with_ratio)}")
    return bool(announced) or state.is_broken()


def make_verdicts(state: State, *, stopped: bool) -> list[Verdict]:
    """Return failures first, then a verdict for each metric, then the control."""
    failed = [verdict for cell in state.cells if (verdict := failure_verdict(state, cell)) is not None]
    judgements = state.judge()
    verdicts = [
        metric_verdict(state, cell, metric, judgements[cell, metric], stopped=stopped)
        for cell, metric in state.judged()
        if cell not in [Cell(verdict.task, verdict.phase) for verdict in failed]
    ]
    controls = {
        cell: verdict for cell in state.cells if (verdict := control.verdict(state, cell)) is not None
    }
    untrusted = [cell for cell, verdict in controls.items() if verdict.status != "PASS"]
    verdicts = [
        verdict._replace(status="INCONCLUSIVE") if Cell(verdict.task, verdict.phase) in untrusted else verdict
        for verdict in verdicts
    ]
    return [*failed, *verdicts, *controls.values()]


def metric_verdict(state: State, cell: Cell, metric: Metric, result: Judgement, *, stopped: bool) -> Verdict:
    """Return the verdict on one metric in one cell. INCONCLUSIVE if its numbers are unknown."""
    if state.is_unknown(cell, metric):
        return unknown(cell, metric.name, missing_number(state, cell, metric))
    results = state.results_of(cell, metric.kinds)
    reasons = [result.excluded for result in results if result.excluded]
    with_ratio = judgement.with_ratio(result, state.series_of(cell, metric))
    return from_judgement(cell, metric, with_ratio, stopped=stopped, excluded=reasons)


def missing_number(state: State, cell: Cell, metric: Metric) -> str:
    """``NEW reports no host-memory. Leave the metric out with --metric.``"""
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
    if not old:
        message = f"Launches of NEW failed, but too few to exclude chance. Raise --budget. {message}"
    return Verdict(*cell, "all", "INCONCLUSIVE", message)


def progress_message(trial: Trial, record: Record, state: State, number: int) -> str:
    """``pass 3: 12 of 20 metrics decided, 11 PASS, 1 REGRESSED; 3.0 min used, at most 17.0 min left``"""
    judgements = state.judge().values()
    decided = [result.status for result in judgements if not result.open]
    counts = "".join(
        f", {decided.count(status)} {status}" for status in judgement.STATUSES if status in decided
    )
    left = max(trial.budget - record.spent, 0)
    return (
        f"pass {number}: {len(decided)} of {len(judgements)} metrics decided{counts}; "
        f"{record.spent / 60:.1f} min used, at most {left / 60:.1f} min left"
    )
