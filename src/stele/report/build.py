"""Put a report together from its sources: the summary, and the sections for which something was measured."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from stele import text
from stele.gate.outcome import Outcome
from stele.measuring.run import Run
from stele.measuring.settings import Settings
from stele.report import headline
from stele.report.content import Chart, Figure, Headline, Report, Section, Table, is_number
from stele.report.sections import (
    explanation,
    history,
    in_force,
    ladder,
    launches,
    memory,
    modes,
    suite,
    time_to_accuracy,
    verdicts,
    warm_up,
)
from stele.report.sources import Sources
from stele_worker.protocol import TIME_TO_ACCURACY

READING = "A ratio is NEW / OLD; an interval of a ratio has 98 %, and stays valid however often it is looked at."


def report(sources: Sources) -> Report:
    """Return the report. A new section is one more module and one more line here."""
    gates, runs = sources.gates, [run for run in sources.runs if run.phase != TIME_TO_ACCURACY]
    trainings = [run for run in sources.runs if run.phase == TIME_TO_ACCURACY]
    sections = (
        verdicts.section(gates),
        explanation.section(sources.explanations),
        suite.section(runs),
        time_to_accuracy.section(trainings),
        launches.section(gates),
        suite.history(runs),
        warm_up.section(gates, runs),
        ladder.section(gates, sources.ladders),
        memory.section(gates, runs),
        modes.section(sources.modes),
        history.section(sources.lines),
        in_force.section(gates, sources.runs),
    )
    top = with_explanations(headline.of_gates(gates), sources) if gates else of_measurements(sources)
    facts = [*map(gate_facts, gates), *run_facts(sources.runs)]
    shown = [with_drawable_charts(section) for section in sections if section is not None]
    return Report(top, facts, sources.notes, with_unique_names(shown), READING)


def with_drawable_charts(section: Section) -> Section:
    """Return the section without the charts of which an axis has no number: such an axis has no extent."""
    figures = [
        figure._replace(charts=[chart for chart in figure.charts if is_drawable(chart, figure.table)])
        for figure in section.figures
    ]
    return section._replace(figures=figures)


def is_drawable(chart: Chart, table: Table) -> bool:
    return all(any(is_number(row[column]) for row in table.rows) for column in axes(chart.spec))


def axes(spec: Any) -> Iterator[int]:
    """Yield the columns of the numbers that a chart places: ``{"field": "c3", "type": "quantitative"}``."""
    if isinstance(spec, dict):
        if spec.get("type") == "quantitative" and "field" in spec:
            yield int(spec["field"].removeprefix("c"))
        for part in spec.values():
            yield from axes(part)
    elif isinstance(spec, list):
        for part in spec:
            yield from axes(part)


def with_unique_names(sections: Sequence[Section]) -> list[Section]:
    """Return the sections in which no two tables have the same name, such as those of two gates of one cell."""
    counts: Counter[str] = Counter()

    def renamed(figure: Figure) -> Figure:
        name = figure.table.name
        counts[name] += 1
        number = f"-{counts[name]}" if counts[name] > 1 else ""
        return figure._replace(table=figure.table._replace(name=f"{name}{number}"))

    return [section._replace(figures=[renamed(figure) for figure in section.figures]) for section in sections]


def with_explanations(top: Headline, sources: Sources) -> Headline:
    """Return the summary with the operations that contribute most, after the checks that decided."""
    sentences = [
        explanation.sentence(cell, comparison)
        for document in sources.explanations
        for cell, comparison in document.cells.items()
    ]
    return top._replace(causes=[*top.causes, *sentences[: headline.MOST]])


def of_measurements(sources: Sources) -> Headline:
    """Return the summary of a report without a gate."""
    cells = {(run.task, run.phase, run.environment) for run in sources.runs}
    tasks, environments = ({key[part] for key in cells} for part in (0, 2))
    sentence = "These are measurements of one version each, so there is no verdict on an upgrade."
    if cells:
        sentence = (
            f"{len(sources.runs)} launches of {len(tasks)} networks in {len(environments)} environments. "
            "Each is one version, so there is no verdict on an upgrade."
        )
    return Headline("", "Measurements", sentence, [], [])


def gate_facts(gate: Outcome) -> str:
    """Return how much was measured, and where."""
    machine, settings = gate.header["machine"], gate.header["settings"]
    processor = machine.get("processor") or "an unknown processor"
    where = f"{processor}, {machine.get('processors')} processors, {machine.get('system')}"
    try:
        how = Settings(**settings).summary()
    # a newer version has more settings
    except TypeError:
        how = ", ".join(f"{name} {value}" for name, value in settings.items())
    day = min((run.when[:10] for each_pass in gate.passes for run in each_pass.runs.values()), default=None)
    took = f"{gate.seconds / 60:.0f} minutes" if gate.seconds >= 90 else text.counted(round(gate.seconds), "second")
    what = f"{text.counted(gate.launches, 'launch')} in {took}"
    if not gate.launches:
        what = f"No launch was timed. Parity took {took}" if gate.seconds else "Nothing was measured"
    return f"{what} on {where}; {how}." + (f" Measured on {day}." if day else "")


def run_facts(runs: Sequence[Run]) -> list[str]:
    if not runs:
        return []
    days, machine = sorted({run.when[:10] for run in runs}), runs[-1].machine
    return [f"Runs of {text.period(days)}; the newest on {machine.processor}, {machine.processors} processors."]
