"""Whether the values that programs computed are equal in OLD and NEW, or differ by no more than rounding. Pure.

How far two right values may differ is measured: OLD computes them twice, the second time with another number of
threads. NEW may differ by ten times what OLD differs from itself, or by some units in the last place, if that is more.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy

from stele.measuring.answers import Value

FACTOR = 10  # times what OLD differs from itself
UNITS = 64  # in the last place: OLD need not differ from itself by all that another order of operations may
EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "complex64": 2.0**-23}
DOUBLE = 2.0**-52
PLAIN = "number"  # the dtype of numbers that are in no array
LARGEST = 0.01  # relative: a value in which OLD differs from itself by more than this has no reference
EQUAL, ROUNDING, CHANGED, UNSTABLE = "equal", "within rounding", "changed", "differs in OLD itself"


class Change(NamedTuple):
    """How a value of NEW differs from that of OLD."""

    kind: str
    difference: float = 0.0  # relative to the largest number of OLD
    of_old: float = 0.0  # the same of OLD's second launch
    reason: str = ""  # if they are no numbers of the same kind

    @property
    def message(self) -> str:
        """``moved by 3e-05, OLD itself moves by 2e-05: within rounding``"""
        if self.reason:
            return self.reason
        return f"moved by {self.difference:.2g}, OLD itself moves by {self.of_old:.2g}: {self.kind}"


def compare(old: Sequence[Value], new: Sequence[Value]) -> Change:
    """Compare the values of launches of OLD and NEW, each of which has the settings of that of OLD at its place."""
    of_old = difference(old[0], old[-1])
    if isinstance(of_old, str):
        return Change(UNSTABLE, reason=f"differs between two launches of OLD: {of_old}")
    changes = [difference(before, after) for before, after in zip(old, new, strict=True)]
    for change in changes:
        if isinstance(change, str):
            return Change(CHANGED, reason=change)
    most = max(change for change in changes if not isinstance(change, str))
    if of_old > LARGEST:
        return Change(UNSTABLE, most, of_old)
    if most == 0:
        return Change(EQUAL, most, of_old)
    allowed = max(FACTOR * of_old, UNITS * epsilon_of(old[0]))
    return Change(ROUNDING if most <= allowed else CHANGED, most, of_old)


def difference(old: Value, new: Value) -> float | str:
    """Return the largest difference, relative to the largest number of ``old``; or why they cannot be compared."""
    for fact in ("type", "dtype", "shape", "text"):
        if old.get(fact) != new.get(fact):
            return f"{fact} {old.get(fact)} in OLD, {new.get(fact)} in NEW"
    if "numbers" not in old or "numbers" not in new:
        return 0.0
    before, after = as_array(old), as_array(new)
    if not numpy.array_equal(numpy.isfinite(before), numpy.isfinite(after)) or not numpy.array_equal(
        before[~numpy.isfinite(before)], after[~numpy.isfinite(after)], equal_nan=True
    ):
        return "numbers that are not finite are at other places"
    finite = numpy.isfinite(before)
    distances, sizes = numpy.abs(before[finite] - after[finite]), numpy.abs(before[finite])
    if not distances.any():
        # some of very many numbers stand for all
        return 0.0 if old.get("digest") == new.get("digest") else DOUBLE
    if old.get("dtype") == PLAIN:  # numbers of a list have nothing to do with each other
        with numpy.errstate(divide="ignore"):
            return float((distances[distances > 0] / sizes[distances > 0]).max())
    scale = float(sizes.max())
    return float(distances.max()) / scale if scale > 0 else math.inf


def as_array(value: Value) -> "numpy.ndarray[tuple[int], numpy.dtype[numpy.float64]]":
    return numpy.array([float(number) for number in value["numbers"]], numpy.float64)


def epsilon_of(value: Value) -> float:
    """Return the unit in the last place of the type in which a value was computed, relative to it; 0 of whole numbers.

    A plain number that a single-precision number can express is the result of such a computation.
    """
    dtype = value.get("dtype", "")
    if dtype in EPSILON:
        return EPSILON[dtype]
    numbers = value.get("numbers", [])
    if all(isinstance(number, int) for number in numbers):
        return 0.0
    array = as_array(value)
    return EPSILON["float32"] if numpy.array_equal(array.astype(numpy.float32), array, equal_nan=True) else DOUBLE


def compare_all(old: Sequence[Mapping[str, Value]], new: Sequence[Mapping[str, Value]]) -> dict[str, Change]:
    """Return the change of each value that OLD computed, by name."""
    changes = {}
    for name in old[0]:
        if not all(name in values for values in old):
            changes[name] = Change(UNSTABLE, reason="computed in one launch of OLD only")
        elif not all(name in values for values in new):
            changes[name] = Change(CHANGED, reason="not computed in NEW")
        else:
            changes[name] = compare([values[name] for values in old], [values[name] for values in new])
    return changes
