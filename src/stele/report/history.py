"""Pages of the lines over releases: an index with all steps, and a page for each framework. They need no network."""

import math
from collections.abc import Sequence
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from stele import files
from stele.environments.description import slug
from stele.releases import history, trend
from stele.releases.history import Place
from stele.releases.intervals import Pair
from stele.releases.trend import Series, Step
from stele.report import chart
from stele.report.chart import Chart
from stele.text import printable

TEMPLATES = Path(__file__).parent / "templates"
TITLES = {
    "step": "Duration of a step",
    "first_step": "First step",
    "import": "Import",
    "host_memory": "Peak host memory",
    "device_memory": "Peak device memory",
    "error": "Error",
}
UNITS = {"seconds": (1e3, "ms"), "bytes": (2**-20, "MiB"), "fraction": (1e2, "%")}


class Figure(NamedTuple):
    """A line on a page. ``values`` and ``intervals`` are in ``unit``."""

    anchor: str
    title: str
    unit: str
    series: Series
    intervals: dict[str, Pair]
    chart: Chart
    steps: list[Step]

    @property
    def rows(self) -> list[tuple[str, str, str, str]]:
        """The table: release, value, interval and step."""
        changes = {step.release: trend.percent(step.before, step.after) for step in self.steps}
        line = self.series.line
        return [
            (release, number(value), ends(self.intervals.get(release)), changes.get(release, ""))
            for release, value in zip(line.releases, line.values, strict=True)
        ]


class Page(NamedTuple):
    """The lines of one framework on one machine, with one Python, by cell."""

    framework: str
    place: Place
    file: str
    releases: list[str]
    cells: dict[str, list[Figure]]

    @property
    def figures(self) -> list[Figure]:
        return [figure for figures in self.cells.values() for figure in figures]


def write(folder: Path, asv: Path) -> None:
    """Write the pages of the lines in ``asv``, the folder of ``asv publish``, to ``folder``."""
    by_page = groupby(sorted(trend.all_series(asv), key=page_key), key=page_key)
    pages = [page(list(group), trend.releases(asv)) for _, group in by_page]
    found = [(page, figure, step) for page in pages for figure in page.figures for step in figure.steps]
    found.sort(key=lambda entry: entry[2].height, reverse=True)
    shown = {"day": date.today(), "pages": pages, "found": found, "percent": trend.percent}
    save(folder / "index.html", "history.html", **shown)
    for each in pages:
        save(folder / each.file, "framework.html", page=each, **shown)


def page_key(series: Series) -> tuple[str, Place]:
    return series.framework, series.place


def page(group: Sequence[Series], order: Sequence[str]) -> Page:
    """Return the page of the lines of one framework. ``order`` are all releases, the oldest first."""
    framework, place = page_key(group[0])
    present = {release for series in group for release in series.line.releases}
    releases = [release for release in order if release in present]
    ranges = {release: history.read_intervals(release, place) for release in releases}
    cells: dict[str, list[Figure]] = {}
    for series in group:
        of_line = {release: ranges[release].get(series.metric, {}).get(series.cell) for release in releases}
        known = {release: pair for release, pair in of_line.items() if pair is not None}
        cells.setdefault(series.cell, []).append(figure(series, known, releases))
    name = slug(f"{framework}-{place.machine}-py{place.python}")
    return Page(framework, place, f"{name}.html", releases, cells)


def figure(series: Series, intervals: dict[str, Pair], releases: Sequence[str]) -> Figure:
    """Return a line as it is drawn, in the unit that people read."""
    factor, unit = UNITS.get(series.unit, (1.0, series.unit))
    line = series.line._replace(values=[factor * value for value in series.line.values])
    scaled = {release: (factor * low, factor * high) for release, (low, high) in intervals.items()}
    drawn = chart.chart(
        line,
        scaled,
        releases,
        shorten=lambda release: release.removeprefix(f"{series.framework}-"),
        describe=lambda value: f"{number(value)} {unit}",
    )
    return Figure(
        slug(f"{series.metric}-{series.cell}"),
        TITLES.get(series.metric, series.metric),
        unit,
        series._replace(line=line),
        scaled,
        drawn,
        trend.steps(line),
    )


def number(value: float) -> str:
    """Return a number with four significant digits, never with an exponent."""
    digits = 3 - math.floor(math.log10(abs(value))) if value else 0
    return f"{value:,.{min(max(digits, 0), 9)}f}"


def ends(pair: Pair | None) -> str:
    return "" if pair is None else f"{number(pair[0])} to {number(pair[1])}"


def save(path: Path, template: str, **values: Any) -> None:
    import jinja2  # imported here because only this function needs it, and every command imports this module

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    files.write_text(path, environment.get_template(template).render(**values, size=chart) + "\n")


def visible(value: Any) -> Any:
    """Return text without characters that hide or reorder what follows, such as right-to-left marks."""
    is_markup = hasattr(value, "__html__")
    return printable(value, keep="") if isinstance(value, str) and not is_markup else value
