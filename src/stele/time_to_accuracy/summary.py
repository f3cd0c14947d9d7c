"""What the trainings of one environment show: accuracy, times by each definition, cost and energy. Pure.

Definitions of the duration of a training; one that was continued has none:

DAWNBench   preparing the training data, and the epochs with their augmentation. Neither evaluation nor compilation
MLPerf      everything from the first access to the data to the end of the last evaluation. Compilation has a separate
            budget; what exceeds it counts
Sources: github.com/stanford-futuredata/dawn-bench-entries, github.com/mlcommons/training_policies.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

from stele import convergence
from stele.measuring.run import Run
from stele.schema import about
from stele.statistics import Estimate
from stele.time_to_accuracy.prices import Price

COMPILE_BUDGET = 30 * 60.0  # seconds


def dawnbench_seconds(run: Run) -> float | None:
    if run.epochs is None or run.continued:
        return None
    return run.epochs.data_seconds + sum(run.steps.seconds)


def mlperf_seconds(run: Run) -> float | None:
    if run.epochs is None or run.continued:
        return None
    return run.epochs.elapsed - min(run.epochs.compile_seconds, COMPILE_BUDGET)


DEFINITIONS: dict[str, Callable[[Run], float | None]] = {
    "DAWNBench": dawnbench_seconds,
    "MLPerf": mlperf_seconds,
}


@dataclass(frozen=True)
class Times:
    """The times of trainings by one definition of the clock."""

    mean: Annotated[Estimate, about("estimate of the duration of a training", "s")]
    expected: Annotated[
        Estimate | None,
        about(
            "estimate of the time to the target if a training that misses it is repeated; null if none reached it", "s"
        ),
    ]
    mlperf_mean: Annotated[
        float | None,
        about("mean without the fastest and the slowest; null with fewer than three, or if more than one missed", "s"),
    ]


@dataclass(frozen=True)
class Summary:
    """An unknown value is None."""

    runs: tuple[Run, ...]
    target: float
    accuracy: Estimate
    deviation: Estimate | None
    probability: Estimate  # that a training reaches the target
    epoch: Estimate  # seconds
    times: dict[str, Times | None]  # by definition; None if every training was continued
    compile_seconds: float  # mean
    price: Price | None
    cost: Estimate | None  # US dollars of the expected time by DAWNBench's definition
    energy: dict[str, float | None] | None  # mean joules of a training by source
    reference_p: float | None  # that the reference converges as fast; None without a reference

    @property
    def rejected(self) -> bool:
        """Whether the training converges faster than the reference, which indicates changed mathematics."""
        return self.reference_p is not None and self.reference_p < convergence.LEVEL

    @property
    def continued(self) -> int:
        """How many trainings were continued, so that their time does not count."""
        return sum(run.continued for run in self.runs)


def summarise(
    runs: Sequence[Run],
    target: float,
    *,
    price: Price | None = None,
    reference: Sequence[float] | None = None,
) -> Summary:
    """Return the Summary of Runs that differ in their seeds. ``reference`` are accuracies of reference runs."""
    accuracies = [accuracy_of(run) for run in runs]
    reached = [accuracy >= target for accuracy in accuracies]
    times = {name: times_of(runs, reached, name) for name in DEFINITIONS}
    expected = None if times["DAWNBench"] is None else times["DAWNBench"].expected
    return Summary(
        runs=tuple(runs),
        target=target,
        accuracy=convergence.mean(accuracies),
        deviation=convergence.deviation(accuracies),
        probability=convergence.probability(sum(reached), len(reached)),
        epoch=convergence.mean([sum(run.steps.seconds) / len(run.steps.seconds) for run in runs]),
        times=times,
        compile_seconds=convergence.mean([run.epochs.compile_seconds for run in runs if run.epochs is not None]).middle,
        price=price,
        cost=None if price is None or expected is None else in_dollars(price, expected),
        energy=energy_of(runs),
        reference_p=None if reference is None else convergence.faster_p(accuracies, reference),
    )


def accuracy_of(run: Run) -> float:
    assert run.learning.accuracy is not None  # every Run of this phase has one
    return run.learning.accuracy


def times_of(runs: Sequence[Run], reached: Sequence[bool], definition: str) -> Times | None:
    pairs = [(DEFINITIONS[definition](run), hit) for run, hit in zip(runs, reached, strict=True)]
    valid = [(seconds, hit) for seconds, hit in pairs if seconds is not None]
    if not valid:
        return None
    seconds = [duration for duration, _ in valid]
    return Times(
        mean=convergence.mean(seconds),
        expected=convergence.expected_time(seconds, reached),
        mlperf_mean=convergence.mlperf_mean(seconds, [hit for _, hit in valid]),
    )


def in_dollars(price: Price, seconds: Estimate) -> Estimate:
    low, middle, high = (None if value is None else price.cost(value) for value in seconds)
    assert middle is not None
    return Estimate(low, middle, high)


def energy_of(runs: Sequence[Run]) -> dict[str, float | None] | None:
    """Return the mean joules by source. A source that is unknown in one Run is unknown; None without any source."""
    whole = [run.energy or {} for run in runs if not run.continued]
    sources = dict.fromkeys(source for energy in whole for source in energy)
    joules = {source: [energy.get(source) for energy in whole] for source in sources}
    return {
        source: None if None in values else sum(filter(None, values)) / len(values) for source, values in joules.items()
    } or None
