"""The study as Markdown: rates with Wilson's intervals, what was planted and what came out."""

import numpy
from live import FAULTS
from pool import Pool
from replay import GATE, SECONDS, SLOWDOWNS, Key, Rate, differences
from scipy.stats import binomtest

from stele.measuring import machine
from stele.report import page


def markdown(pools: dict[str, Pool], rates: dict[Key, Rate], faults: dict[str, dict]) -> str:
    parts = [under_what(pools), *(conditioned(condition, cells, rates) for condition, cells in pools.items())]
    return "\n\n".join([*parts, whole(rates), planted(faults)])


def under_what(pools: dict[str, Pool]) -> str:
    facts = machine.facts()
    counts = {len(pairs) for cells in pools.values() for pairs in cells.values()}
    took = sum(pair.took for cells in pools.values() for pairs in cells.values() for pair in pairs)
    last = max(run.when for cells in pools.values() for pairs in cells.values() for run in pairs[-1].runs)
    return (
        f"{2 * min(counts)} launches of each cell in each condition, in pairs, {took / 60:.0f} minutes, on "
        f"{facts['processor']}, {facts['processors']} processors, {facts['system']}, {last[:10]}; one thread, the "
        f"steady allocator. The gate has {SECONDS / 60:.0f} minutes for a cell, its control included."
    )


def conditioned(condition: str, cells: Pool, rates: dict[Key, Rate]) -> str:
    """A table for each condition: rates over all cells, by tool and slow-down."""
    tools = list(dict.fromkeys(key.tool for key in rates if key.condition == condition and key.cell != "all"))
    head = ["tool", "launches", *(f"+{slowdown:.0%}" if slowdown else "no change" for slowdown in SLOWDOWNS)]
    rows = []
    for tool in tools:
        found = [pooled(rates, tool, condition, slowdown) for slowdown in SLOWDOWNS]
        rows.append([tool, f"{found[0].launches:.0f}", *map(shown, found)])
    return "\n\n".join([f"**{condition}**", page.table(head, rows), each(condition, cells, rates)])


def each(condition: str, cells: Pool, rates: dict[Key, Rate]) -> str:
    """The gate cell by cell: by how much the two of a pair differ, how long a verdict takes, how often it is red."""
    slowdowns = (f"REGRESSED at +{slowdown:.0%}" for slowdown in SLOWDOWNS)
    head = ["cell", "spread of pairs", "minutes a verdict", *slowdowns]
    rows = []
    for cell, pairs in cells.items():
        found = [rates[Key(f"{GATE}: REGRESSED", condition, cell, slowdown)] for slowdown in SLOWDOWNS]
        launch = sum(pair.took for pair in pairs) / len(pairs) / 2
        minutes = [rate.launches * launch / 60 for rate in found]
        spread = float(numpy.std(differences(pairs)["step"], ddof=1))
        rows.append([cell, f"{spread:.1%}", f"{min(minutes):.1f} to {max(minutes):.1f}", *map(shown, found)])
    return page.table(head, rows)


def pooled(rates: dict[Key, Rate], tool: str, condition: str, slowdown: float) -> Rate:
    of = [rate for key, rate in rates.items() if key[:2] == (tool, condition) and key.slowdown == slowdown]
    launches = sum(rate.launches for rate in of) / len(of)
    return Rate(sum(rate.found for rate in of), sum(rate.of for rate in of), launches)


def whole(rates: dict[Key, Rate]) -> str:
    said = [f"{key.condition} {shown(rate)}" for key, rate in rates.items() if key.tool == f"{GATE}: whole"]
    return (
        "A whole gate, all cells and all metrics, from a release to itself raises a false alarm: "
        + ", ".join(said)
        + "."
    )


def shown(rate: Rate) -> str:
    """``0.5 % [0.1 1.4]``, Wilson's interval."""
    low, high = binomtest(rate.found, rate.of).proportion_ci(method="wilson")
    return f"{100 * rate.found / rate.of:.1f} % [{100 * low:.1f} {100 * high:.1f}]"


def planted(faults: dict[str, dict]) -> str:
    head, rows = ["planted", "expected", "verdict", "in words", "seconds"], []
    for fault, found in faults.items():
        what, _, expected = FAULTS[fault]
        rows.append([what, expected, found["status"], found["message"], str(found["seconds"])])
    return f"**Planted into PyTorch, live**\n\n{page.table(head, rows)}"
