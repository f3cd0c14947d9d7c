"""How much the speed of this machine changes within a second or two.

Virtual machines that share a core slow each other down, and the system does not count this as stolen time. The code of
an interpreter and the dispatch of operations then take up to twice as long; large kernels change less. The turns of an
empty loop show it.
"""

from time import perf_counter
from typing import NamedTuple

import numpy

SECONDS = 1.5
TURNS = 50_000  # of a loop: about half a millisecond
SHARED = 1.3  # slow over fast: more than a core does without other work


class Speed(NamedTuple):
    """The 10th and the 90th percentile of the duration of a turn of an empty loop, in seconds."""

    fast: float
    slow: float

    @property
    def changes(self) -> bool:
        """Whether the machine is so uneven that the durations of single launches cannot be compared."""
        return self.slow > SHARED * self.fast


def measure(seconds: float = SECONDS) -> Speed:
    """Return the speed of this machine now. It keeps a processor busy for so many seconds."""
    durations, end = [loop()], perf_counter() + seconds
    while perf_counter() < end:
        durations.append(loop())
    fast, slow = numpy.percentile(durations, (10, 90)) / TURNS
    return Speed(float(fast), float(slow))


def loop() -> float:
    """Return the duration of an empty loop, in seconds."""
    start = perf_counter()
    for _ in range(TURNS):
        pass
    return perf_counter() - start
