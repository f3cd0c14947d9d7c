"""Every tool on the same launches: windows of the pools, with a slow-down multiplied onto what is called NEW."""

import math
from collections import defaultdict
from typing import NamedTuple

import numpy
import tools
from pool import Launch, Pool

from stele.gate import judgement
from stele.gate.judgement import LOOKS, SCREEN, Series
from stele.gate.metrics import METRICS

SLOWDOWNS = (0.0, 0.02, 0.03, 0.05, 0.10)
WINDOWS = 100
PAIRS = SCREEN + LOOKS[-1]
LAUNCHES = 3  # of a pair, the control among them


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
        for cell, launches in cells.items():
            for slowdown in SLOWDOWNS:
                place = (condition, cell, slowdown)
                found.update(gate(cells, place))
                found.update(others(launches, place, batches))
            print(f"replayed {condition} {cell}", flush=True)
        found.update(whole(cells, condition))
    return {**found, **asked_at_once(batches)}


def windows(count: int, length: int, seed: int = 0):
    """Beginnings of windows, and a source of chance for each."""
    draw = numpy.random.RandomState(seed)
    for _ in range(WINDOWS):
        yield draw.randint(0, max(count - length, 0) + 1), draw


def differences(launches: list[Launch], metric: str, start: int, draw, slowdown: float) -> list[float]:
    """Neighbours as pairs, in an order drawn at random."""
    pairs = zip(launches[start::2], launches[start + 1 :: 2], strict=False)
    signs = draw.choice([-1, 1], PAIRS)
    logs = [math.log(b.values[metric] / a.values[metric]) for a, b in pairs][:PAIRS]
    return [sign * value + math.log1p(slowdown) for sign, value in zip(signs, logs, strict=False)]


def gate(cells: Pool, place) -> dict[Key, Rate]:
    """The gate's words for the step of one cell, among all metrics of all cells: the others are equal to themselves."""
    _, slow, slowdown = place
    words, used = [], []
    count = min(len(launches) for launches in cells.values())
    for start, draw in windows(count, 2 * PAIRS):
        found = judgement.judge(series(cells, start, draw, slow, slowdown))[f"{slow} step"]
        words.append(found.word)
        pairs = found.pairs + (SCREEN if found.pairs > SCREEN else 0)
        used.append(LAUNCHES * pairs)
    mean = float(numpy.mean(used))
    return {
        Key(f"stele gate: {word}", *place): Rate(words.count(word), len(words), mean)
        for word in ("REGRESSED", "PASS", "INCONCLUSIVE")
    }


def series(cells: Pool, start: int, draw, slow: str, slowdown: float) -> dict[str, Series]:
    return {
        f"{cell} {metric.name}": Series(
            metric.margin,
            differences(
                launches, metric.name, start, draw, slowdown if (cell, metric.name) == (slow, "step") else 0.0
            ),
        )
        for cell, launches in cells.items()
        for metric in METRICS
        if metric.name in launches[0].values
    }


def whole(cells: Pool, condition: str) -> dict[Key, Rate]:
    """A gate over all cells and all metrics, from the release to itself: does anything raise an alarm?"""
    alarms = 0
    count = min(len(launches) for launches in cells.values())
    for start, draw in windows(count, 2 * PAIRS, seed=1):
        found = judgement.judge(series(cells, start, draw, "", 0.0))
        alarms += any(one.word == "REGRESSED" for one in found.values())
    return {Key("stele gate: whole", condition, "all", 0.0): Rate(alarms, WINDOWS, 0.0)}


def others(launches: list[Launch], place, batches) -> dict[Key, Rate]:
    slower = 1 + place[2]
    steps = [list(launch.steps) for launch in launches]
    found: dict[str, list[bool]] = defaultdict(list)
    for start, _ in windows(len(steps), 40):
        window = steps[start:]
        slow = [[slower * step for step in launch] for launch in window]
        # rounds alternate their order, as asv's do
        pairs = [(2 * i + i % 2, 2 * i + 1 - i % 2) for i in range(10)]
        old, new = [window[a] for a, _ in pairs], [slow[b] for _, b in pairs]
        found["asv continuous, defaults"].append(tools.asv_continuous(old[:2], new[:2], factor=1.1))
        found["asv continuous, 10 rounds, factor 1.03"].append(tools.asv_continuous(old, new, factor=1.03))
        found["pyperf compare_to"].append(tools.pyperf(window[:20], slow[20:40]))
        batches["pytest-benchmark, median:10%, back to back", "median:10%"].append(
            (place, (window[0], slow[1]))
        )
        batches["pytest-benchmark, median:5%, saved before", "median:5%"].append(
            (place, (window[0], slow[39]))
        )
        middles = [float(numpy.median(launch)) for launch in [*window[:20], *slow[20:40]]]
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
