"""Binary search for the first bad release between a good and a bad one, as git bisect does it. Pure.

A release is good, bad, or skipped: it does not install, or the machine is too noisy for a verdict. If only skipped
releases remain between the last good and the first bad one, all of them are suspects.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated

import msgspec

from stele.gate.entries import Verdict
from stele.schema import about

GOOD, BAD, SKIP = "good", "bad", "skip"
BEHAVIOUR = ("outcomes", "values")  # what is compared of a program beside its metrics


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


class CandidateStatus(msgspec.Struct, frozen=True):
    """The status of one candidate, and why."""

    name: Annotated[str, about("release, or step between two lock files")]
    status: Annotated[str, about("`good`, `bad` or `skip`")]
    message: Annotated[str, about("the evidence")]
    ratio: Annotated[float | None, about("estimate", "candidate / GOOD")] = None


class BisectionFile(msgspec.Struct, frozen=True):
    """Written to the file that `--json` names."""

    suspects: Annotated[
        tuple[str, ...], about("the first bad candidate, or several if some were skipped; empty without a result")
    ]
    steps: Annotated[tuple[CandidateStatus, ...], about("candidates in the order in which they were tested")]


def to_answer(name: str, verdicts: Sequence[Verdict], margin: float | None) -> CandidateStatus:
    """Return a gate's verdicts on a candidate as a CandidateStatus.

    ``margin`` is the fraction that separates good from bad, about half of the slow-down of the bad end. A candidate is
    good if its interval ends below the margin, and bad if it REGRESSED and its ratio is above the margin. None is for
    the bad end itself: there any regression is bad.
    """
    verdict = next((verdict for verdict in verdicts if verdict.metric != "control"), None)
    control = next((verdict for verdict in verdicts if verdict.metric == "control"), None)
    if verdict is None or verdict.ratio is None:
        return CandidateStatus(name, SKIP, verdict.message.splitlines()[0] if verdict else "nothing was measured")
    ratio = verdict.ratio.middle
    if control is not None and control.status != "PASS":
        return CandidateStatus(name, SKIP, f"{verdict.message}; {control.message}", ratio)
    if verdict.status == "REGRESSED" and (margin is None or verdict.ratio.middle > 1 + margin):
        return CandidateStatus(name, BAD, verdict.message, ratio)
    below = margin is not None and verdict.ratio.high is not None and verdict.ratio.high < 1 + margin
    if verdict.status in ("PASS", "IMPROVED") or below:
        return CandidateStatus(name, GOOD, verdict.message, ratio)
    return CandidateStatus(name, SKIP, verdict.message, ratio)


def to_answer_of_program(
    name: str, verdicts: Sequence[Verdict], margin: float | None, focus: tuple[str, str] | None
) -> tuple[CandidateStatus, tuple[str, str] | None]:
    """Return a gate's verdicts on a program as a CandidateStatus, and the item and the metric that decide it.

    At the bad end nothing is in ``focus``: then an item that is broken decides it, or the metric that grew most. After
    that only this is looked at.
    """
    broken = [verdict for verdict in verdicts if verdict.status in ("BROKEN", "MISSING")]
    timed = [verdict for verdict in verdicts if verdict.ratio is not None and verdict.metric != "control"]
    if focus is None:
        grown = [verdict for verdict in timed if verdict.status == "REGRESSED"]
        worst = [*broken, *sorted(grown, key=lambda verdict: -(verdict.ratio.middle if verdict.ratio else 0))]
        if not worst:
            message = verdicts[-1].message if verdicts else "nothing was measured"
            return CandidateStatus(name, GOOD if all_pass(verdicts) else SKIP, message), None
        decisive = worst[0]
        metric = "outcomes" if decisive.metric == "outcome" else decisive.metric
        ratio = decisive.ratio.middle if decisive.ratio else None
        return CandidateStatus(name, BAD, f"{decisive.task}: {decisive.message}", ratio), (decisive.task, metric)
    item, metric = focus
    if metric in BEHAVIOUR:
        if decisive_ones := [verdict for verdict in broken if verdict.task == item]:
            return CandidateStatus(name, BAD, decisive_ones[0].message), focus
        message = verdicts[-1].message if verdicts else "nothing was measured"
        return CandidateStatus(name, GOOD if all_pass(verdicts) else SKIP, message), focus
    if broken:
        return CandidateStatus(name, SKIP, broken[0].message), focus
    of_metric = [verdict for verdict in verdicts if verdict.metric in (metric, "control") and verdict.task == item]
    return to_answer(name, of_metric, margin), focus


def all_pass(verdicts: Sequence[Verdict]) -> bool:
    return bool(verdicts) and all(verdict.status in ("PASS", "IMPROVED") for verdict in verdicts)
