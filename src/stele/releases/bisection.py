"""Which release did it? A search between one that is good and one that is bad, as git bisect does it. Pure.

A release is good, bad, or cannot be told: it does not install, or the machine is too noisy. Those are skipped, and
where nothing else is left between the last good and the first bad, the answer names all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

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
        return max(number for number, word in self.words.items() if word == GOOD and number < self.bad)

    @property
    def bad(self) -> int:
        return min(number for number, word in self.words.items() if word == BAD)

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
        branches = [Search(self.candidates, {**self.words, present: word}) for word in (GOOD, BAD)]
        return [name for branch in branches if (name := branch.next()) is not None]

    def tell(self, name: str, word: str) -> None:
        self.words[self.candidates.index(name)] = word

    @property
    def suspects(self) -> list[str]:
        """One of these did it: a single one where all could be told."""
        return list(self.candidates[self.good + 1 : self.bad + 1])
