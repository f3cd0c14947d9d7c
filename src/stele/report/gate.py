"""Verdicts as terminal lines, Markdown, JSON and JUnit XML. The functions return text and print nothing."""

import json
import math
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from xml.etree import ElementTree

from stele import schema, text
from stele.environments import packages
from stele.gate import judgement
from stele.gate.record import Record
from stele.gate.trial import Trial
from stele.gate.verdict import Verdict
from stele.report import page

JUNIT = {"REGRESSED": "failure", "BROKEN": "failure", "MISSING": "failure", "INCONCLUSIVE": "error"}
ADVICE = {
    "PASS": "No regression: every metric is within its margin.",
    "REGRESSED": "At least one metric regressed.",
    "BROKEN": "NEW fails, or computes something different from OLD.",
    "MISSING": "NEW lacks a task that OLD has.",
    "INCONCLUSIVE": "There is not enough evidence for a verdict yet. Do not treat this as a pass.",
}


def overall_status(verdicts: Sequence[Verdict]) -> str:
    return judgement.overall([verdict.status for verdict in verdicts])


def worst_first(verdicts: Sequence[Verdict]) -> list[Verdict]:
    return sorted(verdicts, key=lambda verdict: judgement.STATUSES.index(verdict.status))


def resume_command(trial: Trial) -> str:
    """Return the command that continues the trial with twice the budget."""
    budget = f"{max(math.ceil(2 * trial.budget / 60), 1)}m"
    arms = trial.typed or (trial.old.name, trial.new.name)
    model = [] if trial.model is None else ["--model", trial.model.spec]
    return shlex.join(["stele", "gate", *arms, *model, "--resume", "--budget", budget])


def terminal_lines(trial: Trial, verdicts: Sequence[Verdict]) -> list[str]:
    """``REGRESSED  cnn train  step  [1.048 1.052 1.057]  5.2 % slower in 5 passes, p 0.0004``"""
    rows = [
        [verdict.status, f"{verdict.task} {verdict.phase}", verdict.metric, ratio(verdict), verdict.message]
        for verdict in worst_first(verdicts)
    ]
    status = overall_status(verdicts)
    summary = f"{status}: {trial.old.name} to {trial.new.name}. {ADVICE[status]}"
    if status == "INCONCLUSIVE":
        summary += f" With the options of this run, continue with: {resume_command(trial)}"
    return [*text.align(rows), "", *difference_lines(trial), summary]


def difference_lines(trial: Trial) -> list[str]:
    """Return the other packages that differ between the arms: they may be the cause, too."""
    if not trial.differences:
        return []
    return ["Other packages differ, too: " + ", ".join(packages.lines(trial.differences)) + "."]


def ratio(verdict: Verdict) -> str:
    """Return [low middle high] of new / old."""
    return "" if verdict.ratio is None else text.interval(verdict.ratio, lambda value: f"{value:.3f}")


def to_markdown(trial: Trial, record: Record, verdicts: Sequence[Verdict]) -> str:
    """Return a page with the status, the conditions of the measurement, and a table of verdicts."""
    facts = record.header["machine"]
    rows = [
        [
            verdict.status,
            f"{verdict.task} {verdict.phase}",
            verdict.metric,
            ratio(verdict),
            verdict.message.splitlines()[0],
        ]
        for verdict in worst_first(verdicts)
    ]
    head = ["verdict", "cell", "metric", "new / old", "in words"]
    return "\n".join(
        [
            f"# {overall_status(verdicts)}: {escape(trial.old.name)} to {escape(trial.new.name)}",
            "",
            f"{ADVICE[overall_status(verdicts)]} {record.launches} launches in {record.spent / 60:.0f} minutes on "
            f"{facts['processor']}, {facts['processors']} processors, {facts['system']}; "
            f"{trial.settings.summary()}, allocator profile {trial.settings.malloc}.",
            "",
            page.table(head, rows, escape=escape),
            "",
            *version_lines(trial, record),
            *map(escape, difference_lines(trial)),
            "",
        ]
    )


def version_lines(trial: Trial, record: Record) -> list[str]:
    """Return a line for each arm that has a Run: what its framework reports, and the packages that OLD and NEW name."""
    lines = []
    for arm in ("old", "new"):
        named = {package.name: getattr(package, arm) for package in trial.named}
        versions = {**named, **record.versions(arm)}
        if record.versions(arm):
            lines.append(f"{arm.upper()}: " + escape(text.versions(versions)))
    return lines


def escape(text: str) -> str:
    """Return text in which Markdown shows every character literally."""
    for sign in "\\|*_`<>[]":
        text = text.replace(sign, f"\\{sign}")
    return text


def to_json(trial: Trial, record: Record, verdicts: Sequence[Verdict]) -> str:
    facts = schema.wrap(record.header) | {
        "status": overall_status(verdicts),
        "versions": {arm: record.versions(arm) for arm in ("old", "new")},
        "launches": record.launches,
        "seconds": record.spent,
        "settings": asdict(trial.settings),
        "differences": [difference._asdict() for difference in trial.differences],
        "verdicts": [
            {**verdict._asdict(), "ratio": None if verdict.ratio is None else verdict.ratio._asdict()}
            for verdict in verdicts
        ],
    }
    return json.dumps(facts, indent=1) + "\n"


def to_junit(trial: Trial, verdicts: Sequence[Verdict]) -> str:
    """Return one test case for each verdict. INCONCLUSIVE is an error, because it does not pass."""
    suite = ElementTree.Element("testsuite", name=f"{trial.old.name} to {trial.new.name}")
    for verdict in verdicts:
        names = {"classname": f"{verdict.task}.{verdict.phase}", "name": verdict.metric}
        case = ElementTree.SubElement(suite, "testcase", names)
        kind = JUNIT.get(verdict.status)
        if kind:
            message = replace_control_characters(verdict.message)
            ElementTree.SubElement(case, kind, type=verdict.status, message=message)
    counts = [JUNIT.get(verdict.status) for verdict in verdicts]
    suite.set("tests", str(len(counts)))
    suite.set("failures", str(counts.count("failure")))
    suite.set("errors", str(counts.count("error")))
    return ElementTree.tostring(suite, encoding="unicode") + "\n"


def replace_control_characters(text: str) -> str:
    """Return text without control characters, which XML does not allow."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "?" for letter in text)
