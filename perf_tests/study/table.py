"""The study as Markdown: rates with Wilson's intervals, what was planted and what came out."""

from live import FAULTS
from pool import Pool
from replay import SLOWDOWNS, Key, Rate
from scipy.stats import binomtest

from stele import machine


def markdown(pools: dict[str, Pool], rates: dict[Key, Rate], faults: dict[str, dict]) -> str:
    parts = [under_what(pools), *(conditioned(condition, cells, rates) for condition, cells in pools.items())]
    return "\n\n".join([*parts, whole(rates), planted(faults)])


def under_what(pools: dict[str, Pool]) -> str:
    facts = machine.facts()
    counts = {len(launches) for cells in pools.values() for launches in cells.values()}
    took = sum(launch.took for cells in pools.values() for launches in cells.values() for launch in launches)
    return (
        f"{min(counts)} launches of each cell in each condition, {took / 60:.0f} minutes, on {facts['processor']}, "
        f"{facts['processors']} processors, {facts['system']}; one thread, the steady allocator."
    )


def conditioned(condition: str, cells: Pool, rates: dict[Key, Rate]) -> str:
    """A table for each condition: rates over all cells, by tool and slow-down."""
    tools = list(dict.fromkeys(key.tool for key in rates if key.condition == condition and key.cell != "all"))
    head = ["tool", "launches", *(f"+{slowdown:.0%}" if slowdown else "no change" for slowdown in SLOWDOWNS)]
    rows = [head, ["---"] * len(head)]
    for tool in tools:
        found = [pooled(rates, tool, condition, slowdown) for slowdown in SLOWDOWNS]
        rows.append([tool, f"{found[0].launches:.0f}", *map(shown, found)])
    return "\n".join([f"**{condition}**", "", *lines(rows), "", *each(condition, cells, rates)])


def each(condition: str, cells: Pool, rates: dict[Key, Rate]) -> list[str]:
    """The gate cell by cell, with how long it takes."""
    head = ["cell", "minutes a verdict", *(f"REGRESSED at +{slowdown:.0%}" for slowdown in SLOWDOWNS)]
    rows = [head, ["---"] * len(head)]
    for cell, launches in cells.items():
        found = [rates[Key("stele gate: REGRESSED", condition, cell, slowdown)] for slowdown in SLOWDOWNS]
        one = sum(launch.took for launch in launches) / len(launches)
        minutes = (
            f"{found[0].launches * one / 60:.1f} to {max(rate.launches for rate in found) * one / 60:.1f}"
        )
        rows.append([cell, minutes, *map(shown, found)])
    return lines(rows)


def pooled(rates: dict[Key, Rate], tool: str, condition: str, slowdown: float) -> Rate:
    of = [rate for key, rate in rates.items() if key[:2] == (tool, condition) and key.slowdown == slowdown]
    launches = sum(rate.launches for rate in of) / len(of)
    return Rate(sum(rate.found for rate in of), sum(rate.of for rate in of), launches)


def whole(rates: dict[Key, Rate]) -> str:
    said = [
        f"{key.condition} {shown(rate)}" for key, rate in rates.items() if key.tool == "stele gate: whole"
    ]
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
    rows = [["planted", "expected", "verdict", "in words", "seconds"], ["---"] * 5]
    for fault, found in faults.items():
        what, _, expected = FAULTS[fault]
        rows.append([what, expected, found["word"], found["sentence"], str(found["seconds"])])
    return "\n".join(["**Planted into PyTorch, live**", "", *lines(rows)])


def lines(rows: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(row) + " |" for row in rows]
