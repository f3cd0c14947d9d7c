"""Why a step takes longer: time by operation, as ``stele explain --json`` and ``stele gate --explain`` wrote it."""

from collections.abc import Iterator, Sequence

from stele.explain import text
from stele.explain.comparison import Comparison, Operation
from stele.explain.document import ExplanationFile
from stele.report import charts
from stele.report.content import Chart, Figure, Section, Table, Value
from stele.report.sections.launches import anchor

HEAD = ("operation", "OLD, ms", "NEW, ms", "change, ms", "share, %", "OLD calls", "NEW calls")
TEXT = (
    "Milliseconds of each operation in one step under the profiler of the framework, without the operations that it "
    "calls. The largest contribution to the change is at the top. Times under a profiler never enter a verdict."
)
# bars of a chart
MOST = 10


def section(explanations: Sequence[ExplanationFile]) -> Section | None:
    figures = [figure for document in explanations for figure in figures_of(document)]
    return Section("explanation", "Time by operation", TEXT, figures) if figures else None


def figures_of(document: ExplanationFile) -> Iterator[Figure]:
    compared = f"{document.old} to {document.new}"
    for cell, comparison in document.cells.items():
        title = f"{cell}: {compared}, {text.growth(comparison.old, comparison.new)}"
        table = Table(anchor(f"operations {cell}"), title, HEAD, list(rows(comparison)))
        spec = charts.contributions(HEAD, name=0, change=3, most=MOST)
        yield Figure(table, [Chart(f"{cell}: change by operation", spec, sentence(cell, comparison))])
    if document.differs:
        differences = [line.partition(": ")[::2] for line in document.differs]
        yield Figure(
            Table("explained-differences", f"What else differs, {compared}", ("kind", "difference"), differences)
        )


def rows(comparison: Comparison) -> Iterator[list[Value]]:
    for operation in comparison.operations:
        yield row(comparison, operation)
    yield ["in no operation", None, None, 1e3 * comparison.rest, of(comparison, comparison.rest), None, None]


def row(comparison: Comparison, operation: Operation) -> list[Value]:
    times = [1e3 * seconds if seconds else None for seconds in (operation.old, operation.new)]
    calls = [count or None for count in (operation.old_calls, operation.new_calls)]
    return [operation.name, *times, 1e3 * operation.change, of(comparison, operation.change), *calls]


def of(comparison: Comparison, change: float) -> float | None:
    """Return the part of the change in percent; None if the steps take about equally long."""
    share = comparison.share(change)
    return None if share is None else 100 * share


def sentence(cell: str, comparison: Comparison) -> str:
    """Return which operation contributes most, for a cell such as "cnn train"."""
    share = comparison.share(comparison.operations[0].change) if comparison.operations else None
    if share is None:
        return f"The steps of {cell} take about equally long under the profilers, so the changes may be noise."
    first = comparison.operations[0]
    return (
        f"In {cell}, the operation {text.shortened(first.name)} changed by {text.signed(first.change)} ms a step: "
        f"{text.percent(share)} of the change."
    )
