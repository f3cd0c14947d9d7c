"""The results of a trial so far: what was launched, what it measured, and what is still open. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from stele.gate import durations, failures, judgement, steps
from stele.gate.judgement import Judgement, Series
from stele.gate.launcher import Launcher
from stele.gate.metrics import KINDS, LONG, SHORT, Metric, launch_settings
from stele.gate.trial import NEW_ARMS, Cell, Trial
from stele.measuring.conditions import Conditions
from stele.measuring.run import Run
from stele.statistics import Pass

CHEAPEST = (("gru", "infer"), ("cnn", "infer"), ("gru", "train"))
MAX_FAILED = 3  # passes of a cell without a Run
MAX_EXCLUDED = 40  # passes of a cell that do not count


class Probe(NamedTuple):
    """The launches of a cell of one kind, one of ``metrics.KINDS``."""

    cell: Cell
    kind: str

    def launcher(self, trial: Trial, results: Sequence["Result"]) -> Launcher:
        """Return what launches the next pass; ``results`` are those of the earlier passes."""
        timed = trial.training if KINDS[self.kind].trains else trial.scale
        own, earlier = trial.model is not None, [(one.runs, one.conditions.seconds) for one in results]
        scale, settings = launch_settings(self.kind, timed, trial.settings, own=own)
        count = steps.of_next_launch(self.kind, scale, earlier, own=own)
        return Launcher(
            trial, self.cell, settings, scale, count, KINDS[self.kind],
            number=len(results), limit=steps.limit(trial),
        )  # fmt: skip


class Result(NamedTuple):
    """What a pass of one probe gave. ``runs`` has all of ARMS, or is empty if a launch failed."""

    runs: dict[str, Run]
    rounds: list[dict[str, Any]]  # attempts that failed
    conditions: Conditions
    took: float  # seconds; of passes that were measured at the same time, each has its share

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
        return [
            metric
            for metric in self.trial.metrics
            if cell.phase in metric.phases and (metric.name != "import" or first)
        ]

    def cells_and_metrics(self) -> Iterator[tuple[Cell, Metric]]:
        """Yield each metric that is judged, with its cell."""
        for cell in self.cells:
            for metric in self.metrics_of(cell):
                yield cell, metric

    @property
    def rounds(self) -> list[dict[str, Any]]:
        return [one for results in self.results.values() for result in results for one in result.rounds]

    def results_of(self, cell: Cell, kinds: Sequence[str] = tuple(KINDS)) -> list[Result]:
        """Return the results of a cell, pass by pass."""
        probes = [self.results.get(Probe(cell, kind), []) for kind in kinds]
        longest = max(map(len, probes))
        return [of_kind[number] for number in range(longest) for of_kind in probes if number < len(of_kind)]

    def series_of(self, cell: Cell, metric: Metric) -> Series:
        """Return what was measured of a metric in a cell, in the passes that count."""
        counted = [
            result for result in self.results_of(cell, metric.kinds) if result.runs and not result.excluded
        ]
        passes = (to_pass(metric, result.runs) for result in counted)
        measured = tuple(arms for arms in passes if arms is not None)
        return Series(metric.margin, metric.tolerance, metric.noise, measured)

    def judge(self) -> dict[tuple[Cell, Metric], Judgement]:
        """Return the Judgement of each metric in each cell. The failures are one more test at the gate's level."""
        series = {key: self.series_of(*key) for key in self.cells_and_metrics()}
        return judgement.judge(series, others=1)

    def seconds_to_verdict(self) -> dict[Probe, float]:
        """Return about how long it takes to decide a metric of each open probe, as far as its passes show that."""
        judgements, seconds = self.judge(), dict[Probe, float]()
        for probe in self.open_probes():
            passes = [
                judgements[probe.cell, metric].needed
                for metric in self.metrics_of(probe.cell)
                if probe.kind in metric.kinds and judgements[probe.cell, metric].open
            ]
            known = [number for number in passes if number is not None]
            if known and self.results[probe]:
                seconds[probe] = min(known) * self.results[probe][-1].took
        return seconds

    def seconds_needed(self, cell: Cell, metric: Metric, result: Judgement) -> float:
        """Return about how many seconds the passes take that may still decide a metric."""
        took = [one.took for one in self.results_of(cell, metric.kinds)]
        known = sum(took) / len(took) if took else durations.estimate(self.trial, cell, metric.kinds[0])
        passes = result.needed or durations.PASSES[-1]
        return passes * known if known is not None else max(self.trial.budget, durations.UNKNOWN)

    def is_unknown(self, cell: Cell, metric: Metric) -> bool:
        """Return whether launches of the cell gave Runs, but none of them all the numbers of the metric."""
        runs = [result.runs for result in self.results_of(cell, metric.kinds) if result.runs]
        return bool(runs) and all(to_pass(metric, of_pass) is None for of_pass in runs)

    def is_broken(self) -> bool:
        """Return whether it is certain, at the level of the gate, that NEW fails more often than OLD."""
        return failures.log_evidence(self.rounds) >= judgement.certainty(
            len(list(self.cells_and_metrics())) + 1
        )

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
                probes += probes_of(cell, list(names), [one.kind for one in self.results if one.cell == cell])
        return probes


def probes_of(cell: Cell, metrics: Sequence[Metric], kinds: Sequence[str] = tuple(KINDS)) -> list[Probe]:
    """Return the fewest probes, of these kinds, that measure the metrics in a cell."""
    needed = {metric.kinds[0] for metric in metrics if len(metric.kinds) == 1}
    if any(not needed & set(metric.kinds) for metric in metrics):
        needed.add(SHORT if SHORT in kinds else LONG)
    return [Probe(cell, kind) for kind in KINDS if kind in needed]


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
