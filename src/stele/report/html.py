"""A report as one HTML page that needs no network. Needs ``pytest-stele[report]``.

Jinja escapes everything that it inserts. Vega draws the charts in the browser, from the rows of the tables in the page.
The page forbids the browser every request, and every script but the two whose hashes it names.
"""

import base64
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stele.errors import SteleError
from stele.report.content import Cell, Report, number_columns, short, shown

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

TEMPLATES = Path(__file__).parent / "templates"
INSTALL = "The HTML report needs two more packages. Install them with: pip install 'pytest-stele[report]'"
# Vega and Vega-Lite; the browser calls this with the page's own script, which draws the charts
LIBRARY = "window.vegaEmbed = vegaEmbed;"


def check_installed() -> None:
    """Raise SteleError, which says what to install, if a package is missing."""
    try:
        import jinja2  # noqa: F401
        import vl_convert  # noqa: F401
    except ImportError as error:
        raise SteleError(f"{INSTALL} ({error})") from None


def render(report: Report) -> str:
    """Return the page. Raises SteleError if a package is missing."""
    check_installed()
    import vl_convert

    scripts = [vl_convert.javascript_bundle(LIBRARY), text_of("report.js")]
    safe = [script.replace("</script", "<\\/script").replace("<!--", "<\\!--") for script in scripts]
    return (
        environment()
        .get_template("report.html")
        .render(
            report=report,
            style=text_of("report.css"),
            scripts=safe,
            hashes=[sha256(script) for script in safe],
            cells=cells(report),
        )
    )


def environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader

    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters["shown"] = shown
    made.filters["short"] = short
    made.filters["brief"] = brief
    made.filters["spec"] = spec
    made.globals["number_columns"] = number_columns
    return made


def brief(cell: Cell) -> "Markup":
    """Return a cell as escaped text; if it is long, shortened, with the whole as the title of its element."""
    from markupsafe import Markup

    whole = shown(cell)
    text = short(whole)
    return Markup.escape(text) if text == whole else Markup('<span title="{}">{}</span>').format(whole, text)


def spec(chart: dict[str, Any]) -> str:
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
