"""The pictures of README.md: a report in Chromium, and the results of the suite from the table of README.md.

    python -m studies pictures

Chromium is searched on PATH; STELE_CHROMIUM names another one.
"""

import os
import re
import shutil
import tempfile
from pathlib import Path

import vl_convert
from playwright.sync_api import sync_playwright

from stele import __main__ as entry_point
from stele import files
from stele.errors import SteleError
from stele.report import page

ROOT = Path(__file__).parents[1]
GATE = ROOT / "docs/results/gates/tensorflow-cpu-2.20.0-2.21.0.json"
REPORT, RESULTS = ROOT / "docs/report.png", ROOT / "docs/results/results.svg"
WINDOW = {"width": 1280, "height": 800}
GREY = "#6e7781"  # readable on white and on black
COLUMNS = {"training": "training ms/step", "inference": "inference ms/batch"}


def main() -> None:
    draw_report()
    draw_results()


def draw_report() -> None:
    """Draw what a reviewer sees without scrolling."""
    chromium = os.environ.get("STELE_CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        raise SteleError("chromium is not on PATH. Install it with: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        written = Path(folder) / "report.html"
        entry_point.main(["report", str(GATE), "--html", str(written)])
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        window = browser.new_page(viewport=WINDOW, color_scheme="light")
        window.goto(written.as_uri())
        window.wait_for_selector("html[data-complete]", state="attached")
        window.screenshot(path=REPORT)
        browser.close()


def draw_results() -> None:
    """Draw the generated table of README.md."""
    text = (ROOT / "README.md").read_text(encoding="utf-8").partition(page.BEGIN)[2].partition(page.END)[0]
    values = list(bars(text))
    if not values:
        raise SteleError(
            "README.md has no table of results. Write it with: stele table --steps --write README.md"
        )
    files.write_text(RESULTS, vl_convert.vegalite_to_svg(chart(values)))


def bars(text: str):
    """Yield {task, phase, framework, low, middle, high} for each cell with an interval, in milliseconds."""
    task, head = "", []
    for line in text.splitlines():
        if match := re.match(r"\*\*(\w+)\*\*", line):
            task = match[1]
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if cells[:1] == ["framework"]:
            head = cells
        for phase, title in COLUMNS.items() if cells and head else ():
            if match := re.fullmatch(r"\[(\S+) (\S+) (\S+)\].*", cells[head.index(title)]):
                low, middle, high = (float(part.replace(",", "")) for part in match.groups())
                yield {
                    "task": task,
                    "phase": phase,
                    "framework": cells[0],
                    "low": low,
                    "middle": middle,
                    "high": high,
                }


def chart(values: list) -> dict:
    """Return bars by framework, with the interval of the median, for each task and phase."""
    y = {"field": "framework", "type": "nominal", "title": None, "sort": None}
    inner = {
        "width": 300,
        "height": {"step": 18},
        "layer": [
            {
                "mark": {"type": "bar", "color": "#4c8bd6"},
                "encoding": {
                    "y": y,
                    "x": {"field": "middle", "type": "quantitative", "title": "milliseconds"},
                },
            },
            {
                "mark": {"type": "rule", "color": GREY, "strokeWidth": 2},
                "encoding": {"y": y, "x": {"field": "low", "type": "quantitative"}, "x2": {"field": "high"}},
            },
        ],
    }
    header = {"labelColor": GREY, "labelFontSize": 13, "labelFontWeight": "bold", "title": None}
    facet = {
        "row": {"field": "task", "type": "nominal", "sort": None, "header": header},
        "column": {"field": "phase", "type": "nominal", "sort": None, "header": header},
    }
    axis = {
        "labelColor": GREY,
        "titleColor": GREY,
        "domainColor": GREY,
        "tickColor": GREY,
        "gridColor": "#8c959f40",
    }
    return {
        "data": {"values": values},
        "facet": facet,
        "spec": inner,
        "resolve": {"scale": {"x": "independent", "y": "independent"}},
        "config": {
            "background": "transparent",
            "axis": {**axis, "labelFontSize": 12},
            "view": {"stroke": None},
        },
    }


if __name__ == "__main__":
    main()
