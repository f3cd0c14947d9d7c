"""Whether launches of NEW fail more often than those of OLD. Pure.

A round is {"arms": [...], "failures": {arm: message}}: some launches of each release, and which of them failed. If NEW
fails as often as OLD, each arm of a round is equally likely to fail. So the e-values that judge times judge failures,
too, at the level of the gate: two releases that fail now and then equally often are not BROKEN.
"""

import itertools
from collections.abc import Iterable, Sequence

from stele import statistics
from stele.gate.entries import Round
from stele.gate.trial import NEW_ARMS
from stele.statistics import Pass

NOISE = 0.1  # a failure counts 1; the e-value then bets almost everything on "NEW fails"


def to_pass(round_: Round) -> Pass:
    """Return the round as a pass: 1 for each launch that failed, 0 for the others."""
    values = {arm: float(arm in round_["failures"]) for arm in round_["arms"]}
    old = tuple(value for arm, value in values.items() if arm not in NEW_ARMS)
    return old, tuple(value for arm, value in values.items() if arm in NEW_ARMS)


def log_evidence(rounds: Iterable[Round]) -> float:
    """Return the logarithm of the largest e-value, after any round, against "NEW fails at most as often as OLD"."""
    passes = [arms for arms in map(to_pass, rounds) if all(arms)]
    evidence = itertools.accumulate(statistics.log_e_values([arms], NOISE)[0] for arms in passes)
    return max(evidence, default=0.0)


def count(rounds: Sequence[Round]) -> tuple[int, int]:
    """Return in how many rounds OLD failed, and in how many NEW failed."""
    old = sum(any(arm not in NEW_ARMS for arm in round_["failures"]) for round_ in rounds)
    return old, sum(any(arm in NEW_ARMS for arm in round_["failures"]) for round_ in rounds)


def last_message(rounds: Sequence[Round], *, new: bool | None = None) -> str:
    """Return the last failure of NEW, of OLD, or of either; empty if there is none."""
    messages = [
        message
        for round_ in rounds
        for arm, message in round_["failures"].items()
        if new is None or (arm in NEW_ARMS) == new
    ]
    return messages[-1] if messages else ""
