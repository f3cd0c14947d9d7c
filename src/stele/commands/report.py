"""``stele report``: one page about a gate, or about Runs, for people who did not measure them."""

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stele import files
from stele.commands import options, outputs
from stele.errors import SteleError
from stele.measuring import progress
from stele.measuring.answers import Progress
from stele.measuring.progress import say
from stele.report import build, charts, exports, html, markdown, sources, terminal
from stele.report.content import Report
from stele.report.sources import Sources

ABOUT = (
    "Shows gates, Runs, parity ladders, modes and histories as one page. "
    "Without arguments: the newest gate in .stele/gates, or else the Runs in .stele/runs."
)
SUMMARY = "GITHUB_STEP_SUMMARY"


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    paths: tuple[Path, ...] = ()
    html: Path | None = None
    markdown: Path | None = None
    junit: Path | None = None
    openmetrics: Path | None = None
    csv: Path | None = None
    step_summary: bool = False


def add(commands: Any) -> None:
    summary = "show a gate or Runs as a page, or for other programs"
    command = commands.add_parser("report", help=summary, description=ABOUT)
    command.add_argument(
        "paths",
        metavar="RECORD|RUNS|FOLDER",
        nargs="*",
        type=files.absolute,
        help="files and folders to show",
    )
    written = {
        "html": "one page that needs no network; needs pytest-stele[report]",
        "markdown": "Markdown for a pull request",
        "junit": "JUnit XML: a test case for each check of a gate",
        "openmetrics": "gauges in the text format of OpenMetrics",
    }
    for name, meaning in written.items():
        command.add_argument(f"--{name}", type=Path, metavar="FILE", help=f"write {meaning}")
    command.add_argument("--csv", type=Path, metavar="FOLDER", help="write a CSV file for each table")
    command.add_argument(
        "--step-summary", action="store_true", help=f"append Markdown to the file that {SUMMARY} names"
    )
    options.declare(command, report, ReportOptions)


def report(chosen: ReportOptions) -> int:
    """Write the files that the options name; without any, print the summary. Returns 0, whatever the verdict."""
    if chosen.html:
        charts.load_converter()  # before anything is read
    for path in chosen.paths:
        if not files.exists(path):
            raise SteleError(f"{path} does not exist. Name a record, a Run, a folder, or a JSON file that Stele wrote.")
    step_summary = step_summary_file() if chosen.step_summary else None
    read = sources.read(chosen.paths or sources.default_paths(), counted)
    outputs.refuse(options.flat(chosen), read.files)
    for note in read.notes:
        say(f"stele: {note}")
    whole = build.report(read)
    written = list(write(chosen, read, whole, step_summary))
    for path in written:
        say(f"written: {path}")
    if not written:
        print("\n".join(terminal.lines(whole, shutil.get_terminal_size().columns)))
    return 0


def counted(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the paths, and show how many are done."""
    with progress.bar("reading") as draw:
        for done, path in enumerate(paths):
            draw(Progress(phase="files", done=done, of=len(paths)))
            yield path


def step_summary_file() -> Path:
    """Return the file of GitHub's step summary. Raises SteleError outside of a GitHub workflow."""
    path = os.environ.get(SUMMARY)
    if not path:
        raise SteleError(
            f"--step-summary needs the variable {SUMMARY}, which a GitHub workflow sets. Use --markdown FILE."
        )
    return Path(path)


def write(chosen: ReportOptions, read: Sources, whole: Report, step_summary: Path | None) -> Iterator[Path]:
    """Write each file that the options name, and yield its path."""
    if chosen.junit and not read.gates:
        raise SteleError(
            "--junit needs a gate: Runs alone have no verdict. Name a record, or a file of stele gate --json."
        )
    if chosen.html:
        yield write_file(chosen.html, html.render(whole))
    if chosen.markdown:
        yield write_file(chosen.markdown, markdown.render(whole))
    if chosen.junit:
        yield write_file(chosen.junit, exports.to_junit(read.gates))
    if chosen.openmetrics:
        yield write_file(chosen.openmetrics, exports.to_openmetrics(read.gates, read.runs))
    if chosen.csv:
        chosen.csv.mkdir(exist_ok=True)
        for name, text in exports.to_csv(whole).items():
            yield write_file(chosen.csv / f"{name}.csv", text)
    if step_summary:
        files.append_text(step_summary, markdown.render(whole))
        yield step_summary


def write_file(path: Path, text: str) -> Path:
    files.write_output_text(path, text)
    return path
