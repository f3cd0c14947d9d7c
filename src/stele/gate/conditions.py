"""The conditions of a launch: what cannot be held still is written down, and may disqualify it."""

import os
import resource
import subprocess
import threading
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from stele.measuring.settings import Settings

MOST_STEAL = 0.05  # of the time of a launch
SECOND = 1.0  # between two looks at a GPU
SHORTEST = 1.0  # seconds of which a share means something: the kernel counts in hundredths
THROTTLED = 0x8 | 0x20 | 0x40 | 0x80  # hardware slow-down, software and hardware thermal, power brake (NVML)
GPU_QUERY = "clocks.sm,temperature.gpu,power.draw,clocks_throttle_reasons.active"


class Conditions(NamedTuple):
    """Under what a launch ran. Shares are of processors' time; unknown is None."""

    seconds: float
    steal: float | None  # of the worker's own processors, what the hypervisor gave to others
    foreign: float | None  # of all, what other processes here took
    gpu: dict[str, str] | None

    @property
    def excluded(self) -> str | None:
        """Why a launch does not count, whatever it measured; None if it does."""
        if self.steal is not None and self.steal > MOST_STEAL and self.seconds > SHORTEST:
            return f"the hypervisor took {self.steal:.0%} of the processors"
        return "the GPU was throttled" if self.gpu and reasons(self.gpu) & THROTTLED else None


def reasons(gpu: dict[str, str]) -> int:
    """Why a GPU's clock is low, as NVML's bits; 0 where its driver does not say."""
    try:
        return int(gpu["clocks_throttle_reasons.active"], 16)
    except (KeyError, ValueError):
        return 0


class Watch:
    """Started before a launch; ``conditions()`` after its process has ended. A GPU is looked at once a second."""

    def __init__(self, settings: Settings) -> None:
        self._pinned = pinned(settings.threads)
        self._looks: list[dict[str, str]] = []
        self._ended = threading.Event()
        if settings.device == "cuda":
            threading.Thread(target=self._look, daemon=True).start()
        self._start, self._times, self._own = perf_counter(), times(), own()

    def _look(self) -> None:
        while not self._ended.wait(SECOND):
            self._looks += [seen for seen in [gpu()] if seen is not None]

    def conditions(self) -> Conditions:
        self._ended.set()
        seconds, now = perf_counter() - self._start, times()
        worst = max(self._looks, key=lambda look: reasons(look) & THROTTLED, default=None)
        if not now or not self._times:
            return Conditions(seconds, None, None, worst)
        passed = {name: [b - a for a, b in zip(self._times[name], now[name], strict=True)] for name in now}
        busy, idle, steal = passed["cpu"]
        own_share = (own() - self._own) / max(busy + idle + steal, 1e-9)
        foreign = busy / max(busy + idle + steal, 1e-9) - own_share
        stolen, total = (
            sum(passed[name][2] for name in self._pinned),
            sum(sum(passed[name]) for name in self._pinned),
        )
        return Conditions(seconds, stolen / max(total, 1e-9), max(foreign, 0.0), worst)


def pinned(threads: int) -> list[str]:
    """The processors that a worker keeps itself to, as /proc/stat calls them."""
    allowed = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return [f"cpu{number}" for number in allowed[:threads]]


def times() -> dict[str, tuple[float, float, float]]:
    """Seconds that each processor, and all as "cpu", has been busy, idle, and given to others (proc(5))."""
    try:
        lines = [
            line.split() for line in Path("/proc/stat").read_text().splitlines() if line.startswith("cpu")
        ]
    except OSError:
        return {}
    return {
        name: spent([int(field) / os.sysconf("SC_CLK_TCK") for field in fields[:8]])
        for name, *fields in lines
    }


def spent(fields: list[float]) -> tuple[float, float, float]:
    user, nice, system, idle, waiting, hard, soft, steal = fields
    return user + nice + system + hard + soft, idle + waiting, steal


def own() -> float:
    """Processor seconds of this process and of all that it has seen to their end."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def gpu() -> dict[str, str] | None:
    """Clock, temperature, power and throttle reasons of the first GPU; None where nvidia-smi has none to tell."""
    query = ["nvidia-smi", "--id=0", f"--query-gpu={GPU_QUERY}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    values = (value.strip() for value in done.stdout.split(","))
    return dict(zip(GPU_QUERY.split(","), values, strict=False))
