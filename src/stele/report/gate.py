"""Verdicts as terminal lines, Markdown, JSON and JUnit's XML. Returns text, prints nothing."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from xml.etree import ElementTree

from stele import schema, text
from stele.gate import judgement
from stele.gate.record import Record
from stele.gate.trial import Trial
from stele.gate.verdict import Verdict
from stele.report import page

JUNIT = {"REGRESSED": "failure", "BROKEN": "failure", "MISSING": "failure", "INCONCLUSIVE": "error"}
ADVICE = {
    "PASS": "Nothing that was judged got worse by more than its margin.",
    "REGRESSED": "Something got worse.",
    "BROKEN": "NEW does not do what OLD does.",
    "MISSING": "NEW lacks what OLD has.",
    "INCONCLUSIVE": "This cannot be told here and now; it is no pass.",
}


def status(verdicts: Sequence[Verdict]) -> str:
    return judgement.whole([verdict.status for verdict in verdicts])


def ordered(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The worst first."""
    return sorted(verdicts, key=lambda verdict: judgement.STATUSES.index(verdict.status))


def lines(trial: Trial, verdicts: Sequence[Verdict]) -> list[str]:
    """``REGRESSED  cnn train  step  [1.048 1.052 1.057]  5.2 % slower in 10 pairs, p 0.001``"""
    rows = [
        [one.status, f"{one.task} {one.phase}", one.metric, ratio(one), one.message]
        for one in ordered(verdicts)
    ]
    head = f"{status(verdicts)}: {trial.old.name} to {trial.new.name}. {ADVICE[status(verdicts)]}"
    return [*text.aligned(rows), "", head]


def ratio(verdict: Verdict) -> str:
    """[low middle high] of new / old."""
    return "" if verdict.ratio is None else text.interval(verdict.ratio, lambda value: f"{value:.3f}")


def markdown(trial: Trial, record: Record, verdicts: Sequence[Verdict]) -> str:
    """A page: the status, under what it was found, and a table."""
    facts = record.header["machine"]
    cells = [
        [one.status, f"{one.task} {one.phase}", one.metric, ratio(one), one.message.splitlines()[0]]
        for one in ordered(verdicts)
    ]
    head = ["verdict", "cell", "metric", "new / old", "in words"]
    return "\n".join(
        [
            f"# {status(verdicts)}: {escaped(trial.old.name)} to {escaped(trial.new.name)}",
            "",
            f"{ADVICE[status(verdicts)]} {record.launches} launches in {record.spent / 60:.0f} minutes on "
            f"{facts['processor']}, {facts['processors']} processors, {facts['system']}; "
            f"{trial.settings.summary()}, allocator profile {trial.settings.malloc}.",
            "",
            page.table(head, cells, safe=escaped),
            "",
            *versions(record),
            "",
        ]
    )


def versions(record: Record) -> list[str]:
    """What each arm consisted of."""
    return [
        f"{arm.upper()}: " + escaped(text.releases(found))
        for arm in ("old", "new")
        if (found := record.versions(arm))
    ]


def escaped(text: str) -> str:
    """Shown as it stands, whatever a release or an error is called."""
    for sign in "\\|*_`<>[]":
        text = text.replace(sign, f"\\{sign}")
    return text


def as_json(trial: Trial, record: Record, verdicts: Sequence[Verdict]) -> str:
    facts = schema.stamped(record.header) | {
        "status": status(verdicts),
        "versions": {arm: record.versions(arm) for arm in ("old", "new")},
        "launches": record.launches,
        "seconds": record.spent,
        "settings": asdict(trial.settings),
        "verdicts": [
            {**one._asdict(), "ratio": None if one.ratio is None else one.ratio._asdict()} for one in verdicts
        ],
    }
    return json.dumps(facts, indent=1) + "\n"


def junit(trial: Trial, verdicts: Sequence[Verdict]) -> str:
    """A test case a verdict; what is inconclusive is an error, for it is no pass."""
    suite = ElementTree.Element("testsuite", name=f"{trial.old.name} to {trial.new.name}")
    for one in verdicts:
        case = ElementTree.SubElement(suite, "testcase", classname=f"{one.task}.{one.phase}", name=one.metric)
        kind = JUNIT.get(one.status)
        if kind:
            ElementTree.SubElement(case, kind, type=one.status, message=printable(one.message))
    counts = [JUNIT.get(one.status) for one in verdicts]
    suite.set("tests", str(len(counts)))
    suite.set("failures", str(counts.count("failure")))
    suite.set("errors", str(counts.count("error")))
    return ElementTree.tostring(suite, encoding="unicode") + "\n"


def printable(text: str) -> str:
    """Without control characters, which no XML may hold."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "?" for letter in text)
