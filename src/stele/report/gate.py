"""Verdicts as terminal lines and JSON. The functions return text and print nothing."""

import math
import shlex
import shutil
import textwrap
from collections.abc import Iterator, Sequence

from stele import schema, text
from stele.environments import packages
from stele.gate import advice, behaviour_verdicts, judgement, outcome
from stele.gate.entries import Together, Verdict
from stele.gate.record import Record
from stele.gate.trial import Trial
from stele.gate.verdict import seconds_needed
from stele.measuring.run import OF_PROGRAMS
from stele.subjects import Program

ADVICE = {
    "PASS": "No regression: every metric is within its margin.",
    "REGRESSED": "At least one metric regressed.",
    "BROKEN": "NEW fails, or computes something different from OLD.",
    "MISSING": "NEW lacks a task that OLD has.",
    "INCONCLUSIVE": "There is not enough evidence for a verdict yet. Do not treat this as a pass.",
}
SAME = "OLD and NEW are the same, so this gate checks the machine and not an upgrade."
WIDEST = 24  # columns of a label; a longer one, such as the name of a test, has a line of its own
NO_BUDGET_HELPS = "A larger budget does not help: see the reasons above."


def overall_status(verdicts: Sequence[Verdict]) -> str:
    return judgement.overall([verdict.status for verdict in verdicts])


def worst_first(verdicts: Sequence[Verdict]) -> list[Verdict]:
    return sorted(verdicts, key=lambda verdict: judgement.STATUSES.index(verdict.status))


def resume_command(trial: Trial, needs: float | None = None) -> str:
    """Return the command that continues the trial, with a budget of ``needs`` more seconds; None for the same one."""
    words = [text.without_passwords(word) for word in trial.typed]
    return continuation(words, None if needs is None else larger_budget(trial.budget, needs))


def saved(trial: Trial, record: Record) -> list[str]:
    """Return what an interrupted gate says of its results, as one sentence; nothing if none is in the record."""
    return [f"Finished results are saved. Continue with: {resume_command(trial)}"] if record.entries() else []


def continuation(words: Sequence[str], budget: str | None, *, record: str | None = None) -> str:
    """Return the command of these words with --resume, and with another budget if it is given.

    ``record`` is the file to continue.
    """
    remaining, is_value = list[str](), False
    end = words.index("--") if "--" in words else len(words)
    words, program = words[:end], words[end:]  # the words of a program of the user are not Stele's
    for word in words:
        option = word.partition("=")[0]
        # argparse accepts the start of a name
        is_budget = budget is not None and len(option) > 2 and "--budget".startswith(option)
        if not is_value and not is_budget:
            remaining.append(word)
        is_value = is_budget and "=" not in word
    if not any(len(word) > 2 and "--resume".startswith(word.partition("=")[0]) for word in remaining):
        remaining += ["--resume", *([record] if record else [])]
    return shlex.join(["stele", *remaining, *(["--budget", budget] if budget else []), *program])


def larger_budget(spent: float, needs: float) -> str:
    """Return the budget with which a gate continues for ``needs`` seconds, and a quarter more: ``12m``."""
    return f"{math.ceil((spent + 1.25 * needs) / 60 + 1e-9)}m"


def title(old: str, new: str) -> str:
    """Return ``torch 2.12.0 → 2.13.0`` for two versions of the same packages, else ``OLD → NEW``."""
    before, after = ([word.partition("==") for word in name.split()] for name in (old, new))
    if old == new or [(name, sign) for name, sign, _ in before] != [(name, "==") for name, _, _ in after]:
        return f"{old} → {new}"
    pairs = [(name, then, now) for (name, _, then), (*_, now) in zip(before, after, strict=True)]
    return ", ".join(f"{name} {then}" if then == now else f"{name} {then} → {now}" for name, then, now in pairs)


def heading(trial: Trial) -> str:
    """``stele gate  torch 2.12.0 → 2.13.0  on cnn, gru``"""
    tasks = trial.subject.label or ", ".join(dict.fromkeys(cell.task for cell in trial.cells))
    return f"stele gate  {title(trial.old.name, trial.new.name)}  on {tasks}"


def terminal_lines(trial: Trial, verdicts: Sequence[Verdict], record: Record) -> list[str]:
    """Return the verdict, why it is that, what was judged and what was not, and the commands that go on from here.

    The lines against NEW come first. All lines are folded to the width of the terminal, except commands.
    """
    status, needs = overall_status(verdicts), seconds_needed(verdicts)
    missing = not_judged(trial, record, verdicts)
    advice_of_status = "" if status == "PASS" and missing else f". {ADVICE[status]}"
    rows = list(verdict_rows(trial, verdicts))
    rows += [("not judged", ", ".join(missing))] if missing else []
    if trial.differences and status != "PASS":  # they may be the cause, too
        rows.append(("also different", packages.shortened(trial.differences, "see stele report")))
    if load := advice.describe_load(record.conditions()):
        rows.append(("machine", load))
    if trial.old.name == trial.new.name:
        rows.append(("OLD and NEW", SAME))
    if status == "INCONCLUSIVE" and needs is None:
        rows.append(("budget", NO_BUDGET_HELPS))
    commands = []
    if trial.typed:  # else another command, perhaps of another machine, has the record
        commands.append(("details", shlex.join(["stele", "report", str(record.path)])))
    if status == "INCONCLUSIVE" and needs is not None:
        budget = larger_budget(trial.budget, needs)
        command = resume_command(trial, needs) if trial.typed else f"the same command with --budget {budget}"
        commands.append(("continue with", command))
    columns = shutil.get_terminal_size().columns
    width = max(len(label) for label, _ in (*rows, *commands, (" " * text.LABEL, "")) if len(label) <= WIDEST)
    summary = textwrap.wrap(
        f"{status}  {title(trial.old.name, trial.new.name)}{advice_of_status}",
        columns,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    folded = [line for label, value in rows for line in text.labelled(label, value, columns, width=width)]
    return [*summary, *folded, *(f"  {label:<{width}}  {command}" for label, command in commands)]


def verdict_rows(trial: Trial, verdicts: Sequence[Verdict]) -> Iterator[tuple[str, str]]:
    """Yield label and text: of what passes, its name and the evidence; else the status, and what has the same message.

    A control that agrees is left out: a report has it.
    """
    several, names = len({verdict.task for verdict in verdicts} - {"all"}) > 1, dict[tuple[str, str], list[str]]()
    for verdict in worst_first(verdicts):
        phase = "all" if verdict.phase in OF_PROGRAMS else verdict.phase  # a program has one
        task = verdict.task if several and verdict.task != trial.subject.label else "all"
        parts = (task, phase, verdict.metric)
        name, message = " ".join(part for part in parts if part != "all") or verdict.task, verdict.message
        if verdict.status in ("REGRESSED", "IMPROVED") and verdict.ratio:
            message += f"; NEW / OLD {ratio(verdict)}"
        if verdict.status != "PASS":
            names.setdefault((verdict.status, message), []).append(name)
        elif verdict.metric != "control":
            names[name, message] = []
    for (label, message), judged in names.items():
        yield label, f"{', '.join(judged)}: {message}" if judged else message


def not_judged(trial: Trial, record: Record, verdicts: Sequence[Verdict]) -> list[str]:
    """Return what a gate leaves out, as ``outcome.not_judged`` does, and the accuracy."""
    missing = outcome.not_judged(record.header)
    if isinstance(trial.subject, Program):
        timed = any(verdict.ratio is not None for verdict in verdicts)
        return missing if timed or missing else ["time (nothing was timed)"]
    trained = [cell.task for cell in trial.cells if cell.phase == "train"]
    if trained and not any(verdict.metric == "accuracy" for verdict in verdicts):
        has_data = any(map(trial.subject.has_accuracy, trained))
        missing.append("accuracy" if has_data else "accuracy (no data)")
    return missing


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
    if isinstance(trial.subject, Program):
        passes = behaviour_verdicts.passes_of(record)
        facts["values"] = behaviour_verdicts.moved_values(trial.subject, passes)
    return schema.document(facts)
