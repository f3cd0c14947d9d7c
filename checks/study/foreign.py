"""Foreign processes that disturb a measurement. As a script, ``foreign.py busy`` or ``foreign.py bursts``."""

import contextlib
import random
import subprocess
import sys
import time
from collections.abc import Iterator

from stele_worker.process import die_with_parent

BUSY, BURSTS = "busy", "bursts"
MEAN = 10.0  # seconds, of the bursts and of the pauses between them


@contextlib.contextmanager
def running(condition: str) -> Iterator[None]:
    """Run what the condition names, "busy" or "bursts", beside the block; nothing for any other."""
    if condition not in (BUSY, BURSTS):
        yield
        return
    process = subprocess.Popen([sys.executable, __file__, condition])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def compute(seconds: float) -> None:
    """Use a processor for so many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def start_and_stop(seed: int = 0) -> None:
    """Start processes that compute, and stop each after a random time, with random pauses between them."""
    draw = random.Random(seed)
    while True:
        time.sleep(draw.expovariate(1 / MEAN))
        burst = subprocess.Popen([sys.executable, __file__, BUSY])
        time.sleep(draw.expovariate(1 / MEAN))
        burst.kill()
        burst.wait()


if __name__ == "__main__":
    die_with_parent()
    compute(float("inf")) if sys.argv[1] == BUSY else start_and_stop()
