"""The parity ladder as a heat map: which quantity of which recipe agrees with the reference, and how closely."""

from collections.abc import Iterable, Iterator, Sequence

from stele.gate.outcome import Outcome
from stele.parity.ladder import TITLES, Finding, LadderFile
from stele.report import charts
from stele.report.content import Chart, Figure, Section, Table, Value
from stele.report.sections.launches import anchor

# of the tolerance
NEAR = 0.3
HEAD = ("recipe", "rung", "result", "error", "tolerance", "where", "in words")
TEXT = (
    "Each column is a quantity that a network computes, and each colour says how it compares with the reference: a "
    "plain implementation in 64 bits. Errors are relative. The first rung that differs causes those to its right."
)

# by recipe
Findings = dict[str, Sequence[Finding]]


def section(gates: Sequence[Outcome], ladders: Iterable[LadderFile]) -> Section | None:
    by_task: dict[str, Findings] = {}
    for gate in gates:
        for (task, arm), findings in gate.findings.items():
            name = f"{arm.upper()}: {gate.header.get(arm, arm)}"
            by_task.setdefault(task, {})[name] = findings
    for content in ladders:
        for recipe in content.recipes:
            by_task.setdefault(recipe.task, {})[recipe.framework] = recipe.rungs
    figures = [figure(task, findings) for task, findings in by_task.items()]
    return Section("parity", "Parity ladder", TEXT, figures) if figures else None


def figure(task: str, findings: Findings) -> Figure:
    rows = [row for recipe, listed in findings.items() for row in rows_of(recipe, listed)]
    table = Table(anchor(f"parity {task}"), f"Parity of {task}", HEAD, rows)
    differs = sorted({str(row[0]) for row in rows if row[2] == "differs"})
    summary = f"Heat map of {len(findings)} recipes of {task}. " + (
        f"These differ: {', '.join(differs)}." if differs else "No rung differs."
    )
    return Figure(table, [Chart(f"{task}: parity", charts.ladder(HEAD, TITLES), summary)])


def rows_of(recipe: str, findings: Sequence[Finding]) -> Iterator[list[Value]]:
    for finding in findings:
        error = "" if finding.error is None else f"{finding.error:.1g}"
        limit = None if finding.limit is None else f"{finding.limit:g}"
        words = " ".join(finding.message.split())
        yield [recipe, finding.title, result(finding), error, limit, finding.where, words]


def result(finding: Finding) -> str:
    """Return one of ``charts.RUNGS``."""
    if finding.status != "agrees":
        return "differs" if finding.status == "differs" else "not compared"
    if finding.error == 0:
        return "exact"
    near = finding.error is not None and finding.limit and finding.error > NEAR * finding.limit
    return "near the tolerance" if near else "agrees"
