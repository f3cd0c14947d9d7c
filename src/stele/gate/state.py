"""The results of a trial so far: what was launched, what it measured, and what is still open. Pure."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from stele.gate import failures, judgement
from stele.gate.entries import Round
from stele.gate.judgement import Judgement, Series
from stele.gate.metrics import KINDS, LONG, SHORT, Metric
from stele.gate.record import Record
from stele.gate.trial import NEW_ARMS
from stele.measuring.conditions import Conditions
from stele.measuring.run import OF_PROGRAMS, Run
from stele.statistics import Pass
from stele.subjects import Cell

CHEAPEST = (("gru", "infer"), ("cnn", "infer"), ("gru", "train"))
MAX_FAILED = 3  # passes of a cell without a Run
MAX_EXCLUDED = 40  # passes of a cell that do not count
PASSES = (3, 8)  # that most verdicts take: of equal releases, and of one that is 10 % slower
UNKNOWN = 60.0  # seconds of a verdict if no launch shows how long one takes


class Probe(NamedTuple):
    """The launches of a cell of one kind, one of ``metrics.KINDS``."""

    cell: Cell
    kind: str

    def key(self, number: int) -> tuple[str | int, ...]:
        """Return the key of a pass in the record."""
        return self.kind, str(self.cell), number


class Result(NamedTuple):
    """What a pass of one probe gave. ``runs`` has all of ARMS, or is empty if a launch failed."""

    runs: dict[str, Run]
    rounds: list[Round]  # attempts that failed
    conditions: Conditions
    took: float  # seconds; of passes that were measured at the same time, each has its share

    @property
    def excluded(self) -> str | None:
        """Why the pass does not count: a rule on conditions, never on what was measured."""
        return self.conditions.excluded


Results = dict[Probe, list[Result]]


class State:
    """The results of a trial so far, and what they mean.

    ``budget`` is in seconds. ``estimate`` returns how long a pass of a cell and kind took in an earlier gate.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        metrics: Sequence[Metric],
        *,
        budget: float = 0.0,
        estimate: Callable[[Cell, str], float | None] = lambda cell, kind: None,
    ) -> None:
        self.cells, self.metrics, self.budget, self.estimate = sorted(cells, key=rank), metrics, budget, estimate
        self.results: Results = {probe: [] for cell in self.cells for probe in probes_of(cell, self.metrics_of(cell))}

    def read(self, record: Record) -> "State":
        """Add the passes that a record has, and return the state.

        Raises SteleError if the versions of an arm changed between them.
        """
        for probe, results in self.results.items():
            results += results_in(record, probe, len(results))
        return self

    def metrics_of(self, cell: Cell) -> list[Metric]:
        """Return the metrics that are judged in a cell."""
        first = cell == self.cells[0]
        return [metric for metric in self.metrics if cell.phase in metric.phases and (metric.name != "import" or first)]

    def cells_and_metrics(self) -> Iterator[tuple[Cell, Metric]]:
        """Yield each metric that is judged, with its cell."""
        for cell in self.cells:
            for metric in self.metrics_of(cell):
                yield cell, metric

    @property
    def rounds(self) -> list[Round]:
        return [round_ for results in self.results.values() for result in results for round_ in result.rounds]

    def results_of(self, cell: Cell, kinds: Sequence[str] = tuple(KINDS)) -> list[Result]:
        """Return the results of a cell, pass by pass."""
        probes = [self.results.get(Probe(cell, kind), []) for kind in kinds]
        longest = max(map(len, probes))
        return [of_kind[number] for number in range(longest) for of_kind in probes if number < len(of_kind)]

    def series_of(self, cell: Cell, metric: Metric) -> Series:
        """Return what was measured of a metric in a cell, in the passes that count."""
        counted = [result for result in self.results_of(cell, metric.kinds) if result.runs and not result.excluded]
        passes = (to_pass(metric, result.runs) for result in counted)
        measured_passes = tuple(arms for arms in passes if arms is not None)
        return Series(metric.margin, metric.tolerance, metric.noise, measured_passes)

    def judge(self) -> dict[tuple[Cell, Metric], Judgement]:
        """Return the Judgement of each metric in each cell. The failures are one more test at the gate's level."""
        series = {key: self.series_of(*key) for key in self.cells_and_metrics()}
        return judgement.judge(series, others=1)

    def seconds_to_verdict(self) -> dict[Probe, float]:
        """Return about how long it takes to decide a metric of each open probe, as far as its passes show that."""
        seconds = dict[Probe, float]()
        for probe, passes in self.passes_needed().items():
            counts = [number for number in passes if number is not None]
            if counts and self.results[probe]:
                seconds[probe] = min(counts) * self.results[probe][-1].took
        return seconds

    def seconds_to_end(self) -> float | None:
        """Return about how long it takes to decide all metrics; None if the passes do not show it yet."""
        seconds = 0.0
        for probe, passes in self.passes_needed().items():
            counts = [number for number in passes if number is not None]
            if len(counts) < len(passes) or not self.results[probe]:
                return None
            seconds += max(counts) * self.results[probe][-1].took
        return seconds

    def passes_needed(self) -> dict[Probe, list[int | None]]:
        """Return how many more passes each open metric needs, by the open probes; None if nothing shows it."""
        judgements = self.judge()
        return {
            probe: [
                judgements[probe.cell, metric].needed
                for metric in self.metrics_of(probe.cell)
                if probe.kind in metric.kinds and judgements[probe.cell, metric].open
            ]
            for probe in self.open_probes()
        }

    def seconds_needed(self, cell: Cell, metric: Metric, result: Judgement) -> float:
        """Return about how many seconds the passes take that may still decide a metric."""
        took = [result_of_pass.took for result_of_pass in self.results_of(cell, metric.kinds)]
        estimate = sum(took) / len(took) if took else self.estimate(cell, metric.kinds[0])
        passes = result.needed or PASSES[-1]
        return passes * estimate if estimate is not None else max(self.budget, UNKNOWN)

    def is_unknown(self, cell: Cell, metric: Metric) -> bool:
        """Return whether launches of the cell gave Runs, but none of them all the numbers of the metric."""
        runs = [result.runs for result in self.results_of(cell, metric.kinds) if result.runs]
        return bool(runs) and all(to_pass(metric, of_pass) is None for of_pass in runs)

    def measured_with(self, probe: Probe) -> list[Probe]:
        """Return the probes that a launch measures one after the other, so that the phases of a task share its start.

        All items of a program share a launch, without those that are decided. The phases of a task end with the last
        one that is open. Inference comes first: what training leaves in memory would hide what inference needs. So
        training always follows inference, also if that is decided.
        """
        if not KINDS[probe.kind].shared:
            return [probe]
        if probe.cell.phase in OF_PROGRAMS:
            return [other for other in self.open_probes() if other.kind == probe.kind]
        of_task = [
            other
            for other in self.results
            if (other.kind, other.cell.task) == (probe.kind, probe.cell.task) and not self.has_ended(other.cell)
        ]
        in_order, still_open = sorted(of_task, key=lambda other: other.cell.phase == "train"), self.open_probes()
        last = max(place for place, other in enumerate(in_order) if other in still_open)
        return in_order[: last + 1]

    def is_broken(self) -> bool:
        """Return whether it is certain, at the level of the gate, that NEW fails more often than OLD."""
        return failures.log_evidence(self.rounds) >= judgement.certainty(len(list(self.cells_and_metrics())) + 1)

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
                metric
                for metric in self.metrics_of(cell)
                if judgements[cell, metric].open and not self.is_unknown(cell, metric)
            }
            if names and not self.has_ended(cell):
                probes += probes_of(cell, list(names), [probe.kind for probe in self.results if probe.cell == cell])
        return probes


def probes_of(cell: Cell, metrics: Sequence[Metric], kinds: Sequence[str] = tuple(KINDS)) -> list[Probe]:
    """Return the fewest probes, of these kinds, that measure the metrics in a cell."""
    needed = {metric.kinds[0] for metric in metrics if len(metric.kinds) == 1}
    if any(not needed & set(metric.kinds) for metric in metrics):
        needed.add(SHORT if SHORT in kinds else LONG)
    return [Probe(cell, kind) for kind in KINDS if kind in needed]


def results_in(record: Record, probe: Probe, first: int) -> list[Result]:
    """Return the passes of a record from the ``first`` on.

    Raises SteleError if the versions of an arm changed between them.
    """
    results: list[Result] = []
    for number in itertools.count(first):
        entry = record.get(*probe.key(number))
        if entry is None:
            return results
        runs: dict[str, Run] = entry["runs"] or {}
        for arm, run in runs.items():
            record.check_versions(arm, run.framework.versions)
        results.append(Result(runs, entry["rounds"], entry["conditions"], float(entry["took"])))
    raise AssertionError


def rank(cell: Cell) -> tuple[int, bool]:
    """Return the order of a cell: the cheapest first, and inference before training, in which it is measured."""
    return CHEAPEST.index(cell) if cell in CHEAPEST else len(CHEAPEST), cell.phase == "train"


def to_pass(metric: Metric, runs: Mapping[str, Run]) -> Pass | None:
    """Return the logarithms of a metric in a pass; None if a launch has no number."""
    values = metric.values(runs)
    if values is None:
        return None
    old, new = ([value for arm, value in values.items() if (arm in NEW_ARMS) == is_new] for is_new in (False, True))
    return tuple(old), tuple(new)
