"""The energy of a launch: of the processors from RAPL, and of the GPU from NVML. What cannot be read is None.

RAPL counts what the whole packages use, other programs included. Only root may read it on most systems:
https://docs.kernel.org/power/powercap/powercap.html.
"""

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from stele.measuring import nvml

PACKAGES = Path("/sys/class/powercap")
# seconds between two samples: a counter of RAPL starts again from 0 after some minutes
INTERVAL = 60.0
MICRO, MILLI = 1e-6, 1e-3

Joules = dict[str, float | None]
# of each package: its counter in microjoules, and the range of the counter
Reading = dict[Path, tuple[int, int]]


@contextlib.contextmanager
def metered(device: str | None) -> Iterator[Callable[[], Joules]]:
    """Yield joules() -> {"processors": ..., "gpu": ...} since the start of the block; {} if ``device`` is None."""
    if device is None:
        yield dict
        return
    ended, readings = threading.Event(), [read_packages()]
    gpu = nvml.energy() if device == "cuda" else None

    def keep_reading() -> None:
        while not ended.wait(INTERVAL):
            readings.append(read_packages())

    def joules() -> Joules:
        processors = {"processors": total([*readings, read_packages()])}
        now = None if gpu is None else nvml.energy()
        of_gpu = None if now is None or gpu is None else (now - gpu) * MILLI
        return processors if device == "cpu" else {**processors, "gpu": of_gpu}

    threading.Thread(target=keep_reading, daemon=True).start()
    try:
        yield joules
    finally:
        ended.set()


def total(readings: Sequence[Reading | None]) -> float | None:
    """Return the joules from the first reading to the last; None if one is unknown. Counters may start again from 0."""
    if None in readings:
        return None
    joules = 0.0
    for before, after in itertools.pairwise(filter(None, readings)):
        joules += sum((after[path][0] - count) % span for path, (count, span) in before.items()) * MICRO
    return joules


def read_packages() -> Reading | None:
    """Return the counters of the processor packages; None if one cannot be read."""
    counts = {}
    try:
        # AMD's processors have this name, too
        for path in sorted(PACKAGES.glob("intel-rapl:*")):
            if (path / "name").read_text().startswith("package"):
                span = int((path / "max_energy_range_uj").read_text()) + 1
                counts[path] = int((path / "energy_uj").read_text()), span
    except (OSError, ValueError):
        return None
    return counts or None
