"""An explanation as lines for a terminal. The functions return text and print nothing."""

from collections.abc import Iterator, Sequence

from stele.explain.comparison import Comparison, Operation
from stele.text import FACTOR, align, change, milliseconds, printable

NOISE = 0.05  # of the change
LONGEST = 80  # characters of a name
MOST = 12  # operations that are shown
LEAST_SHARE = 0.01  # of the larger step; smaller operations are summed up
MOST_OVERHEAD = 1.5  # of a step under the profiler over a step without; above it, a warning
HEAD = ["operation", "OLD ms", "NEW ms", "change ms", "share", "OLD calls", "NEW calls"]


def lines(title: str, comparison: Comparison, unit: str = "step") -> list[str]:
    """Return a title, the step times, the table of operations, and the share that no operation explains.

    ``unit`` is what a step is called.
    """
    return [
        title,
        f"{unit}: {milliseconds(comparison.old)} ms in OLD, {milliseconds(comparison.new)} ms in NEW "
        f"({growth(comparison.old, comparison.new)}); under the profilers {milliseconds(comparison.profiled_old)} ms "
        f"and {milliseconds(comparison.profiled_new)} ms",
        *align([HEAD, *table(comparison)]),
        unexplained(comparison, unit),
        *warnings(comparison),
    ]


def table(comparison: Comparison) -> Iterator[list[str]]:
    shown, others = split(comparison)
    for operation in shown:
        yield row(comparison, operation)
    if others:
        rest = Operation(
            f"{len(others)} others",
            old=sum(operation.old for operation in others),
            new=sum(operation.new for operation in others),
            old_calls=sum(operation.old_calls for operation in others),
            new_calls=sum(operation.new_calls for operation in others),
        )
        yield row(comparison, rest)


def split(comparison: Comparison) -> tuple[Sequence[Operation], Sequence[Operation]]:
    """Return the operations to show, and those to sum up."""
    least = LEAST_SHARE * max(comparison.profiled_old, comparison.profiled_new)
    shown = [operation for operation in comparison.operations if max(operation.old, operation.new) >= least][:MOST]
    return shown, [operation for operation in comparison.operations if operation not in shown]


def row(comparison: Comparison, operation: Operation) -> list[str]:
    share = comparison.share(operation.change)
    return [
        shortened(operation.name),
        *(milliseconds(seconds) if seconds else "" for seconds in (operation.old, operation.new)),
        signed(operation.change),
        "" if share is None else percent(share),
        *(figure_of_calls(calls) if calls else "" for calls in (operation.old_calls, operation.new_calls)),
    ]


def figure_of_calls(calls: float) -> str:
    return f"{calls:,.0f}" if calls >= 1 else f"{calls:.2g}"


def shortened(name: str) -> str:
    """Return the name of an operation in one line. MXNet joins the names of all operations of a bulk."""
    name = printable(name, keep="")
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def unexplained(comparison: Comparison, unit: str) -> str:
    share = comparison.share(comparison.rest)
    if share is None:
        return f"The {unit}s take about equally long under the profilers, so the changes may be noise."
    line = f"{percent(share)} of the change, {signed(comparison.rest)} ms, is in no operation that the profilers show."
    return line if share > -NOISE else f"{line} Operations ran at the same time."


def warnings(comparison: Comparison) -> Iterator[str]:
    """Yield why the times may be wrong."""
    for arm, plain, profiled in (
        ("OLD", comparison.old, comparison.profiled_old),
        ("NEW", comparison.new, comparison.profiled_new),
    ):
        if profiled > MOST_OVERHEAD * plain:
            yield f"The profiler makes {arm} {profiled / plain:.1f} times as slow, so its times are only a hint."


def percent(share: float) -> str:
    return f"{share:.0%}".replace("-0%", "0%")


def signed(seconds: float) -> str:
    return ("-" if seconds < 0 else "+") + milliseconds(abs(seconds))


def growth(old: float, new: float) -> str:
    if new / old >= FACTOR:
        return change(new / old)
    return f"{abs(new / old - 1):.1%} {'slower' if new >= old else 'faster'}"
