"""Why a step takes longer: time by operation, as ``stele explain --json`` and ``stele gate --explain`` wrote it."""

from collections.abc import Iterator, Sequence

from stele.explain import text
from stele.explain.comparison import Comparison, Operation
from stele.explain.document import Document
from stele.report import charts
from stele.report.content import Cell, Chart, Figure, Section, Table
from stele.report.sections.launches import anchor

HEAD = ("operation", "OLD, ms", "NEW, ms", "change, ms", "share, %", "OLD calls", "NEW calls")
TEXT = (
    "Milliseconds of each operation in one step under the profiler of the framework, without the operations that it "
    "calls. The largest contribution to the change is at the top. Times under a profiler never enter a verdict."
)
MOST = 10  # bars of a chart


def section(explanations: Sequence[Document]) -> Section | None:
    figures = [one for document in explanations for one in figures_of(document)]
    return Section("explanation", "Time by operation", TEXT, figures) if figures else None


def figures_of(document: Document) -> Iterator[Figure]:
    compared = f"{document.old} to {document.new}"
    for cell, found in document.cells.items():
        title = f"{cell}: {compared}, {text.growth(found.old, found.new)}"
        table = Table(anchor(f"operations {cell}"), title, HEAD, list(rows(found)))
        spec = charts.contributions(HEAD, name=0, change=3, most=MOST)
        yield Figure(table, [Chart(f"{cell}: change by operation", spec, sentence(cell, found))])
    if document.differs:
        differences = [line.partition(": ")[::2] for line in document.differs]
        yield Figure(
            Table(
                "explained-differences", f"What else differs, {compared}", ("kind", "difference"), differences
            )
        )


def rows(found: Comparison) -> Iterator[list[Cell]]:
    for one in found.operations:
        yield row(found, one)
    yield ["in no operation", None, None, 1e3 * found.rest, of(found, found.rest), None, None]


def row(found: Comparison, one: Operation) -> list[Cell]:
    times = [1e3 * seconds if seconds else None for seconds in (one.old, one.new)]
    calls = [count or None for count in (one.old_calls, one.new_calls)]
    return [one.name, *times, 1e3 * one.change, of(found, one.change), *calls]


def of(found: Comparison, change: float) -> float | None:
    """Return the part of the change in percent; None if the steps take about equally long."""
    share = found.share(change)
    return None if share is None else 100 * share


def sentence(cell: str, found: Comparison) -> str:
    """Return which operation contributes most, for a cell such as "cnn train"."""
    share = found.share(found.operations[0].change) if found.operations else None
    if share is None:
        return (
            f"The steps of {cell} take about equally long under the profilers, so the changes may be noise."
        )
    first = found.operations[0]
    return (
        f"In {cell}, the operation {text.shortened(first.name)} changed by {text.signed(first.change)} ms a step: "
        f"{text.percent(share)} of the change."
    )
