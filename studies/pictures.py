"""The pictures of README.md: a report in Chromium, and the results of the suite from docs/results/steps.md.

    python -m studies pictures

Chromium is searched on PATH; STELE_CHROMIUM names another one.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import sync_playwright

from stele import __main__ as entry_point
from stele import files
from stele.errors import SteleError
from stele.report import charts, page

ROOT = Path(__file__).parents[1]
GATE = ROOT / "docs/results/gates/tensorflow-cpu-2.20.0-2.21.0.json"
STEPS = ROOT / "docs/results/steps.md"
REPORT, RESULTS = ROOT / "docs/report.png", ROOT / "docs/results/results.svg"
WINDOW = {"width": 1280, "height": 800}
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
    """Draw the generated tables of docs/results/steps.md."""
    text = STEPS.read_text(encoding="utf-8").partition(page.BEGIN)[2].partition(page.END)[0]
    rows = list(bars(text))
    if not rows:
        raise SteleError(f"{STEPS} has no table of results. Write it with: stele table --steps --write {STEPS}")
    spec = charts.bars_of_cells(row=0, across=1, name=2, low=3, middle=4, high=5, title="milliseconds")
    files.write_text(RESULTS, charts.to_svg(spec, rows))


def bars(text: str) -> Iterator[list[str | float]]:
    """Yield task, phase, framework, low, middle and high in milliseconds, for each cell with an interval."""
    for title, rows in page.read_tables(text):
        task = re.match(r"\*\*(\w+)\*\*", title)
        for row in rows:
            for phase, name in COLUMNS.items():
                interval = re.fullmatch(r"\[(\S+) (\S+) (\S+)\].*", row.get(name, ""))
                if task and interval:
                    ends = [float(end.replace(",", "")) for end in interval.groups()]
                    yield [task[1], phase, row["framework"], *ends]


if __name__ == "__main__":
    main()
