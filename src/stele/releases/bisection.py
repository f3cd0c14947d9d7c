"""Binary search for the first bad release between a good and a bad one, as git bisect does it. Pure.

A release is good, bad, or skipped: it does not install, or the machine is too noisy for a verdict. If only skipped
releases remain between the last good and the first bad one, all of them are suspects.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from stele.gate.verdict import Verdict

GOOD, BAD, SKIP = "good", "bad", "skip"


@dataclass
class Search:
    """A search over ``candidates``, in order. The first one is good and the last one is bad by definition."""

    candidates: Sequence[str]
    statuses: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.statuses.update({0: GOOD, len(self.candidates) - 1: BAD})

    @property
    def good(self) -> int:
        """The index of the last good candidate before the first bad one."""
        return max(number for number, status in self.statuses.items() if status == GOOD and number < self.bad)

    @property
    def bad(self) -> int:
        """The index of the first bad candidate."""
        return min(number for number, status in self.statuses.items() if status == BAD)

    @property
    def untested(self) -> list[int]:
        """The untested candidates between good and bad, those nearest to the middle first."""
        middle = (self.good + self.bad) / 2
        between = [number for number in range(self.good + 1, self.bad) if number not in self.statuses]
        return sorted(between, key=lambda number: (abs(number - middle), number))

    def next_candidate(self) -> str | None:
        """Return the candidate to test next; None if the search has ended."""
        return self.candidates[self.untested[0]] if self.untested else None

    def set_status(self, name: str, status: str) -> None:
        self.statuses[self.candidates.index(name)] = status

    @property
    def suspects(self) -> list[str]:
        """The candidates of which one is the first bad one: a single one if none was skipped."""
        return list(self.candidates[self.good + 1 : self.bad + 1])


class Answer(NamedTuple):
    """The status of one candidate, and why."""

    name: str
    status: str
    message: str
    ratio: float | None = None


def to_answer(name: str, verdicts: Sequence[Verdict], margin: float | None) -> Answer:
    """Return a gate's verdicts on a candidate as an Answer.

    ``margin`` is the fraction that separates good from bad, about half of the slow-down of the bad end. A candidate is
    good if its interval ends below the margin, and bad if it REGRESSED and its ratio is above the margin. None is for
    the bad end itself: there any regression is bad.
    """
    verdict = next((verdict for verdict in verdicts if verdict.metric != "control"), None)
    control = next((verdict for verdict in verdicts if verdict.metric == "control"), None)
    if verdict is None or verdict.ratio is None:
        return Answer(name, SKIP, verdict.message.splitlines()[0] if verdict else "nothing was measured")
    ratio = verdict.ratio.middle
    if control is not None and control.status != "PASS":
        return Answer(name, SKIP, f"{verdict.message}; {control.message}", ratio)
    if verdict.status == "REGRESSED" and (margin is None or verdict.ratio.middle > 1 + margin):
        return Answer(name, BAD, verdict.message, ratio)
    below = margin is not None and verdict.ratio.high is not None and verdict.ratio.high < 1 + margin
    if verdict.status in ("PASS", "IMPROVED") or below:
        return Answer(name, GOOD, verdict.message, ratio)
    return Answer(name, SKIP, verdict.message, ratio)
