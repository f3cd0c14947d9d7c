"""A report as one HTML page that needs no network. Needs ``pytest-stele[report]``.

Jinja escapes everything that it inserts. Vega draws the charts in the browser, from the rows of the tables in the page.
The page forbids the browser every request, and every script but those whose hashes it names.
"""

import base64
import functools
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stele.report import charts
from stele.report.content import Link, Report, Spec, Value, number_columns, short, shown
from stele.text import printable

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

TEMPLATES = Path(__file__).parent / "templates"
# Vega and Vega-Lite; the browser calls this with the page's own script, which draws the charts
LIBRARY = "window.vegaEmbed = vegaEmbed;"


def render(report: Report) -> str:
    """Return the page. Raises SteleError if a package is missing."""
    figures = [figure for section in report.sections for figure in section.figures]
    library = [bundle()] if any(figure.charts for figure in figures) else []
    scripts = [*library, text_of("page.js")]
    safe = [script.replace("</script", "<\\/script").replace("<!--", "<\\!--") for script in scripts]
    return (
        environment()
        .get_template("page.html")
        .render(
            report=report,
            style=text_of("page.css"),
            scripts=safe,
            hashes=[sha256(script) for script in safe],
            cells=cells(report),
        )
    )


@functools.cache
def bundle() -> str:
    """Return the scripts of Vega and Vega-Lite."""
    return str(charts.load_converter().javascript_bundle(LIBRARY))


@functools.cache
def environment() -> "Environment":
    # imported here because only this function needs it, and every command imports this module
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters["shown"] = shown
    environment.filters["short"] = short
    environment.filters["brief"] = brief
    environment.filters["spec"] = spec
    environment.globals["number_columns"] = number_columns
    return environment


def visible(value: Any) -> Any:
    """Return text without characters that hide or reorder what follows, such as right-to-left marks."""
    is_markup = hasattr(value, "__html__")
    return printable(value, keep="") if isinstance(value, str) and not is_markup else value


def brief(cell: Value) -> "Markup":
    """Return a cell as escaped text; if it is long, shortened, with the whole as the title of its element."""
    from markupsafe import Markup

    if isinstance(cell, Link):
        return Markup('<a href="{}">{}</a>').format(cell.target, brief(cell.text))
    whole = shown(cell)
    text = short(whole)
    return Markup.escape(text) if text == whole else Markup('<span title="{}">{}</span>').format(whole, text)


def spec(chart: Spec) -> str:
    """Return a chart's description as JSON, for an attribute."""
    return json.dumps(chart, ensure_ascii=False, separators=(",", ":"))


def cells(report: Report) -> list[str]:
    """Return the cells of the verdicts, to choose from."""
    return sorted(
        {
            str(row[1])
            for section in report.sections
            if section.anchor == "verdicts"
            for figure in section.figures
            for row in figure.table.rows
        }
    )


def sha256(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def text_of(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")
