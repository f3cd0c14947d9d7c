"""How long the host waits for a worker. The time in which the worker itself waits for the host, or for a processor that
other processes use, does not count."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from stele.measuring.processors import Usage

REPEATS = 100  # messages that report no new step: a warm-up, of at most 60 steps, reports none
LONGEST = 100  # times the timeout: a request ends then, whatever the worker reports


@dataclass
class Deadline:
    """The seconds that the host has waited for the answer to one request.

    A message extends the wait only if it reports a new step. Otherwise, a thread that reports forever would hide that
    the computation hangs.
    """

    timeout: float
    total: float = 0.0
    since_step: float = 0.0
    since_message: float = 0.0
    repeats: int = 0
    steps: dict[str, int] = field(default_factory=dict)  # the most steps done, by phase
    usage: Usage | None = None  # of the worker, as it was seen last
    total_then: float = 0.0  # ``total`` at that time

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the time that the block takes."""
        start = time.monotonic()
        try:
            yield
        finally:
            seconds = time.monotonic() - start
            self.total += seconds
            self.since_step += seconds
            self.since_message += seconds

    def excuse(self, usage: Usage | None) -> None:
        """Do not count the time in which the worker waited for a processor since the last call."""
        if usage is not None and self.usage is not None:
            passed = self.total - self.total_then
            waited = min(usage.waited - self.usage.waited, passed - (usage.computed - self.usage.computed))
            excused = max(waited, 0.0)
            self.total -= excused
            self.since_step = max(self.since_step - excused, 0.0)
            self.since_message = max(self.since_message - excused, 0.0)
        self.usage, self.total_then = usage, self.total

    def left(self) -> float:
        """Return how many seconds the host still waits, at least 0."""
        return max(min(self.timeout - self.since_step, LONGEST * self.timeout - self.total), 0.0)

    def heard(self, phase: str, done: int) -> None:
        """Note a message of the worker: so many steps of a phase are done."""
        self.since_message = 0.0
        new = done > self.steps.get(phase, -1)
        self.repeats += not new
        if new or self.repeats <= REPEATS:
            self.since_step = 0.0
        self.steps[phase] = max(done, self.steps.get(phase, -1))

    def reason(self) -> str:
        """Return why the wait ends, as the rest of a sentence about the worker."""
        if self.total >= LONGEST * self.timeout:
            return f"did not finish within {LONGEST * self.timeout:g} s ({LONGEST} times the timeout)"
        if self.since_message >= self.timeout:
            return f"sent no message for {self.timeout:g} s"
        return f"sent messages but reported no new step for {self.timeout:g} s"
