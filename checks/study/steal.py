"""Time that a hypervisor takes: does a gate become wrong, and does it help to leave out the passes that were hit?

Bursts are added to the recorded steps of passes on a quiet machine, where they would fall: the steps of a pass take
turns, so a burst hits the launch whose turn it is. Their lengths are exponential, and so are the times between them.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy
from pool import LARGE, PLAIN, SMALL, Pool
from rules import TESTS, Array

from stele.gate import judgement
from stele.gate.judgement import Series
from stele.gate.metrics import METRICS, medians_of_turns, turns_of
from stele.report import page

STEP = METRICS[0]
SHARES = (0.0, 0.02, 0.05, 0.12, 0.30)  # of the time
BURSTS = (0.005, 0.1)  # mean seconds of a burst
SLOWDOWNS = (0.0, STEP.margin, 0.10)
MOST = 0.05  # share of the time above which a pass was left out
WINDOWS = 50  # for each cell and slow-down
PASSES = 40  # that are measured at most
HEAD = (
    "stolen",
    "mean burst",
    "rule",
    "unchanged: REGRESSED",
    "unchanged: PASS",
    "passes until then",
    "5 % slower: PASS",
    "10 % slower: REGRESSED",
    "passes until then",
)
EXCLUDE, COUNT = "passes above 5 % left out", "all passes count"


class Key(NamedTuple):
    rule: str
    share: float
    burst: float
    slowdown: float


class Rate(NamedTuple):
    """How often each status was given, and the mean number of passes until then."""

    statuses: Counter[str]
    passes: float


def rates(pools: dict[str, Pool]) -> dict[Key, Rate]:
    """Return the statuses of both rules, over all cells of the tasks on a quiet machine."""
    cells = [
        [turns_of(list(result.runs.values())) for result in results]
        for condition in ("quiet", PLAIN)
        for subject, results in pools[condition].items()
        if subject in (*SMALL, *LARGE)
    ]
    found = {}
    for share in SHARES:
        for burst in BURSTS if share else BURSTS[:1]:
            for slowdown in SLOWDOWNS:
                draw = numpy.random.default_rng(0)
                outcomes = [judge(passes, share, burst, slowdown, draw) for passes in cells for _ in range(WINDOWS)]
                for rule in (EXCLUDE, COUNT):
                    statuses = Counter(of_rules[rule][0] for of_rules in outcomes)
                    mean = float(numpy.mean([of_rules[rule][1] for of_rules in outcomes]))
                    found[Key(rule, share, burst, slowdown)] = Rate(statuses, mean)
                print(f"steal {share:.0%} in bursts of {burst:g} s, {slowdown:.0%} slower", flush=True)
    return found


def judge(
    passes: Sequence[Array], share: float, burst: float, slowdown: float, draw: numpy.random.Generator
) -> dict[str, tuple[str, int]]:
    """Return the status of each rule and the number of passes until then, for passes that are drawn at random."""
    rows, shares = [], []
    for place in draw.integers(len(passes), size=PASSES):
        seconds = passes[place][draw.permutation(4)]
        slower = seconds * numpy.array([1.0, 1.0, 1 + slowdown, 1 + slowdown])[:, None]
        hit = with_bursts(slower, share, burst, draw)
        medians = medians_of_turns(hit)
        rows.append((tuple(medians[:2]), tuple(medians[2:])))
        shares.append(1 - slower.sum() / hit.sum())
    kept = [place for place, stolen in enumerate(shares) if stolen <= MOST]
    return {EXCLUDE: outcome(rows, kept), COUNT: outcome(rows, range(PASSES))}


def with_bursts(seconds: Array, share: float, burst: float, draw: numpy.random.Generator) -> Array:
    """Return the steps of a pass, shape (launches, turns), with the bursts that hit them, in the order of the turns."""
    ends = seconds.T.ravel().cumsum()
    count = draw.poisson(ends[-1] * share / (1 - share) / burst)
    steps = numpy.searchsorted(ends, draw.uniform(0, ends[-1], count))
    added = numpy.bincount(steps, weights=draw.exponential(burst, count), minlength=seconds.size)
    return seconds + added.reshape(seconds.T.shape).T


def outcome(rows: Sequence[judgement.statistics.Pass], kept: Sequence[int]) -> tuple[str, int]:
    """Return the status, and after how many of the measured passes it was given. Only those that are kept count."""
    passes = tuple(rows[place] for place in kept)
    result = judgement.replay(Series(STEP.margin, STEP.tolerance, STEP.noise, passes), tests=TESTS)
    decided = result.status != "INCONCLUSIVE" and not result.open
    return (result.status, kept[result.passes - 1] + 1) if decided else ("INCONCLUSIVE", PASSES)


def markdown(found: dict[Key, Rate]) -> str:
    """Return a table of both rules, with a row for each share of time and length of a burst."""
    rows = []
    for share, burst, rule in dict.fromkeys((key.share, key.burst, key.rule) for key in found):
        of_slowdowns = [found[Key(rule, share, burst, slowdown)] for slowdown in SLOWDOWNS]
        totals = [rate.statuses.total() for rate in of_slowdowns]
        unchanged, margin, slower = of_slowdowns
        cells = [
            f"{unchanged.statuses['REGRESSED'] / totals[0]:.1%}",
            f"{unchanged.statuses['PASS'] / totals[0]:.0%}",
            f"{unchanged.passes:.1f}",
            f"{margin.statuses['PASS'] / totals[1]:.1%}",
            f"{slower.statuses['REGRESSED'] / totals[2]:.0%}",
            f"{slower.passes:.1f}",
        ]
        rows.append([f"{share:.0%}", f"{1000 * burst:.0f} ms" if share else "", rule, *cells])
    return page.table(HEAD, rows)
