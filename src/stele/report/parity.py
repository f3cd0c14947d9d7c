"""Parity, capabilities and defaults as terminal lines and Markdown. Returns text, prints nothing."""

from collections.abc import Iterable, Sequence
from typing import Any

from stele.environments import Environment
from stele.measuring.settings import Settings
from stele.parity import ladder
from stele.parity.capabilities import EXPECTED, Answer
from stele.parity.defaults import Change
from stele.parity.ladder import Finding, LadderResult
from stele.report import page
from stele.report.results import place
from stele.text import aligned, or_none, releases


def climbed(environment: str, task: str, findings: Sequence[Finding]) -> str:
    """``torch  cnn  rung 9  largest error 3.4e-07 at conv3.weight``, or where it breaks."""
    parts = [environment, task, f"rung {ladder.highest_rung(findings)}"]
    first = ladder.first_difference(findings)
    return "  ".join([*parts, ladder.message(first) if first else "all hold"])


def ladders(found: dict[tuple[Environment, str], LadderResult], settings: Settings) -> str:
    """The rungs by framework, a table a task, as Markdown: of each recipe the largest relative error on each rung."""
    epsilon = ladder.EPSILON[settings.precision]
    rungs = range(1, 1 + max(finding.rung for result in found.values() for finding in result.findings))
    head = ["framework", "version", "climbed", *ladder.TITLES[: len(rungs)]]
    parts = []
    for task in dict.fromkeys(task for _, task in found):
        rows = [
            [row.label, *ascent_row(result, rungs, epsilon)]
            for (row, of), result in sorted(found.items(), key=lambda climbed: place(climbed[0][0].name))
            if of == task
        ]
        parts.append(f"**{task}**, {settings.summary()}\n\n{page.table(head, rows)}")
    return "\n\n".join(parts)


def ascent_row(result: LadderResult, rungs: Iterable[int], epsilon: float) -> list[str]:
    """One recipe: its releases, the day, and each rung."""
    cells = {finding.rung: rung_cell(finding, epsilon) for finding in result.findings}
    return [releases(result.versions), result.day, *(cells.get(rung, "none") for rung in rungs)]


def rung_cell(finding: Finding, epsilon: float) -> str:
    """``3.4e-07 (3 ulp)``, a status where there is no number, and a message where it breaks or is about accuracy."""
    if finding.status == "differs":
        return f"broken: {finding.message}"
    if finding.message:
        return finding.message
    if not finding.error:
        return "exact" if finding.error == 0 else "agrees"
    return f"{finding.error:.1e} ({finding.error / epsilon:,.3g} ulp)"


MARKS = {"yes": "yes", "no": "no", "wrong": "**wrong**", "failed": "**failed**"}


def answers(environment: str, found: dict[str, Answer]) -> list[str]:
    """``torch  gradient penalty  yes``, a line a capability."""
    rows = [[environment, EXPECTED[name][0], answer.status, answer.reason] for name, answer in found.items()]
    return aligned(rows)


def capabilities(found: dict[Environment, dict[str, Answer]]) -> str:
    """Who can do what, as Markdown, with the reasons below."""
    head = ["framework", *(title for title, _ in EXPECTED.values())]
    rows = [[row.label, *(MARKS[of[name].status] for name in EXPECTED)] for row, of in found.items()]
    reasons = [
        f"- {row.label}, {EXPECTED[name][0]}: {page.escaped(answer.reason)}"
        for row, of in found.items()
        for name, answer in of.items()
        if answer.reason
    ]
    return "\n\n".join(["**Capabilities**", page.table(head, rows), "\n".join(reasons)])


def facts(table: dict[str, Any]) -> list[str]:
    """What a framework does by default, a line a fact."""
    return aligned([[fact, or_none(value)] for fact, value in table.items()])


def changes(old: str, new: str, found: Sequence[Change]) -> list[str]:
    """``epsilon  1e-7  →  1e-8``, a line a change."""
    if not found:
        return [f"{old} and {new} do the same when nothing is passed, as far as is asked."]
    return aligned([["", old, "", new], *([c.fact, or_none(c.old), "→", or_none(c.new)] for c in found)])
