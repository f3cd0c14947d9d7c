"""Lines over releases, and their steps: as Markdown and JSON, and as the site of the releases.

The site has an index with all steps, and a page for each framework. Each page is a report, which needs no network.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from stele import files, schema, text
from stele.releases import history, trend
from stele.releases.history import Place
from stele.releases.trend import Graph, LevelStep, Rise
from stele.releases.watch import Worse
from stele.report import build, html, page
from stele.report import markdown as marked
from stele.report.content import Figure, Headline, Link, Report, Section, Table, Value
from stele.report.sections.history import figure, title_of
from stele.report.sections.launches import anchor
from stele.schema import about
from stele.text import slug

PAGES_HEAD = ("framework", "machine", "Python", "releases", "first", "last", "lines", "steps")
STEPS_HEAD = ("release", "line", "change, %", "machine")
INDEX = "index.html"
NOTHING = "Nothing has been measured yet. Measure releases with: stele releases run"
READING = (
    "A point is a release. A bar is the 98 % interval of its ratio to the release that every other one was measured "
    "beside; that release has none. Pale lines are levels, and dashed lines are steps of more than 3 %, as asv's step "
    "detection finds them, or Otava's. The axes do not start at zero."
)


class FrameworkPage(NamedTuple):
    """The lines of one framework on one machine, with one Python. Each step has a link to its figure."""

    framework: str
    place: Place
    file: str
    releases: list[str]
    lines: list[Graph]
    steps: list[tuple[LevelStep, Link]]
    report: Report


def write_site(folder: Path, asv: Path) -> None:
    """Write the pages of the lines in ``asv``, the folder of ``asv publish``, to ``folder``."""
    by_page = groupby(sorted(trend.graphs(asv), key=page_key), key=page_key)
    pages = [framework_page(list(group), trend.releases(asv)) for _, group in by_page]
    files.write_text(folder / INDEX, html.render(index(pages)))
    for each in pages:
        files.write_text(folder / each.file, html.render(each.report))


def page_key(graph: Graph) -> tuple[str, Place]:
    return graph.framework, graph.place


def framework_page(group: Sequence[Graph], order: Sequence[str]) -> FrameworkPage:
    """Return the page of the lines of one framework. ``order`` are all releases, the oldest first."""
    framework, place = page_key(group[0])
    present = {release for graph in group for release in graph.line.releases}
    releases = [release for release in order if release in present]
    intervals_of = {release: history.read_intervals(release, place) for release in releases}
    cells = list(dict.fromkeys(graph.cell for graph in group))
    lines = sorted(group, key=lambda graph: cells.index(graph.cell))
    sections = []
    for cell, listed in groupby(lines, key=lambda graph: graph.cell):
        figures = []
        for graph in listed:
            intervals = {release: intervals_of[release].get(graph.metric, {}).get(cell) for release in releases}
            figures.append(figure(title_of(graph), graph, releases, intervals, with_steps=True))
        sections.append(Section(anchor(f"cell {cell}"), cell, "", figures, compact=True))
    sections = build.with_unique_names(sections)
    file = slug(f"{framework}-{place.machine}-py{place.python}") + ".html"
    tables = [figure.table for section in sections for figure in section.figures]
    steps = [
        (step, Link(table.title, f"{file}#figure-{table.name}"))
        for graph, table in zip(lines, tables, strict=True)
        for step in trend.steps(graph.line)
    ]
    sentence = f"{releases[0]} to {releases[-1]} on {place.machine}, Python {place.python}"
    report = report_of(f"Releases of {framework}", sentence, sections)._replace(parent=Link("All frameworks", INDEX))
    return FrameworkPage(framework, place, file, releases, lines, steps, report)


def index(pages: Sequence[FrameworkPage]) -> Report:
    """Return the page with all frameworks, and all steps, the largest first."""
    steps = [(each, step, link) for each in pages for step, link in each.steps]
    steps.sort(key=lambda entry: entry[1].height, reverse=True)
    lines: list[list[Value]] = [
        [
            Link(each.framework, each.file),
            *each.place,
            len(each.releases),
            each.releases[0],
            each.releases[-1],
            len(each.lines),
            len(each.steps),
        ]
        for each in pages
    ]
    changes: list[list[Value]] = [
        [step.release, link, 100 * (step.after / step.before - 1) if step.before else None, each.place.machine]
        for each, step, link in steps
    ]
    counted = f"{text.counted(len(steps), 'step')} in {text.counted(sum(len(each.lines) for each in pages), 'line')}"
    sections = [
        Section("lines", "Lines", "", [Figure(Table("lines", "Lines", PAGES_HEAD, lines))]),
        Section(
            "steps", "Steps", "The largest step is at the top.", [Figure(Table("steps", "Steps", STEPS_HEAD, changes))]
        ),
    ]
    sentence = f"{counted} over the releases of frameworks" if pages else NOTHING
    return report_of("Releases of frameworks", sentence, sections if pages else [])


def report_of(title: str, sentence: str, sections: Sequence[Section]) -> Report:
    return Report(Headline("", title, sentence, [], []), [f"Written on {date.today()}."], [], sections, READING)


class RiseEntry(msgspec.Struct, frozen=True):
    """A line that is higher at its end than before; of code of the user, an item that is worse."""

    line: Annotated[str, about("metric, cell and framework; of code of your own, item and metric")]
    release: Annotated[str, about("the release at which the line rose")]
    before: Annotated[float | None, about("the level before; null for code of your own", "s, bytes or fraction")]
    after: Annotated[float | None, about("the level after; null for code of your own", "s, bytes or fraction")]
    machine: Annotated[str, about("the machine on which the line was measured")]
    otava_agrees: Annotated[
        bool | None, about("whether Otava finds a change there, too; null if Otava is not available")
    ]
    message: Annotated[str, about("the rise in words")]


class NightFile(msgspec.Struct, frozen=True):
    """Written to the file that `--json` names."""

    releases: Annotated[tuple[str, ...], about("the releases that have new numbers")]
    rises: Annotated[tuple[RiseEntry, ...], about("all rises, earlier ones included")]
    not_judged: Annotated[dict[str, str], about("why a release could not be judged with code of your own, by name")] = (
        msgspec.field(default_factory=dict)
    )


def overview(site: Path) -> str:
    """Return a list of all steps, the largest first, and a table of the lines: ends, change and steps."""
    head = ["line", "releases", "first", "last", "change", "steps"]
    rows, all_steps = [], []
    for graph in trend.graphs(site):
        name, line = graph.title, graph.line
        changes, first, last = trend.steps(line), line.values[0], line.values[-1]
        all_steps += [(name, step) for step in changes]
        listed = "; ".join(f"{step.release} {trend.percent(step.before, step.after)}" for step in changes)
        ends = f"{line.releases[0]} to {line.releases[-1]}"
        rows.append(
            [
                name,
                f"{len(line.values)}, {ends}",
                f"{first:.4g}",
                f"{last:.4g}",
                trend.percent(first, last),
                listed or "none",
            ]
        )
    all_steps.sort(key=lambda entry: entry[1].height, reverse=True)
    items = [f"- {step.release}: {name}, {trend.percent(step.before, step.after)}" for name, step in all_steps]
    return "\n".join([*items, "", page.table(head, rows)])


def markdown(rises: Sequence[Rise], releases: Sequence[str]) -> str:
    """Return the report: the rises at the releases measured now, and the earlier ones."""
    new = [rise for rise in rises if rise.release in releases]
    old = [rise for rise in rises if rise.release not in releases]
    parts = [f"# {len(new)} steps in {len(releases)} releases\n" if releases else "# No new releases\n"]
    for head, listed in (("New", new), ("Known", old)):
        if listed:
            parts.append(f"## {head}\n" + "".join(f"- {rise.message}\n" for rise in listed))
    return "\n".join(parts)


def of_code(
    worse: Sequence[Worse],
    new: Sequence[Worse],
    judged: Sequence[str],
    *,
    failures: Mapping[str, str],
    commands: Mapping[str, str],
) -> str:
    """Return the report on code of the user: for each release what is worse since then, and how to see it again."""
    counts = f"{text.counted(len(new), 'new line')} in {text.counted(len(judged), 'release')}"
    parts = [f"# {counts}\n" if judged else "# No release was judged\n"]
    for release in dict.fromkeys(each.release for each in worse):
        of_release = [each for each in worse if each.release == release]
        lines = "".join(f"- {'new: ' if each in new else ''}{marked.line(each.message)}\n" for each in of_release)
        parts.append(f"## {release} is worse\n{lines}\nAgain: {marked.code(commands.get(release, ''))}\n")
    if failures:
        lines = "".join(
            f"- {name}: {marked.line(why.splitlines()[0])} Again: {marked.code(commands.get(name, ''))}\n"
            for name, why in failures.items()
        )
        parts.append(f"## Not judged\n{lines}")
    return "\n".join(parts)


def to_json(rises: Sequence[Rise | Worse], releases: Sequence[str], not_judged: Mapping[str, str] = {}) -> str:
    """Return all rises, earlier ones included, and the releases measured now."""
    entries = tuple(RiseEntry(**{**rise._asdict(), "message": rise.message}) for rise in rises)
    return schema.document(NightFile(tuple(releases), entries, dict(not_judged)))
