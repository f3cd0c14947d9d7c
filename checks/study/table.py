"""The study as Markdown: the live gates, both rules of the gate, other tools, and simulated rules."""

from collections import Counter
from collections.abc import Sequence

import live
import live_table
import numpy
import rule_tables
import simulate
import steal
from pool import SMALL, Pool
from replay import NEW_RULE, OLD_RULE, SLOWDOWNS, UNPAIRED, Rate, Rates
from rule_tables import HEAD, share

from stele.report import page


def markdown(
    pools: dict[str, Pool],
    rates: Rates,
    stolen: dict[steal.Key, steal.Rate],
    simulated: Sequence[simulate.Result],
    runs: live.Results,
) -> str:
    sections = {
        "Live": live_table.markdown(runs),
        "The old and the new rule": "\n\n".join(rule_tables.tables(pools, rates)),
        "Other tools": "\n\n".join(tool_tables(pools, rates)) or "Not measured yet.",
        "Stolen time": steal.markdown(stolen),
        "Simulated rules": simulate.markdown(simulated),
    }
    return "\n\n".join(f"## {title}\n{text}" for title, text in sections.items())


def tool_tables(pools: dict[str, Pool], rates: Rates) -> list[str]:
    """Return the rates of all tools over all small cells, by condition."""
    parts = []
    for condition in pools:
        of_condition = [key for key in rates if key.condition == condition and key.subject in SMALL]
        tools = list(dict.fromkeys(key.tool for key in of_condition))
        rows = [row for tool in tools for row in tool_rows(tool, condition, rates)]
        if rows:
            parts += [f"**{condition}**", page.table(["tool", "launches", *HEAD], rows)]
    return parts


def tool_rows(tool: str, condition: str, rates: Rates) -> list[list[str]]:
    pooled = [pooled_rate(rates, tool, condition, slowdown) for slowdown in SLOWDOWNS]
    if tool not in (NEW_RULE, OLD_RULE, UNPAIRED):
        return [[tool, f"{pooled[0].launches:.0f}", *(share(rate, "REGRESSED") for rate in pooled)]]
    return [
        [
            f"stele gate, {tool}: {status}",
            f"{pooled[0].launches:.0f}",
            *(share(rate, status) for rate in pooled),
        ]
        for status in ("REGRESSED", "PASS")
    ]


def pooled_rate(rates: Rates, tool: str, condition: str, slowdown: float) -> Rate:
    pooled = [
        rate
        for key, rate in rates.items()
        if (key.tool, key.condition, key.slowdown) == (tool, condition, slowdown) and key.subject in SMALL
    ]
    statuses = sum((rate.statuses for rate in pooled), start=Counter[str]())
    launches = float(numpy.mean([rate.launches for rate in pooled]))
    return Rate(statuses, sum(rate.total for rate in pooled), launches)
