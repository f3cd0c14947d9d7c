"""Verdicts as terminal lines and JSON. The functions return text and print nothing."""

import math
import shlex
from collections.abc import Sequence

from stele import schema, text
from stele.environments import packages
from stele.gate import advice, judgement, outcome
from stele.gate.entries import Together, Verdict
from stele.gate.record import Record
from stele.gate.trial import Trial
from stele.gate.verdict import seconds_needed

ADVICE = {
    "PASS": "No regression: every metric is within its margin.",
    "REGRESSED": "At least one metric regressed.",
    "BROKEN": "NEW fails, or computes something different from OLD.",
    "MISSING": "NEW lacks a task that OLD has.",
    "INCONCLUSIVE": "There is not enough evidence for a verdict yet. Do not treat this as a pass.",
}
SAME = "OLD and NEW are the same, so this gate checks the machine and not an upgrade."
NO_BUDGET_HELPS = "A larger budget does not help: see the reasons above."


def overall_status(verdicts: Sequence[Verdict]) -> str:
    return judgement.overall([verdict.status for verdict in verdicts])


def worst_first(verdicts: Sequence[Verdict]) -> list[Verdict]:
    return sorted(verdicts, key=lambda verdict: judgement.STATUSES.index(verdict.status))


def resume_command(trial: Trial, needs: float | None = None) -> str:
    """Return the command that continues the trial, with a budget of ``needs`` more seconds; None for the same one."""
    words = trial.typed or ("gate", trial.old.name, trial.new.name, *trial.subject.words)
    return continuation(words, None if needs is None else larger_budget(trial.budget, needs))


def saved(trial: Trial, record: Record) -> list[str]:
    """Return what an interrupted gate says of its results, as one sentence; nothing if none is in the record."""
    return [f"Finished results are saved. Continue with: {resume_command(trial)}"] if record.entries() else []


def continuation(words: Sequence[str], budget: str | None, *, record: str | None = None) -> str:
    """Return the command of these words with --resume, and with another budget if it is given.

    ``record`` is the file to continue.
    """
    remaining, is_value = list[str](), False
    for word in words:
        option = word.partition("=")[0]
        # argparse accepts the start of a name
        is_budget = budget is not None and len(option) > 2 and "--budget".startswith(option)
        if not is_value and not is_budget:
            remaining.append(word)
        is_value = is_budget and "=" not in word
    if not any(len(word) > 2 and "--resume".startswith(word.partition("=")[0]) for word in remaining):
        remaining += ["--resume", *([record] if record else [])]
    return shlex.join(["stele", *remaining, *(["--budget", budget] if budget else [])])


def larger_budget(spent: float, needs: float) -> str:
    """Return the budget with which a gate continues for ``needs`` seconds, and a quarter more: ``12m``."""
    return f"{math.ceil((spent + 1.25 * needs) / 60 + 1e-9)}m"


def terminal_lines(trial: Trial, verdicts: Sequence[Verdict], record: Record) -> list[str]:
    """``REGRESSED  cnn train  step  [1.048 1.052 1.057]  5.2 % slower in 5 passes, p 0.0004``"""
    rows = [
        [verdict.status, f"{verdict.task} {verdict.phase}", verdict.metric, ratio(verdict), verdict.message]
        for verdict in worst_first(verdicts)
    ]
    status = overall_status(verdicts)
    missing = ", ".join(outcome.not_judged(record.header)) if status == "PASS" else ""
    result = f"Nothing that was judged became worse. Not judged: {missing}." if missing else ADVICE[status]
    if trial.old.name == trial.new.name:
        result = f"{SAME} {result}"
    summary = f"{status}: {trial.old.name} to {trial.new.name}. {result}"
    needs = seconds_needed(verdicts)
    if status == "INCONCLUSIVE" and needs is None:
        summary += f" {NO_BUDGET_HELPS}"
    elif status == "INCONCLUSIVE" and needs is not None:
        summary += f" With the options of this run, continue with: {resume_command(trial, needs)}"
    load = advice.describe_load(record.conditions())
    return [*text.align(rows), "", *([load] if load else []), summary, *difference_lines(trial)]


def difference_lines(trial: Trial) -> list[str]:
    """Return the other packages that differ between the arms, the most relevant first: they may be the cause, too."""
    if not trial.differences:
        return []
    return [f"Other packages differ, too: {packages.shortened(trial.differences, 'see stele report')}."]


def ratio(verdict: Verdict) -> str:
    """Return [low middle high] of new / old; before the interval is known, the estimate."""
    if verdict.ratio is None:
        return ""
    if None in (verdict.ratio.low, verdict.ratio.high):
        return f"{verdict.ratio.middle:.3f}, interval not yet known"
    return text.interval(verdict.ratio, lambda value: f"{value:.3f}")


def to_json(trial: Trial, record: Record, verdicts: Sequence[Verdict], whole: Together | None = None) -> str:
    facts = record.header | {
        "status": outcome.status_with(overall_status(verdicts), whole),
        **outcome.with_together(whole),
        "versions": {arm: record.versions(arm) for arm in ("old", "new")},
        "launches": record.launches,
        "seconds": record.spent,
        "settings": trial.settings,
        "differences": trial.differences,
        "verdicts": verdicts,
    }
    return schema.document(facts)
