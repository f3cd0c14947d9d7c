"""Format parity, capabilities and defaults as terminal lines and Markdown. Returns text, prints nothing."""

from collections.abc import Iterable, Mapping, Sequence

from stele.environments import Environment
from stele.measuring.settings import Settings
from stele.parity import ladder
from stele.parity.capabilities import EXPECTED, CapabilityStatus
from stele.parity.defaults import DefaultChange
from stele.parity.ladder import Finding, LadderResult
from stele.report import page
from stele.report.results import table_order
from stele.text import align, or_none, versions


def ladder_line(environment: str, task: str, findings: Sequence[Finding]) -> str:
    """Return one recipe's line: ``torch  cnn  rung 9  all rungs agree``, or the first difference."""
    parts = [environment, task, f"rung {ladder.highest_rung(findings)}"]
    difference = ladder.first_difference(findings)
    return "  ".join([*parts, ladder.message(difference) if difference else "all rungs agree"])


def devices_line(environment: Environment, task: str, finding: Finding, settings: Settings) -> str:
    """Return ``torch  transformer  2 devices, DistributedDataParallel: the same as one``, or how they differ."""
    start = f"{environment.name}  {task}  {settings.devices} devices, {environment.support.parallel}: "
    if finding.status == "differs":
        return start + ladder.message(finding)
    notes = [text for text in (f"error {finding.error or 0:.1e}", finding.message) if text]
    return f"{start}the same as one device ({'; '.join(notes)})"


def ladder_tables(results: dict[tuple[Environment, str], LadderResult], settings: Settings) -> str:
    """Return a Markdown table for each task: the largest relative error of each recipe on each rung."""
    epsilon = ladder.EPSILON[settings.arithmetic]
    rungs = range(1, 1 + max(finding.rung for result in results.values() for finding in result.findings))
    head = ["framework", "version", "date", *ladder.TITLES[: len(rungs)]]
    parts = []
    for task in dict.fromkeys(task for _, task in results):
        rows = [
            [environment.label, *result_row(result, rungs, epsilon)]
            for (environment, name), result in sorted(results.items(), key=lambda cell: table_order(cell[0][0].name))
            if name == task
        ]
        parts.append(f"**{task}**, {settings.summary()}\n\n{page.table(head, rows)}")
    return "\n\n".join(parts)


def result_row(result: LadderResult, rungs: Iterable[int], epsilon: float) -> list[str]:
    """Return the table row of one recipe: its versions, the day, and each rung."""
    cells = {finding.rung: rung_cell(finding, epsilon) for finding in result.findings}
    return [versions(result.versions), result.day, *(cells.get(rung, "none") for rung in rungs)]


def rung_cell(finding: Finding, epsilon: float) -> str:
    """Return ``3.4e-07 (3 ulp)``, or the message if there is one, or the status if there is no number."""
    if finding.status == "differs":
        return f"differs: {finding.message}"
    if finding.message:
        return finding.message
    if not finding.error:
        return "exact" if finding.error == 0 else "agrees"
    return f"{finding.error:.1e} ({finding.error / epsilon:,.3g} ulp)"


MARKS = {"yes": "yes", "no": "no", "wrong": "**wrong**", "failed": "**failed**"}


def answer_lines(environment: str, answers: dict[str, CapabilityStatus]) -> list[str]:
    """Return a line for each capability: ``torch  gradient penalty  yes``."""
    rows = [[environment, EXPECTED[name][0], answer.status, answer.reason] for name, answer in answers.items()]
    return align(rows)


def capability_table(answers: dict[Environment, dict[str, CapabilityStatus]]) -> str:
    """Return a Markdown table of frameworks and capabilities, with the reasons below."""
    head = ["framework", *(title for title, _ in EXPECTED.values())]
    rows = [
        [environment.label, *(MARKS[by_name[name].status] for name in EXPECTED)]
        for environment, by_name in answers.items()
    ]
    reasons = [
        f"- {environment.label}, {EXPECTED[name][0]}: {page.escape_cell(answer.reason)}"
        for environment, by_name in answers.items()
        for name, answer in by_name.items()
        if answer.reason
    ]
    return "\n\n".join(["**Capabilities**", page.table(head, rows), "\n".join(reasons)])


def fact_lines(table: Mapping[str, object]) -> list[str]:
    """Return a line for each default of a framework."""
    return align([[fact, or_none(value)] for fact, value in table.items()])


def change_lines(old: str, new: str, changes: Sequence[DefaultChange]) -> list[str]:
    """Return a line for each change: ``epsilon  1e-7  →  1e-8``."""
    if not changes:
        return [f"{old} and {new} have the same recorded defaults."]
    return align([["", old, "", new], *([c.fact, or_none(c.old), "→", or_none(c.new)] for c in changes)])
