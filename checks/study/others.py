"""Other tools on the launches of the small cells: windows, with a slow-down multiplied onto those called NEW."""

import functools
from collections import Counter, defaultdict

import numpy
import tools
from pool import SMALL, Pool
from replay import SLOWDOWNS, Key, Rate, Rates

WINDOWS = 100
LAUNCHES = 40  # of a window
LAUNCHES_USED = {
    "asv continuous, defaults": 4,
    "asv continuous, 10 rounds, factor 1.03": 20,
    "pyperf compare_to": 40,
    "pytest-benchmark, median:10%, back to back": 2,
    "pytest-benchmark, median:5%, saved before": 2,
    "Otava, 20 launches each": 40,
}
THRESHOLDS = {
    "pytest-benchmark, median:10%, back to back": "median:10%",
    "pytest-benchmark, median:5%, saved before": "median:5%",
}


def rates(pools: dict[str, Pool]) -> Rates:
    """Return how often each tool reports a slow-down, by condition, cell and slow-down."""
    flags: dict[Key, list[bool]] = defaultdict(list)
    batches = defaultdict(list)  # for tools that are cheaper to call once for all windows
    for condition, pool in pools.items():
        for subject in SMALL:
            launches = [run.counted_seconds for result in pool.get(subject, []) for run in result.runs.values()]
            for slowdown in SLOWDOWNS if len(launches) >= LAUNCHES else ():
                replay_tools(launches, (condition, subject, subject.scale, slowdown), flags, batches)
            print(f"replayed other tools: {condition} {subject}", flush=True)
    for tool, batch in batches.items():
        samples = [sample for _, sample in batch]
        threshold = THRESHOLDS.get(tool)
        answers = tools.pytest_benchmark(samples, threshold) if threshold else tools.otava(samples, LAUNCHES // 2)
        for (place, _), answer in zip(batch, answers, strict=True):
            flags[Key(tool, *place)].append(answer)
        print(f"replayed {tool}", flush=True)
    return {
        key: Rate(Counter(REGRESSED=sum(values)), len(values), LAUNCHES_USED[key.tool]) for key, values in flags.items()
    }


def replay_tools(launches, place, flags, batches) -> None:
    """Add to ``flags`` what the tools answer for windows of the launches, and to ``batches`` what to ask later."""
    slower, draw = 1 + place[-1], numpy.random.RandomState(0)
    for _ in range(WINDOWS):
        start = draw.randint(0, len(launches) - LAUNCHES + 1)
        window = launches[start : start + LAUNCHES]
        slow = [[slower * step for step in launch] for launch in window]
        # rounds alternate their order, as asv's do
        rounds = [(2 * i + i % 2, 2 * i + 1 - i % 2) for i in range(10)]
        old, new = [window[a] for a, _ in rounds], [slow[b] for _, b in rounds]
        answers = {
            "asv continuous, defaults": tools.asv_continuous(old[:2], new[:2], factor=1.1),
            "asv continuous, 10 rounds, factor 1.03": tools.asv_continuous(old, new, factor=1.03),
            "pyperf compare_to": tools.pyperf(window[:20], slow[20:]),
        }
        for tool, answer in answers.items():
            flags[Key(tool, *place)].append(answer)
        medians = [*map(median, window[:20]), *(slower * median(launch) for launch in window[20:])]
        samples = {
            "pytest-benchmark, median:10%, back to back": (window[0], slow[1]),
            "pytest-benchmark, median:5%, saved before": (window[0], slow[-1]),
            "Otava, 20 launches each": medians,
        }
        for tool, sample in samples.items():
            batches[tool].append((place, sample))


@functools.cache
def median(steps: tuple[float, ...]) -> float:
    return float(numpy.median(steps))
