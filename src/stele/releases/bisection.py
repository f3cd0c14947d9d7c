"""Which release did it? A search between one that is good and one that is bad, as git bisect does it. Pure.

A release is good, bad, or cannot be told: it does not install, or the machine is too noisy. Those are skipped, and
where nothing else is left between the last good and the first bad, the answer names all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from stele.gate.verdict import Verdict

GOOD, BAD, SKIP = "good", "bad", "skip"


@dataclass
class Search:
    """``candidates`` are in order, the first of them known to be good and the last to be bad."""

    candidates: Sequence[str]
    words: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.words.update({0: GOOD, len(self.candidates) - 1: BAD})

    @property
    def good(self) -> int:
        """The last that is good before the first that is bad."""
        return max(number for number, status in self.words.items() if status == GOOD and number < self.bad)

    @property
    def bad(self) -> int:
        return min(number for number, status in self.words.items() if status == BAD)

    @property
    def open(self) -> list[int]:
        """What lies between and was not looked at, the nearest to the middle first."""
        middle = (self.good + self.bad) / 2
        between = [number for number in range(self.good + 1, self.bad) if number not in self.words]
        return sorted(between, key=lambda number: (abs(number - middle), number))

    def next(self) -> str | None:
        return self.candidates[self.open[0]] if self.open else None

    def ahead(self) -> list[str]:
        """What will be asked for next, whichever way the present one goes."""
        if not self.open:
            return []
        present = self.open[0]
        branches = [Search(self.candidates, {**self.words, present: status}) for status in (GOOD, BAD)]
        return [name for branch in branches if (name := branch.next()) is not None]

    def tell(self, name: str, status: str) -> None:
        self.words[self.candidates.index(name)] = status

    @property
    def suspects(self) -> list[str]:
        """One of these did it: a single one where all could be told."""
        return list(self.candidates[self.good + 1 : self.bad + 1])


class Answer(NamedTuple):
    """What was found of one candidate, and why."""

    name: str
    status: str
    message: str
    ratio: float | None = None


def judged(name: str, verdicts: Sequence[Verdict], margin: float | None) -> Answer:
    """A gate's verdicts of a candidate as an answer.

    ``margin`` is half of what the bad end is worse by, a fraction: what lies surely below it is good, and bad what is
    surely worse, and by more than it. Without one it is the bad end itself that was judged.
    """
    found = next((one for one in verdicts if one.metric != "control"), None)
    control = next((one for one in verdicts if one.metric == "control"), None)
    if found is None or found.ratio is None:
        return Answer(name, SKIP, found.message.splitlines()[0] if found else "nothing was measured")
    ratio = found.ratio.middle
    if control is not None and control.status != "PASS":
        return Answer(name, SKIP, f"{found.message}; {control.message}", ratio)
    if found.status == "REGRESSED" and (margin is None or found.ratio.middle > 1 + margin):
        return Answer(name, BAD, found.message, ratio)
    surely_less = margin is not None and found.ratio.high is not None and found.ratio.high < 1 + margin
    if found.status in ("PASS", "IMPROVED") or surely_less:
        return Answer(name, GOOD, found.message, ratio)
    return Answer(name, SKIP, found.message, ratio)
