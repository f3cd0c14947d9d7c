"""Compare profiles of OLD and NEW: time by operation, sorted by contribution to the difference. Pure functions."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Annotated, NamedTuple

import msgspec

from stele.schema import about

OLD, NEW = "old", "new"
LEAST_CHANGE = 0.02  # of a step; the shares of a smaller change are noise


class Operation(msgspec.Struct, frozen=True):
    """An operation in a step, in OLD and in NEW."""

    name: Annotated[str, about("the operation, or a function as `file.py:function`")]
    old: Annotated[float, about("its time in OLD, without the operations that it calls; 0 if it is not called", "s")]
    new: Annotated[float, about("its time in NEW", "s")]
    old_calls: Annotated[float, about("how often a step of OLD calls it", "calls")]
    new_calls: Annotated[float, about("how often a step of NEW calls it", "calls")]

    @property
    def change(self) -> float:
        return self.new - self.old


class Comparison(msgspec.Struct, frozen=True):
    """A step of a cell. All times are medians over the launches."""

    old: Annotated[float, about("a step of OLD without a profiler", "s")]
    new: Annotated[float, about("a step of NEW without a profiler", "s")]
    profiled_old: Annotated[float, about("a step of the same launches of OLD under the profiler", "s")]
    profiled_new: Annotated[float, about("a step of the same launches of NEW under the profiler", "s")]
    operations: Annotated[tuple[Operation, ...], about("the largest contribution to the change first")]

    def __post_init__(self) -> None:
        if min(self.old, self.profiled_old) <= 0:
            raise ValueError("a step takes no time")

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


def compare(old: Sequence[Profile], new: Sequence[Profile]) -> Comparison:
    """Return the medians over launches, with the operations sorted by how much they contribute to the difference."""
    names = {name for profile in (*old, *new) for name in profile.operations}
    operations = [operation(name, old, new) for name in names]
    direction = 1 if total(new, "profiled") >= total(old, "profiled") else -1
    operations.sort(key=lambda operation: (-direction * operation.change, operation.name))
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
            for numbers in zip(*(profile.operations.get(name, (0.0, 0.0)) for profile in arm), strict=True)
        ]
        for arm in (old, new)
    )
    return Operation(name, old_seconds, new_seconds, old_calls, new_calls)


def total(profiles: Sequence[Profile], field: str) -> float:
    return median(getattr(profile, field) for profile in profiles)
