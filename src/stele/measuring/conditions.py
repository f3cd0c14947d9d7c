"""The conditions of a launch, recorded because they cannot be controlled. One of them excludes the launch.

Time that a hypervisor takes excludes none: it hits the launches of both releases, which take turns, so that verdicts
stay right and come sooner than without the passes that were hit. docs/results/verdict-study.md shows it.
"""

import contextlib
import os
import resource
import threading
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter, sleep
from typing import Annotated

import msgspec
import psutil

from stele.measuring import nvml, processors
from stele.measuring.settings import Settings
from stele.schema import about
from stele.text import printable

MAX_STEAL = 0.05  # share of the time of a launch; more is said beside the verdict
# share of the time of all processors: the services of a quiet machine take 1 to 2 %. A launch that uses all processors
# becomes slower by about this share
MAX_FOREIGN = 0.05
MOST_NAMES = 3  # of programs that use the machine
GPU_INTERVAL = 1.0  # seconds between two queries of a GPU
MIN_SECONDS = 1.0  # the kernel counts in hundredths of a second, so shares of shorter launches mean nothing
THROTTLED = 0x8 | 0x20 | 0x40 | 0x80  # hardware slow-down, software and hardware thermal, power brake (NVML)


ProcessorTimes = Mapping[str, tuple[float, ...]]  # by name in /proc/stat: busy, idle and stolen seconds


class Conditions(msgspec.Struct, frozen=True):
    """The conditions under which a launch ran. Shares are of processor time; null means unknown."""

    seconds: Annotated[float, about("duration", "s")]
    steal: Annotated[
        float | None,
        about("time that the hypervisor gave to other machines, of the processors of the worker", "fraction"),
    ]
    foreign: Annotated[float | None, about("time of other processes, of all processors", "fraction")]
    gpu: Annotated[
        dict[str, str] | None,
        about("clock, temperature, power and throttle reasons, under the names of nvidia-smi; null on a CPU"),
    ]

    @property
    def busy(self) -> bool:
        """Whether other processes used so much of the machine that the times of the launch are doubtful."""
        return self.foreign is not None and self.foreign > MAX_FOREIGN and self.seconds > MIN_SECONDS

    @property
    def stolen(self) -> bool:
        """Whether the hypervisor took so much of the processors that a verdict needs more passes."""
        return self.steal is not None and self.steal > MAX_STEAL and self.seconds > MIN_SECONDS

    @property
    def excluded(self) -> str | None:
        """Why the launch does not count, whatever it measured; None if it counts."""
        return "the GPU was throttled" if self.gpu and throttle_reasons(self.gpu) & THROTTLED else None


def throttle_reasons(gpu: dict[str, str]) -> int:
    """Return why a GPU's clock is low, as NVML's bits; 0 if the driver does not report it."""
    try:
        return int(gpu["clocks_throttle_reasons.active"], 16)
    except (KeyError, ValueError):
        return 0


class Monitor:
    """Observe a launch. Create it before the launch; call ``conditions()`` after it.

    The processor time of child processes counts when they have ended. ``session`` is the process id of a worker that
    still runs after the launch. ``lanes`` is the number of launches at the same time. It queries a GPU once a second.
    """

    def __init__(self, settings: Settings, session: int | None = None, lanes: int = 1) -> None:
        self._pinned, self._session = pinned_processors(settings, lanes), session
        self._gpu_states: list[dict[str, str]] = []
        self._ended = threading.Event()
        if settings.device == "cuda":
            threading.Thread(target=self._query_gpu, daemon=True).start()
        self._start, self._times = perf_counter(), processor_times()
        self._launch_seconds = self._read_launch_seconds()

    @property
    def seconds(self) -> float:
        """The seconds since the start."""
        return perf_counter() - self._start

    def _query_gpu(self) -> None:
        while not self._ended.wait(GPU_INTERVAL):
            self._gpu_states += [state for state in [nvml.state()] if state is not None]

    def _read_launch_seconds(self) -> float:
        """Return the processor seconds of this process and of what it started."""
        return process_seconds() + (0.0 if self._session is None else session_seconds(self._session))

    def conditions(self) -> Conditions:
        self._ended.set()
        seconds, now = self.seconds, processor_times()
        worst = max(self._gpu_states, key=lambda state: throttle_reasons(state) & THROTTLED, default=None)
        # a processor may be taken away during a launch, or appear
        passed = {
            name: tuple(b - a for a, b in zip(self._times[name], times, strict=True))
            for name, times in now.items()
            if name in self._times
        }
        launch_seconds = self._read_launch_seconds() - self._launch_seconds
        return Conditions(seconds, steal_share(passed, self._pinned), foreign_share(passed, launch_seconds), worst)


def steal_share(passed: ProcessorTimes, pinned: list[str]) -> float | None:
    """Return the share of the time of ``pinned`` that the hypervisor took; None if one of them is not in ``passed``."""
    if not pinned or not all(name in passed for name in pinned):
        return None
    total = sum(sum(passed[name]) for name in pinned)
    return sum(passed[name][2] for name in pinned) / max(total, 1e-9)


def foreign_share(passed: ProcessorTimes, launch_seconds: float) -> float | None:
    """Return the share of the time of all processors that other processes used; None if it is unknown."""
    if "cpu" not in passed:
        return None
    return max(passed["cpu"][0] - launch_seconds, 0.0) / max(sum(passed["cpu"]), 1e-9)


def pinned_processors(settings: Settings, lanes: int) -> list[str]:
    """Return the processors to which workers pin themselves, under their names in /proc/stat; on a GPU all."""
    if lanes == 1:
        count = settings.processors if settings.device == "cpu" else None
        return [f"cpu{number}" for number in (processors.usable() or [])[:count]]
    return [f"cpu{number}" for lane in processors.lanes(settings.processors)[:lanes] for number in lane]


def processor_times() -> dict[str, tuple[float, float, float]]:
    """Return the busy, idle and stolen seconds of each processor, and of all as "cpu" (proc(5))."""
    try:
        lines = [line.split() for line in Path("/proc/stat").read_text().splitlines() if line.startswith("cpu")]
    except OSError:
        return {}
    return {
        name: busy_idle_steal([int(field) / os.sysconf("SC_CLK_TCK") for field in fields[:8]])
        for name, *fields in lines
    }


def busy_idle_steal(fields: list[float]) -> tuple[float, float, float]:
    user, nice, system, idle, waiting, hard, soft, steal = fields
    return user + nice + system + hard + soft, idle + waiting, steal


def process_seconds() -> float:
    """Return the processor seconds of this process and of all child processes that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def session_seconds(leader: int) -> float:
    """Return the processor seconds of the running processes of a session, and of their children that have ended."""
    seconds = 0.0
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, ProcessLookupError):  # the process has ended
            if os.getsid(process.pid) == leader:
                seconds += sum(process.cpu_times()[:4])  # user, system, and both of the children
    return seconds


def busiest(seconds: float = 1.0) -> list[str]:
    """Return the names of the programs that use the processors most, other than this one, within so many seconds."""
    before = processor_use()
    sleep(seconds)
    used: dict[str, float] = defaultdict(float)
    for process, (name, total) in processor_use().items():
        used[name] += total - before.get(process, (name, total))[1]
    most = sorted(used, key=lambda name: -used[name])[:MOST_NAMES]
    return [name for name in most if used[name] >= MAX_FOREIGN * seconds]


def processor_use() -> dict[int, tuple[str, float]]:
    """Return the name and the processor seconds of each process but this one."""
    use = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):  # it has ended, or it belongs to another user
            if process.pid != os.getpid():
                use[process.pid] = (printable(process.name(), keep=""), sum(process.cpu_times()[:2]))
    return use
