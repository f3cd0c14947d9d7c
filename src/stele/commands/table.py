"""``stele table``: write the tables of the Rosetta Stone, or the step times of this machine, as Markdown."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stele import files
from stele.commands import options
from stele.errors import SteleError
from stele.measuring import store
from stele.measuring.run import PHASES
from stele.report import page, published, results


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    steps: bool = False
    runs: Path = Path(".stele/runs")
    write: Path | None = None


def add(commands: Any) -> None:
    command = commands.add_parser("table", help="compare published results with results of this machine")
    command.add_argument("--steps", action="store_true", help="show milliseconds per step instead, as steps.md does")
    command.add_argument("--runs", type=Path, help="default: %(default)s")
    command.add_argument(
        "--write", type=Path, metavar="FILE", help="write the tables between the markers of the page FILE"
    )
    options.declare(command, table, TableOptions)


def table(chosen: TableOptions) -> int:
    """Print the tables, or write them to a page. Returns 0."""
    if chosen.runs != TableOptions.runs and not files.is_folder(chosen.runs):
        raise SteleError(f"--runs {chosen.runs}: there is no such folder. Name a folder with Runs.")
    runs = (run for run in store.load_each(chosen.runs) if run.phase in PHASES)
    text = results.markdown(runs) if chosen.steps else published.tables(runs)
    if chosen.write is None:
        print(text)
        return 0
    page.fill(chosen.write, text)
    return 0
