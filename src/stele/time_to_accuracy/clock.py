"""The duration of a training, as DAWNBench and as MLPerf define it. A training that was continued has none.

DAWNBench   preparing the training data, and the epochs with their augmentation. Neither evaluation nor compilation
MLPerf      everything from the first access to the data to the end of the last evaluation. Compilation has a separate
            budget; what exceeds it counts
Sources: github.com/stanford-futuredata/dawn-bench-entries, github.com/mlcommons/training_policies.
"""

from collections.abc import Callable

from stele.measuring.run import Run

COMPILE_BUDGET = 30 * 60.0  # seconds


def dawnbench_seconds(run: Run) -> float | None:
    if run.continued or run.data_seconds is None:
        return None
    return run.data_seconds + sum(run.seconds)


def mlperf_seconds(run: Run) -> float | None:
    if run.continued or run.elapsed is None or run.compile_seconds is None:
        return None
    return run.elapsed - min(run.compile_seconds, COMPILE_BUDGET)


DEFINITIONS: dict[str, Callable[[Run], float | None]] = {
    "DAWNBench": dawnbench_seconds,
    "MLPerf": mlperf_seconds,
}
