"""Decision rules on simulated launches: which one is right as often with the fewest launches?"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy
from rules import RULES, Array

from stele.report import page

TRIALS = 400
MOST = 120  # launches that a rule may use
SPREADS = (0.008, 0.016)  # of a launch
SLOWDOWNS = (0.0, 0.015, 0.03, 0.05, 0.10)

Draw = numpy.random.Generator


def drift(draw: Draw, count: int) -> Array:
    """Return normal noise on a random walk."""
    return draw.normal(size=count) + numpy.cumsum(draw.normal(scale=0.5, size=count))


def outliers(draw: Draw, count: int) -> Array:
    """Return normal noise in which one launch of ten has six times the spread."""
    return draw.normal(size=count) * numpy.where(draw.random(count) < 0.1, 6, 1)


NOISES: dict[str, Callable[[Draw, int], Array]] = {
    "normal": lambda draw, count: draw.normal(size=count),
    # 0.83: then half of the launches are as close to the middle as those of normal noise
    "t, 2 degrees of freedom": lambda draw, count: 0.83 * draw.standard_t(2, count),
    "two modes": lambda draw, count: 0.9 * draw.choice([-1, 1], count) + draw.normal(scale=0.44, size=count),
    "drift": drift,
    "one outlier in ten": outliers,
}


def launches(noise: str, spread: float, slowdown: float, arms: int, new: int, draw: Draw) -> Array:
    """Return logarithms, shape (passes, arms). The last ``new`` arms of each pass are NEW's; their order is random."""
    values = spread * NOISES[noise](draw, MOST).reshape(-1, arms)
    values = draw.permuted(values, axis=1)
    values[:, arms - new :] += numpy.log1p(slowdown)
    return values


class Result(NamedTuple):
    noise: str
    spread: float
    rule: str
    regressed: tuple[float, ...]  # shares, by SLOWDOWNS
    launches: tuple[float, ...]  # for a verdict, on average


def results(trials: int = TRIALS) -> list[Result]:
    """Return what each rule does with each noise."""
    rows = []
    for noise in NOISES:
        for spread in SPREADS:
            rows += [simulate(noise, spread, rule, trials) for rule in RULES]
        print(f"simulated {noise}", flush=True)
    return rows


def simulate(noise: str, spread: float, name: str, trials: int) -> Result:
    rule, regressed, used = RULES[name], [], []
    for slowdown in SLOWDOWNS:
        draw = numpy.random.default_rng(0)
        outcomes = [rule.judge(launches(noise, spread, slowdown, rule.arms, rule.new, draw)) for _ in range(trials)]
        regressed.append(sum(outcome.status == "REGRESSED" for outcome in outcomes) / trials)
        used.append(sum(outcome.launches for outcome in outcomes) / trials)
    return Result(noise, spread, name, tuple(regressed), tuple(used))


def markdown(rows: Sequence[Result]) -> str:
    """Return the table of what ``results`` gave: the share of REGRESSED, and the launches."""
    head = ["noise", "spread", "rule", *(f"+{100 * slowdown:g} %" for slowdown in SLOWDOWNS)]
    body = []
    for row in rows:
        cells = zip(row.regressed, row.launches, strict=True)
        shares = [f"{100 * share:.1f} %, {count:.0f}" for share, count in cells]
        body.append([row.noise, f"{100 * row.spread:.1f} %", row.rule, *shares])
    return page.table(head, body)
