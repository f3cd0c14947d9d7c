"""The conditions of a launch: what cannot be held still is written down, and may disqualify it."""

import os
import resource
import subprocess
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

MOST_STEAL = 0.05  # of the time of a launch
SHORTEST = 1.0  # seconds of which a share means something: the kernel counts in hundredths
THROTTLED = 0x8 | 0x20 | 0x40 | 0x80  # hardware slow-down, software and hardware thermal, power brake (NVML)
GPU_QUERY = "clocks.sm,temperature.gpu,power.draw,clocks_throttle_reasons.active"


class Conditions(NamedTuple):
    """Under what a launch ran. Shares are of all processors' time; unknown is None."""

    seconds: float
    steal: float | None  # what the hypervisor gave to others
    foreign: float | None  # what other processes here took
    gpu: dict[str, str] | None

    @property
    def unfit(self) -> str | None:
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
    """Started before a launch; ``conditions()`` after its process has ended, ``gpu`` looked at while it lives."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.gpu: dict[str, str] | None = None
        self._start, self._times, self._own = perf_counter(), times(), own()

    def look(self) -> None:
        if self.device == "cuda":
            self.gpu = gpu()

    def conditions(self) -> Conditions:
        seconds, now = perf_counter() - self._start, times()
        if now is None or self._times is None:
            return Conditions(seconds, None, None, self.gpu)
        passed = {kind: now[kind] - self._times[kind] for kind in now}
        total = max(sum(passed.values()), 1e-9)
        busy = total - passed["idle"] - passed["steal"] - (own() - self._own)
        return Conditions(seconds, passed["steal"] / total, max(busy / total, 0.0), self.gpu)


def times() -> dict[str, float] | None:
    """Seconds that all processors together have spent: busy, idle, and stolen by the hypervisor (proc(5))."""
    try:
        fields = [int(value) for value in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    except (OSError, ValueError):
        return None
    user, nice, system, idle, waiting, hard, soft, steal = (
        value / os.sysconf("SC_CLK_TCK") for value in fields
    )
    return {"busy": user + nice + system + hard + soft, "idle": idle + waiting, "steal": steal}


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
