"""A report for programs: CSV, OpenMetrics and JUnit. The functions return text and print nothing."""

import csv
import io
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from stele.gate.entries import Verdict
from stele.gate.outcome import Outcome
from stele.measuring.run import Run
from stele.report.content import Link, Report, Value
from stele.report.sections.suite import by_environment
from stele.statistics import median
from stele.text import printable

JUNIT = {"REGRESSED": "failure", "BROKEN": "failure", "MISSING": "failure", "INCONCLUSIVE": "error"}
# a spreadsheet calculates text that starts with one of these
FORMULA = ("=", "+", "-", "@", "\t")


def to_csv(report: Report) -> dict[str, str]:
    """Return the content of one CSV file for each table, by the name of the table."""
    return {
        figure.table.name: csv_of(figure.table.head, figure.table.rows)
        for section in report.sections
        for figure in section.figures
    }


def csv_of(head: Sequence[str], rows: Sequence[Sequence[Value]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(csv_cell, head))
    writer.writerows(map(csv_cell, row) for row in rows)
    return text.getvalue()


def csv_cell(cell: Value) -> Value:
    """Return a cell in full precision; text that a spreadsheet would calculate gets an apostrophe."""
    if isinstance(cell, Link):
        return csv_cell(cell.text)
    if not isinstance(cell, str):
        return cell
    text = printable(cell, keep="")
    return f"'{text}" if text.startswith(FORMULA) else text


def to_junit(gates: Sequence[Outcome]) -> str:
    """Return a suite for each gate, with a test case for each verdict. INCONCLUSIVE is an error: it does not pass."""
    suites = [junit_suite(gate) for gate in gates]
    if len(suites) == 1:
        return ElementTree.tostring(suites[0], encoding="unicode") + "\n"
    top = ElementTree.Element("testsuites")
    top.extend(suites)
    return ElementTree.tostring(top, encoding="unicode") + "\n"


def junit_suite(gate: Outcome) -> ElementTree.Element:
    name = printable(f"{gate.header['old']} to {gate.header['new']}", keep="")
    suite = ElementTree.Element("testsuite", name=name)
    for verdict in gate.verdicts:
        names = {"classname": f"{verdict.task}.{verdict.phase}", "name": verdict.metric}
        case = ElementTree.SubElement(suite, "testcase", {key: printable(text, keep="") for key, text in names.items()})
        kind = JUNIT.get(verdict.status)
        if kind:
            ElementTree.SubElement(case, kind, type=verdict.status, message=junit_text(verdict.message))
    counts = [JUNIT.get(verdict.status) for verdict in gate.verdicts]
    whole = gate.together
    if whole is not None:
        case = ElementTree.SubElement(suite, "testcase", {"classname": "changed", "name": "all changes together"})
        if whole.code:
            text = junit_text("\n".join([whole.sentence, *whole.lines]))
            ElementTree.SubElement(case, "error", type=f"exit code {whole.code}", message=text)
        counts.append("error" if whole.code else None)
    suite.set("tests", str(len(counts)))
    suite.set("failures", str(counts.count("failure")))
    suite.set("errors", str(counts.count("error")))
    return suite


def junit_text(text: str) -> str:
    """Return text without control characters and half surrogates, which XML does not allow."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "?" for letter in text)


def to_openmetrics(gates: Sequence[Outcome], runs: Sequence[Run]) -> str:
    """Return gauges: the ratio of each metric with its interval, its status, and the results of the suite."""
    families = {
        "stele_ratio": ("NEW / OLD of a metric; bound is low, middle or high.", list(ratios(gates))),
        "stele_status": ("1 for the status of a check.", list(statuses(gates))),
        "stele_step_seconds": ("Median duration of a step, of the newest Run.", list(steps(runs))),
    }
    lines = []
    for name, (meaning, samples) in families.items():
        if samples:
            lines += [f"# TYPE {name} gauge", f"# HELP {name} {meaning}"]
            lines += [f"{name}{{{labels}}} {value!r}" for labels, value in samples]
    return "\n".join([*lines, "# EOF"]) + "\n"


def ratios(gates: Sequence[Outcome]) -> Iterator[tuple[str, float]]:
    for gate in gates:
        for verdict in gate.verdicts:
            for bound, value in zip(("low", "middle", "high"), verdict.ratio or (), strict=False):
                if value is not None:
                    yield labels(**of_check(gate, verdict), bound=bound), float(value)


def statuses(gates: Sequence[Outcome]) -> Iterator[tuple[str, float]]:
    for gate in gates:
        for verdict in gate.verdicts:
            yield labels(**of_check(gate, verdict), status=verdict.status), 1.0


def of_check(gate: Outcome, verdict: Verdict) -> dict[str, str]:
    arms = {arm: gate.header[arm] for arm in ("old", "new")}
    return {**arms, "task": verdict.task, "phase": verdict.phase, "metric": verdict.metric}


def steps(runs: Sequence[Run]) -> Iterator[tuple[str, float]]:
    cells: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        cells.setdefault((run.task, run.phase), []).append(run)
    for (task, phase), of_cell in cells.items():
        for group in by_environment(of_cell):
            run = group[-1]
            yield (
                labels(task=task, phase=phase, environment=run.environment),
                median(run.counted_seconds).middle,
            )


def labels(**values: str) -> str:
    return ",".join(f'{name}="{label_value(text)}"' for name, text in values.items())


def label_value(text: str) -> str:
    """Return text as OpenMetrics quotes it."""
    return printable(text, keep="").replace("\\", "\\\\").replace('"', '\\"')
