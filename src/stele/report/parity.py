"""Parity, capabilities and defaults as terminal lines and Markdown. Returns text, prints nothing."""

from collections.abc import Iterable, Sequence
from typing import Any

from stele.environments import Environment
from stele.measuring.settings import Settings
from stele.parity import ladder
from stele.parity.capabilities import EXPECTED, Answer
from stele.parity.defaults import Change
from stele.parity.ladder import Ascent, Finding
from stele.report import page
from stele.report.results import place
from stele.text import aligned, releases, word


def climbed(environment: str, task: str, findings: Sequence[Finding]) -> str:
    """``torch  cnn  rung 9  largest error 3.4e-07 at conv3.weight``, or where it breaks."""
    parts = [environment, task, f"rung {ladder.reached(findings)}"]
    first = ladder.broken(findings)
    return "  ".join([*parts, ladder.sentence(first) if first else "all hold"])


def ladders(found: dict[tuple[Environment, str], Ascent], settings: Settings) -> str:
    """The rungs by framework, a table a task, as Markdown: of each recipe the largest relative error on each rung."""
    epsilon = ladder.EPSILON[settings.precision]
    rungs = range(1, 1 + max(finding.rung for ascent in found.values() for finding in ascent.findings))
    head = ["framework", "version", "climbed", *ladder.TITLES[: len(rungs)]]
    parts = []
    for task in dict.fromkeys(task for _, task in found):
        rows = [
            [row.label, *ascent_row(ascent, rungs, epsilon)]
            for (row, of), ascent in sorted(found.items(), key=lambda climbed: place(climbed[0][0].name))
            if of == task
        ]
        parts.append(f"**{task}**, {settings.sentence()}\n\n{page.table(head, rows)}")
    return "\n\n".join(parts)


def ascent_row(ascent: Ascent, rungs: Iterable[int], epsilon: float) -> list[str]:
    """One recipe: its releases, the day, and each rung."""
    cells = {finding.rung: rung_cell(finding, epsilon) for finding in ascent.findings}
    return [releases(ascent.versions), ascent.day, *(cells.get(rung, "none") for rung in rungs)]


def rung_cell(finding: Finding, epsilon: float) -> str:
    """``3.4e-07 (3 ulp)``, a word where there is no number, and a sentence where it breaks or is about accuracy."""
    if finding.word == "breaks":
        return f"broken: {finding.sentence}"
    if finding.sentence:
        return finding.sentence
    if not finding.error:
        return "exact" if finding.error == 0 else "holds"
    return f"{finding.error:.1e} ({finding.error / epsilon:,.3g} ulp)"


MARKS = {"yes": "yes", "no": "no", "wrong": "**wrong**", "failed": "**failed**"}


def answers(environment: str, found: dict[str, Answer]) -> list[str]:
    """``torch  gradient penalty  yes``, a line a capability."""
    rows = [[environment, EXPECTED[name][0], answer.word, answer.reason] for name, answer in found.items()]
    return aligned(rows)


def capabilities(found: dict[Environment, dict[str, Answer]]) -> str:
    """Who can do what, as Markdown, with the reasons below."""
    head = ["framework", *(title for title, _ in EXPECTED.values())]
    rows = [[row.label, *(MARKS[of[name].word] for name in EXPECTED)] for row, of in found.items()]
    reasons = [
        f"- {row.label}, {EXPECTED[name][0]}: {page.escaped(answer.reason)}"
        for row, of in found.items()
        for name, answer in of.items()
        if answer.reason
    ]
    return "\n\n".join(["**Capabilities**", page.table(head, rows), "\n".join(reasons)])


def facts(table: dict[str, Any]) -> list[str]:
    """What a framework does by default, a line a fact."""
    return aligned([[fact, word(value)] for fact, value in table.items()])


def changes(old: str, new: str, found: Sequence[Change]) -> list[str]:
    """``epsilon  1e-7  →  1e-8``, a line a change."""
    if not found:
        return [f"{old} and {new} do the same when nothing is passed, as far as is asked."]
    return aligned([["", old, "", new], *([c.fact, word(c.old), "→", word(c.new)] for c in found)])
