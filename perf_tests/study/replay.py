"""Every tool on the same launches: windows of the pools, with a slow-down multiplied onto what is called NEW."""

import functools
import math
from collections import defaultdict
from typing import NamedTuple

import numpy
import tools
from pool import Pair, Pool

from stele.gate import judgement
from stele.gate.calibration import CONTROLLED
from stele.gate.judgement import LOOKS, SCREEN, Series
from stele.gate.metrics import METRICS, Metric

SLOWDOWNS = (0.0, 0.02, 0.03, 0.05, 0.10)
WINDOWS = 200
FEWER = 100  # for tools that take longer
PAIRS = SCREEN + LOOKS[-1]
SECONDS = 180.0  # that a verdict on one cell may take
GATE = "stele gate"
UNMATCHED = "pairs in turns, but tenth percentiles compared"


class Rate(NamedTuple):
    found: int
    of: int
    launches: float  # that a verdict takes, on average


class Key(NamedTuple):
    tool: str
    condition: str
    cell: str
    slowdown: float


def rates(pools: dict[str, Pool]) -> dict[Key, Rate]:
    found = {}
    batches = defaultdict(list)  # what is cheaper to ask all at once
    for condition, cells in pools.items():
        measured = {cell: differences(pairs) for cell, pairs in cells.items()}
        plain = {cell: differences(pairs, unmatched) for cell, pairs in cells.items()}
        for cell, pairs in cells.items():
            for slowdown in SLOWDOWNS:
                place = (condition, cell, slowdown)
                found.update(gate(GATE, measured, affordable(pairs), place))
                found.update(gate(UNMATCHED, plain, affordable(pairs), place))
                found.update(others(pairs, place, batches))
            print(f"replayed {condition} {cell}", flush=True)
        found.update(whole(measured, condition))
    return {**found, **asked_at_once(batches)}


def affordable(pairs: list[Pair]) -> int:
    """How many pairs there is time for."""
    return min(int(SECONDS / (CONTROLLED * float(numpy.mean([pair.took for pair in pairs])))), PAIRS)


Differences = dict[str, list[float]]  # by metric, of each pair


def differences(pairs: list[Pair], between=Metric.difference) -> Differences:
    found = {metric.name: [between(metric, *pair.runs) for pair in pairs] for metric in METRICS}
    return {name: values for name, values in found.items() if None not in values}


def unmatched(metric: Metric, old, new) -> float | None:
    return metric._replace(in_turns=None).difference(old, new)


def windows(count: int, length: int, *, many: int = WINDOWS, seed: int = 0):
    """Beginnings of windows, and a source of chance for each."""
    draw = numpy.random.RandomState(seed)
    for _ in range(many):
        yield draw.randint(0, max(count - length, 0) + 1), draw


def gate(tool: str, cells: dict[str, Differences], count: int, place) -> dict[Key, Rate]:
    """The words for the step of one cell, among all metrics of all cells: the others are equal to themselves."""
    _, slow, slowdown = place
    words, used = [], []
    for start, draw in windows(shortest(cells), count):
        found = judgement.judge(series(cells, start, count, draw, slow, slowdown))[f"{slow} step"]
        words.append(found.status)
        pairs = found.pairs + (SCREEN if found.pairs > SCREEN else 0)
        used.append(2 * CONTROLLED * pairs)
    mean = float(numpy.mean(used))
    return {
        Key(f"{tool}: {status}", *place): Rate(words.count(status), len(words), mean)
        for status in ("REGRESSED", "PASS", "INCONCLUSIVE")
    }


def shortest(cells: dict[str, Differences]) -> int:
    return min(len(values) for found in cells.values() for values in found.values())


def series(cells: dict[str, Differences], start: int, count: int, draw, slow: str, slowdown: float):
    """The differences of a window, the order in each pair drawn anew."""
    margins = {metric.name: metric.margin for metric in METRICS}
    found = {}
    for cell, metrics in cells.items():
        for name, values in metrics.items():
            signed = draw.choice([-1, 1], count) * numpy.resize(values[start:], count)
            shift = math.log1p(slowdown) if (cell, name) == (slow, "step") else 0.0
            found[f"{cell} {name}"] = Series(margins[name], list(signed + shift))
    return found


def whole(cells: dict[str, Differences], condition: str) -> dict[Key, Rate]:
    """A gate over all cells and all metrics, from the release to itself: does anything raise an alarm?"""
    alarms = 0
    for start, draw in windows(shortest(cells), PAIRS, seed=1):
        found = judgement.judge(series(cells, start, PAIRS, draw, "", 0.0))
        alarms += any(one.status == "REGRESSED" for one in found.values())
    return {Key(f"{GATE}: whole", condition, "all", 0.0): Rate(alarms, WINDOWS, 0.0)}


@functools.cache
def middle(steps: tuple[float, ...]) -> float:
    return float(numpy.median(steps))


def others(pairs: list[Pair], place, batches) -> dict[Key, Rate]:
    slower = 1 + place[2]
    launches = [run.counted for pair in pairs for run in pair.runs]
    found: dict[str, list[bool]] = defaultdict(list)
    for start, _ in windows(len(launches), 40, many=FEWER):
        window = launches[start : start + 40]
        slow = [[slower * step for step in launch] for launch in window]
        # rounds alternate their order, as asv's do
        rounds = [(2 * i + i % 2, 2 * i + 1 - i % 2) for i in range(10)]
        old, new = [window[a] for a, _ in rounds], [slow[b] for _, b in rounds]
        found["asv continuous, defaults"].append(tools.asv_continuous(old[:2], new[:2], factor=1.1))
        found["asv continuous, 10 rounds, factor 1.03"].append(tools.asv_continuous(old, new, factor=1.03))
        found["pyperf compare_to"].append(tools.pyperf(window[:20], slow[20:]))
        batches["pytest-benchmark, median:10%, back to back", "median:10%"].append(
            (place, (window[0], slow[1]))
        )
        batches["pytest-benchmark, median:5%, saved before", "median:5%"].append(
            (place, (window[0], slow[39]))
        )
        middles = [*map(middle, window[:20]), *(slower * middle(launch) for launch in window[20:])]
        batches["Otava, 20 launches each", None].append((place, middles))
    used = {
        "asv continuous, defaults": 4,
        "asv continuous, 10 rounds, factor 1.03": 20,
        "pyperf compare_to": 40,
    }
    return {Key(tool, *place): Rate(sum(flags), len(flags), used[tool]) for tool, flags in found.items()}


def asked_at_once(batches) -> dict[Key, Rate]:
    found: dict[Key, list[bool]] = defaultdict(list)
    for (tool, threshold), asked in batches.items():
        questions = [question for _, question in asked]
        flags = (
            tools.otava(questions, 20) if threshold is None else tools.pytest_benchmark(questions, threshold)
        )
        for (place, _), flag in zip(asked, flags, strict=True):
            found[Key(tool, *place)].append(flag)
        print(f"replayed {tool}", flush=True)
    return {
        key: Rate(sum(flags), len(flags), 40 if "Otava" in key.tool else 2) for key, flags in found.items()
    }
