"""The study as Markdown: rates with Wilson's intervals, and the verdicts on planted faults."""

import numpy
from live import FAULTS
from pool import Pool
from replay import GATE, SECONDS, SLOWDOWNS, Key, Rate, differences
from scipy.stats import binomtest

from stele.measuring import machine
from stele.report import page


def markdown(pools: dict[str, Pool], rates: dict[Key, Rate], faults: dict[str, dict]) -> str:
    tables = [condition_tables(condition, cells, rates) for condition, cells in pools.items()]
    return "\n\n".join([conditions_line(pools), *tables, false_alarm_line(rates), fault_table(faults)])


def conditions_line(pools: dict[str, Pool]) -> str:
    facts = machine.facts()
    counts = {len(pairs) for cells in pools.values() for pairs in cells.values()}
    took = sum(pair.took for cells in pools.values() for pairs in cells.values() for pair in pairs)
    last = max(run.when for cells in pools.values() for pairs in cells.values() for run in pairs[-1].runs)
    return (
        f"{2 * min(counts)} launches of each cell in each condition, in pairs, {took / 60:.0f} minutes, on "
        f"{facts['processor']}, {facts['processors']} processors, {facts['system']}, {last[:10]}; one thread, the "
        f"steady allocator. The gate has {SECONDS / 60:.0f} minutes for a cell, its control included."
    )


def condition_tables(condition: str, cells: Pool, rates: dict[Key, Rate]) -> str:
    """Return the tables of one condition: rates over all cells, by tool and slow-down; and the gate by cell."""
    tools = list(dict.fromkeys(key.tool for key in rates if key.condition == condition and key.cell != "all"))
    head = ["tool", "launches", *(f"+{slowdown:.0%}" if slowdown else "no change" for slowdown in SLOWDOWNS)]
    rows = []
    for tool in tools:
        pooled = [pooled_rate(rates, tool, condition, slowdown) for slowdown in SLOWDOWNS]
        rows.append([tool, f"{pooled[0].launches:.0f}", *map(format_rate, pooled)])
    return "\n\n".join([f"**{condition}**", page.table(head, rows), cell_table(condition, cells, rates)])


def cell_table(condition: str, cells: Pool, rates: dict[Key, Rate]) -> str:
    """Return for each cell how much the launches of a pair differ, the time for a verdict, and the gate's rates."""
    slowdowns = (f"REGRESSED at +{slowdown:.0%}" for slowdown in SLOWDOWNS)
    head = ["cell", "spread of pairs", "minutes a verdict", *slowdowns]
    rows = []
    for cell, pairs in cells.items():
        of_cell = [rates[Key(f"{GATE}: REGRESSED", condition, cell, slowdown)] for slowdown in SLOWDOWNS]
        launch = sum(pair.took for pair in pairs) / len(pairs) / 2
        minutes = [rate.launches * launch / 60 for rate in of_cell]
        spread = float(numpy.std(differences(pairs)["step"], ddof=1))
        span = f"{min(minutes):.1f} to {max(minutes):.1f}"
        rows.append([cell, f"{spread:.1%}", span, *map(format_rate, of_cell)])
    return page.table(head, rows)


def pooled_rate(rates: dict[Key, Rate], tool: str, condition: str, slowdown: float) -> Rate:
    pooled = [
        rate for key, rate in rates.items() if key[:2] == (tool, condition) and key.slowdown == slowdown
    ]
    launches = sum(rate.launches for rate in pooled) / len(pooled)
    return Rate(sum(rate.positives for rate in pooled), sum(rate.total for rate in pooled), launches)


def false_alarm_line(rates: dict[Key, Rate]) -> str:
    alarms = [
        f"{key.condition} {format_rate(rate)}"
        for key, rate in rates.items()
        if key.tool == f"{GATE}: all metrics"
    ]
    return (
        "A whole gate, all cells and all metrics, from a release to itself raises a false alarm: "
        + ", ".join(alarms)
        + "."
    )


def format_rate(rate: Rate) -> str:
    """``0.5 % [0.1 1.4]``, Wilson's interval."""
    low, high = binomtest(rate.positives, rate.total).proportion_ci(method="wilson")
    return f"{100 * rate.positives / rate.total:.1f} % [{100 * low:.1f} {100 * high:.1f}]"


def fault_table(faults: dict[str, dict]) -> str:
    head, rows = ["planted", "expected", "verdict", "in words", "seconds"], []
    for fault, result in faults.items():
        description, _, expected = FAULTS[fault]
        rows.append([description, expected, result["status"], result["message"], str(result["seconds"])])
    return f"**Planted into PyTorch, live**\n\n{page.table(head, rows)}"
