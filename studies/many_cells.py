"""How many passes does a gate with many cells need, with a threshold for their number, and with e-BH?

    python -m studies many_cells

Simulates gates of 10, 100 and 1,000 benchmarks, of which none, one or a tenth takes 5 % longer in NEW. A launch varies
by 1 %. Cells that are decided are left out of the next pass, as in a gate. Writes docs/results/many-cells.md; nothing
is measured.
"""

import math
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy

from stele.gate import judgement
from stele.gate.judgement import Series
from stele.report import page

PAGE = Path(__file__).parents[1] / "docs" / "results" / "many-cells.md"
CELLS, GROWTH, NOISE, PASSES = (10, 100, 1000), 0.05, 0.01, 20
GATES = {10: 60, 100: 6, 1000: 1}  # simulated, by the number of cells
MARGIN, TOLERANCE = 0.05, 0.01


class Result(NamedTuple):
    """What one gate said."""

    first: int | None  # the pass after which the first slower cell is REGRESSED
    every: int | None  # and all of them are
    false: int  # cells that are REGRESSED and did not change


def simulate(cells: int, slower: int, random: numpy.random.RandomState, *, together: bool) -> Result:
    """Return the result of a gate; ``together``: with e-BH, else with a threshold for the number of cells."""
    passes: list[list[tuple[tuple[float, ...], tuple[float, ...]]]] = [[] for _ in range(cells)]
    still_open, regressed, first, every = set(range(cells)), set[int](), None, None
    for number in range(1, PASSES + 1):
        for cell in still_open:
            values = random.normal(0, NOISE, 4)
            values[2:] += math.log1p(GROWTH) if cell < slower else 0
            passes[cell].append((tuple(values[:2]), tuple(values[2:])))
        series = {cell: Series(MARGIN, TOLERANCE, NOISE, tuple(passes[cell])) for cell in range(cells)}
        if together:
            judged = judgement.judge(series, others=1)
        else:
            needed = judgement.certainty(cells + 1)
            judged = {cell: judgement.judge_metric(series[cell], needed) for cell in series}
        still_open = {cell for cell, result in judged.items() if result.open}
        regressed |= {cell for cell, result in judged.items() if result.status == "REGRESSED"}
        right = len(regressed & set(range(slower)))
        first = number if first is None and right else first
        every = number if every is None and slower and right == slower else every
        if not still_open:
            break
    return Result(first, every, len(regressed - set(range(slower))))


def row(cells: int, slower: int, *, together: bool) -> list[str]:
    random = numpy.random.RandomState(0)
    results = [simulate(cells, slower, random, together=together) for _ in range(GATES[cells])]
    firsts = [result.first or PASSES + 1 for result in results]
    everies = [result.every or PASSES + 1 for result in results]
    alarms = sum(result.false > 0 for result in results)
    middle = ["", ""] if not slower else [f"{median(firsts):g}", f"{median(everies):g}"]
    return [f"{cells:,}", str(slower), "e-BH" if together else "number", *middle, f"{alarms} of {len(results)}"]


def table() -> str:
    head = ["cells", "slower by 5 %", "rule", "passes to the first", "passes to all", "gates with a false alarm"]
    rows = [
        row(cells, slower, together=together)
        for cells in CELLS
        for slower in dict.fromkeys((0, 1, cells // 10))
        for together in (False, True)
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows))


if __name__ == "__main__":
    page.fill(PAGE, table())
