"""The old and the new rule of the gate, side by side, as Markdown."""

from collections.abc import Sequence

from pool import SUBJECTS, Pool, Subject
from replay import NEW_RULE, OLD_RULE, SLOWDOWNS, Key, Rate, Rates, numbers, pass_seconds
from scipy.stats import binomtest

from stele import statistics
from stele.gate.trial import ARMS
from stele.report import page
from stele.text import period

RULES = (NEW_RULE, OLD_RULE)
MARGIN = 0.05  # of the step
NAMES = {"study": "small cells", "gate": "cells at scale `gate`", "users": "models of users"}
HEAD = [f"+{100 * slowdown:g} %" if slowdown else "no change" for slowdown in SLOWDOWNS]


def tables(pools: dict[str, Pool], rates: Rates) -> list[str]:
    parts = [conditions_line(pools)]
    for condition, pool in pools.items():
        subjects = [subject for subject in SUBJECTS if subject in pool]
        missing = [str(subject) for subject in SUBJECTS if subject not in pool]
        parts.append(f"**{condition}**")
        if missing:
            parts.append(f"Not measured yet: {', '.join(missing)}.")
        if subjects:
            parts += [
                share_table(condition, pool, subjects, rates),
                time_table(condition, pool, subjects, rates),
            ]
            parts.append(alarm_table(condition, subjects, rates))
    return parts


def conditions_line(pools: dict[str, Pool]) -> str:
    results = [result for pool in pools.values() for passes in pool.values() for result in passes]
    if not results:
        return "No passes were recorded yet."
    runs = [run for result in results for run in result.runs.values()]
    facts = {(run.machine.processor, run.machine.processors, run.machine.system) for run in runs}
    machines = sorted(f"{processor}, {count} processors, {system}" for processor, count, system in facts)
    dates = sorted({run.when[:10] for run in runs})
    return (
        f"{len(results)} passes of four launches, {sum(result.took for result in results) / 60:.0f} minutes, on "
        f"{'; '.join(machines)}, {period(dates)}; one thread; the "
        "allocator of the C library as it is in plain, and the steady one elsewhere."
    )


def share_table(condition: str, pool: Pool, subjects: Sequence[Subject], rates: Rates) -> str:
    """Return how often each rule gives REGRESSED, and PASS at the margin."""
    head = [
        "cell",
        "passes",
        "spread",
        "rule",
        *(f"REGRESSED, {name}" for name in HEAD),
        "PASS at the margin",
    ]
    rows = []
    for subject in subjects:
        passes = numbers(pool[subject])["step"]
        spread = statistics.spread(list((passes - passes.mean(1, keepdims=True)).ravel())) * (4 / 3) ** 0.5
        for rule in RULES:
            of_rule = {slowdown: rates[key(rule, condition, subject, slowdown)] for slowdown in SLOWDOWNS}
            shares = [share(of_rule[slowdown], "REGRESSED") for slowdown in SLOWDOWNS]
            facts = [f"{subject}, {subject.scale}", str(len(passes)), f"{100 * spread:.1f} %", rule]
            rows.append([*facts, *shares, share(of_rule[MARGIN], "PASS")])
    return page.table(head, rows)


def time_table(condition: str, pool: Pool, subjects: Sequence[Subject], rates: Rates) -> str:
    """Return how many passes and minutes each rule takes for a verdict."""
    rows = []
    for subject in subjects:
        minutes = pass_seconds(pool[subject]) / 60
        for rule in RULES:
            of_rule = [rates[key(rule, condition, subject, slowdown)] for slowdown in SLOWDOWNS]
            passes = [rate.launches / len(ARMS) for rate in of_rule]
            times = [f"{count:.1f}, {count * minutes:.1f} min" for count in passes]
            rows.append([f"{subject}, {subject.scale}", f"{60 * minutes:.0f} s", rule, *times])
    return page.table(["cell", "a pass", "rule", *HEAD], rows)


def alarm_table(condition: str, subjects: Sequence[Subject], rates: Rates) -> str:
    """Return how often a whole gate without any change is REGRESSED."""
    alarms = {key: rate for key, rate in rates.items() if key.condition == condition and key.subject is None}
    scales = list(dict.fromkeys(key.scale for key in alarms))
    rows = [
        [
            f"{sum(subject.scale == scale for subject in subjects)} {NAMES[scale]}",
            *(share(alarms[Key(rule, condition, None, scale, 0.0)], "REGRESSED") for rule in RULES),
        ]
        for scale in scales
    ]
    return page.table(["false alarms of a whole gate", *RULES], rows)


def key(rule: str, condition: str, subject: Subject, slowdown: float) -> Key:
    return Key(rule, condition, subject, subject.scale, slowdown)


def share(rate: Rate, status: str) -> str:
    """``0.5 % [0.1 1.4]``, Wilson's interval."""
    low, high = binomtest(rate.statuses[status], rate.total).proportion_ci(method="wilson")
    return f"{100 * rate.statuses[status] / rate.total:.1f} % [{100 * low:.1f} {100 * high:.1f}]"
