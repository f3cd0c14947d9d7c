"""The ``stele`` command with a wall clock that jumps by up to an hour at every look: ``jumping.py gate ...``."""

import random
import sys
import time

LARGEST = 3600.0  # seconds


def start(seed: int = 0) -> None:
    """Make the wall clock of this process jump. Monotonic clocks stay as they are."""
    real, draw = time.time, random.Random(seed)

    def jumping() -> float:
        return real() + draw.uniform(-LARGEST, LARGEST)

    time.time = jumping


if __name__ == "__main__":
    from stele.__main__ import main

    start()
    sys.exit(main())
