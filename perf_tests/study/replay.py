"""Every tool on the same launches: windows of the pools, with a slow-down multiplied onto the launches called NEW."""

import functools
import math
from collections import defaultdict
from typing import NamedTuple

import numpy
import tools
from pool import Pair, Pool

from stele.gate import judgement
from stele.gate.calibration import CONTROL_COST
from stele.gate.judgement import LOOKS, SCREEN, Series
from stele.gate.metrics import METRICS, Metric

SLOWDOWNS = (0.0, 0.02, 0.03, 0.05, 0.10)
WINDOWS = 200
WINDOWS_OF_SLOW_TOOLS = 100
PAIRS = SCREEN + LOOKS[-1]
SECONDS = 180.0  # the budget for a verdict on one cell
GATE = "stele gate"
UNPAIRED_STEPS = "pairs in turns, but tenth percentiles compared"


class Rate(NamedTuple):
    positives: int
    total: int
    launches: float  # for a verdict, on average


class Key(NamedTuple):
    tool: str
    condition: str
    cell: str
    slowdown: float


def rates(pools: dict[str, Pool]) -> dict[Key, Rate]:
    """Return how often each tool reports a slow-down, by condition, cell and slow-down."""
    result = {}
    batches = defaultdict(list)  # for tools that are cheaper to call once for all windows
    for condition, cells in pools.items():
        paired = {cell: differences(pairs) for cell, pairs in cells.items()}
        unpaired = {cell: differences(pairs, compare_values) for cell, pairs in cells.items()}
        for cell, pairs in cells.items():
            for slowdown in SLOWDOWNS:
                place = (condition, cell, slowdown)
                result.update(gate_rates(GATE, paired, affordable(pairs), place))
                result.update(gate_rates(UNPAIRED_STEPS, unpaired, affordable(pairs), place))
                result.update(tool_rates(pairs, place, batches))
            print(f"replayed {condition} {cell}", flush=True)
        result.update(false_alarm_rate(paired, condition))
    return {**result, **batch_rates(batches)}


def affordable(pairs: list[Pair]) -> int:
    """Return how many pairs the budget of a cell pays for."""
    return min(int(SECONDS / (CONTROL_COST * float(numpy.mean([pair.took for pair in pairs])))), PAIRS)


Differences = dict[str, list[float]]  # by metric, of each pair


def differences(pairs: list[Pair], compare=Metric.difference) -> Differences:
    by_metric = {metric.name: [compare(metric, *pair.runs) for pair in pairs] for metric in METRICS}
    return {name: values for name, values in by_metric.items() if None not in values}


def compare_values(metric: Metric, old, new) -> float | None:
    """Return the difference of the metric's values, without pairing steps."""
    return metric._replace(paired=None).difference(old, new)


def windows(count: int, length: int, *, many: int = WINDOWS, seed: int = 0):
    """Yield the start of each window, and a random generator."""
    draw = numpy.random.RandomState(seed)
    for _ in range(many):
        yield draw.randint(0, max(count - length, 0) + 1), draw


def gate_rates(tool: str, cells: dict[str, Differences], count: int, place) -> dict[Key, Rate]:
    """Return the rate of each status for the step of one cell, while all other metrics of all cells are unchanged."""
    _, slow, slowdown = place
    statuses, used = [], []
    for start, draw in windows(shortest(cells), count):
        result = judgement.judge(make_series(cells, start, count, draw, slow, slowdown))[f"{slow} step"]
        statuses.append(result.status)
        pairs = result.pairs + (SCREEN if result.pairs > SCREEN else 0)
        used.append(2 * CONTROL_COST * pairs)
    mean = float(numpy.mean(used))
    return {
        Key(f"{tool}: {status}", *place): Rate(statuses.count(status), len(statuses), mean)
        for status in ("REGRESSED", "PASS", "INCONCLUSIVE")
    }


def shortest(cells: dict[str, Differences]) -> int:
    return min(len(values) for by_metric in cells.values() for values in by_metric.values())


def make_series(cells: dict[str, Differences], start: int, count: int, draw, slow: str, slowdown: float):
    """Return the differences of a window, with the order inside each pair drawn again."""
    margins = {metric.name: metric.margin for metric in METRICS}
    series = {}
    for cell, metrics in cells.items():
        for name, values in metrics.items():
            signed = draw.choice([-1, 1], count) * numpy.resize(values[start:], count)
            shift = math.log1p(slowdown) if (cell, name) == (slow, "step") else 0.0
            series[f"{cell} {name}"] = Series(margins[name], list(signed + shift))
    return series


def false_alarm_rate(cells: dict[str, Differences], condition: str) -> dict[Key, Rate]:
    """Return how often a gate from the release to itself, over all cells and metrics, is REGRESSED."""
    alarms = 0
    for start, draw in windows(shortest(cells), PAIRS, seed=1):
        results = judgement.judge(make_series(cells, start, PAIRS, draw, "", 0.0))
        alarms += any(result.status == "REGRESSED" for result in results.values())
    return {Key(f"{GATE}: all metrics", condition, "all", 0.0): Rate(alarms, WINDOWS, 0.0)}


@functools.cache
def median(steps: tuple[float, ...]) -> float:
    return float(numpy.median(steps))


def tool_rates(pairs: list[Pair], place, batches) -> dict[Key, Rate]:
    slower = 1 + place[2]
    launches = [run.counted_seconds for pair in pairs for run in pair.runs]
    flags: dict[str, list[bool]] = defaultdict(list)
    for start, _ in windows(len(launches), 40, many=WINDOWS_OF_SLOW_TOOLS):
        window = launches[start : start + 40]
        slow = [[slower * step for step in launch] for launch in window]
        # rounds alternate their order, as asv's do
        rounds = [(2 * i + i % 2, 2 * i + 1 - i % 2) for i in range(10)]
        old, new = [window[a] for a, _ in rounds], [slow[b] for _, b in rounds]
        flags["asv continuous, defaults"].append(tools.asv_continuous(old[:2], new[:2], factor=1.1))
        flags["asv continuous, 10 rounds, factor 1.03"].append(tools.asv_continuous(old, new, factor=1.03))
        flags["pyperf compare_to"].append(tools.pyperf(window[:20], slow[20:]))
        batches["pytest-benchmark, median:10%, back to back", "median:10%"].append(
            (place, (window[0], slow[1]))
        )
        batches["pytest-benchmark, median:5%, saved before", "median:5%"].append(
            (place, (window[0], slow[39]))
        )
        medians = [*map(median, window[:20]), *(slower * median(launch) for launch in window[20:])]
        batches["Otava, 20 launches each", None].append((place, medians))
    used = {
        "asv continuous, defaults": 4,
        "asv continuous, 10 rounds, factor 1.03": 20,
        "pyperf compare_to": 40,
    }
    return {Key(tool, *place): Rate(sum(values), len(values), used[tool]) for tool, values in flags.items()}


def batch_rates(batches) -> dict[Key, Rate]:
    """Return the rates of the tools that are called once for all windows."""
    flags: dict[Key, list[bool]] = defaultdict(list)
    for (tool, threshold), batch in batches.items():
        samples = [sample for _, sample in batch]
        answers = (
            tools.otava(samples, 20) if threshold is None else tools.pytest_benchmark(samples, threshold)
        )
        for (place, _), answer in zip(batch, answers, strict=True):
            flags[Key(tool, *place)].append(answer)
        print(f"replayed {tool}", flush=True)
    return {
        key: Rate(sum(values), len(values), 40 if "Otava" in key.tool else 2) for key, values in flags.items()
    }
