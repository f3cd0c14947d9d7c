"""Enter durations that were measured elsewhere into pytest-benchmark.

The worker's clock has measured the steps; pytest-benchmark tabulates, stores and compares them. So its timer is this
clock, which advances only by measured durations, and one of its rounds advances it by one duration.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture


class Clock:
    """Call it for the time, in seconds, as pytest-benchmark calls its timer."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds

    def start(self) -> None:
        """Return to zero, so that the end of a round is exactly its duration."""
        self.seconds = 0.0

    def advance(self, seconds: float) -> None:
        self.seconds += seconds


clock = Clock()  # one for all tests: pytest-benchmark's marker needs the timer when a module is imported


def replay(benchmark: "BenchmarkFixture", seconds: Sequence[float]) -> None:
    """Enter durations, in seconds, into pytest-benchmark, one for each round."""
    remaining = iter(seconds)

    def setup() -> tuple[tuple[float], dict[str, object]]:
        clock.start()
        return (next(remaining),), {}

    benchmark.pedantic(clock.advance, setup=setup, rounds=len(seconds), iterations=1)
