"""A gate: a trial, the record of its launches, and what receives its messages."""

from collections.abc import Callable
from dataclasses import dataclass

from stele.gate.record import Record
from stele.gate.trial import Trial
from stele.measuring import progress


@dataclass(frozen=True)
class Gate:
    """What the launches of a trial share."""

    trial: Trial
    record: Record
    say: Callable[[str], object] = progress.say

    @property
    def left(self) -> float:
        """The seconds of the budget that are not spent."""
        return self.trial.budget - self.record.spent

    @property
    def is_spent(self) -> bool:
        return self.left <= 0
