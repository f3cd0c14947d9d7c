"""Compare profiles of OLD and NEW: time by operation, sorted by contribution to the difference. Pure functions."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

OLD, NEW = "old", "new"
LEAST_CHANGE = 0.02  # of a step; the shares of a smaller change are noise


class Operation(NamedTuple):
    """Seconds and calls of an operation in a step, in OLD and in NEW; 0 in an arm that does not call it."""

    name: str
    old: float
    new: float
    old_calls: float
    new_calls: float

    @property
    def change(self) -> float:
        return self.new - self.old


class Comparison(NamedTuple):
    """Medians over launches, in seconds of a step."""

    old: float  # without a profiler
    new: float
    profiled_old: float  # of the same launches under the profiler
    profiled_new: float
    operations: tuple[Operation, ...]  # the largest contribution to the difference first

    @property
    def change(self) -> float:
        """How much longer a step takes in NEW under the profiler."""
        return self.profiled_new - self.profiled_old

    @property
    def rest(self) -> float:
        """The seconds of the change that no operation has; negative if operations ran at the same time."""
        return self.change - sum(operation.change for operation in self.operations)

    def share(self, change: float) -> float | None:
        """Return a part of the change as a fraction; None if the steps take about equally long under the profilers."""
        return change / self.change if abs(self.change) >= LEAST_CHANGE * self.profiled_old else None


class Profile(NamedTuple):
    """One launch: seconds of a step without and under the profiler; seconds and calls of each operation."""

    step: float
    profiled: float
    operations: Mapping[str, Sequence[float]]


def profile_of(seconds: float, profile: Mapping[str, Any]) -> Profile:
    return Profile(seconds, profile["step"], profile["operations"])


def compare(old: Sequence[Profile], new: Sequence[Profile]) -> Comparison:
    """Return the medians over launches, with the operations sorted by how much they contribute to the difference."""
    names = {name for profile in (*old, *new) for name in profile.operations}
    operations = [operation(name, old, new) for name in names]
    direction = 1 if total(new, "profiled") >= total(old, "profiled") else -1
    operations.sort(key=lambda one: (-direction * one.change, one.name))
    return Comparison(
        old=total(old, "step"),
        new=total(new, "step"),
        profiled_old=total(old, "profiled"),
        profiled_new=total(new, "profiled"),
        operations=tuple(operations),
    )


def operation(name: str, old: Sequence[Profile], new: Sequence[Profile]) -> Operation:
    """Return the medians over launches of an operation."""
    (old_seconds, old_calls), (new_seconds, new_calls) = (
        [
            median(numbers)
            for numbers in zip(*(one.operations.get(name, (0.0, 0.0)) for one in arm), strict=True)
        ]
        for arm in (old, new)
    )
    return Operation(name, old_seconds, new_seconds, old_calls, new_calls)


def total(profiles: Sequence[Profile], field: str) -> float:
    return median(getattr(profile, field) for profile in profiles)
