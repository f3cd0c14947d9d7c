"""What does each mode of execution cost, and what does it gain?

    python -m studies modes [--framework NAME] [--task NAME] [--phase PHASE] [--passes N]
    python -m studies modes --table

Launches the modes of a framework together, in turns step by step, for each task in each phase. Writes the parts of
docs/results/modes.md that were measured, and draws docs/results/modes.svg from the tables of the page; with --device
cuda, it prints the tables in their place. What was measured stays in .stele/modes; an interrupted command continues
from there. The overhead of an operation is from studies/operators.py.
"""

import argparse
from pathlib import Path

import plot
import record
import table

from stele.measuring import lock
from stele.report import page
from stele_suite import tasks

PAGE = Path(__file__).parents[2] / "docs/results/modes.md"


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--framework", action="append", metavar="NAME", help="default: all that have modes")
    parser.add_argument("--task", action="append", choices=tasks.NAMES, help="default: all")
    parser.add_argument("--phase", action="append", choices=record.PHASES, help="default: both")
    parser.add_argument("--device", choices=record.FOLDERS, default="cpu", help="default: %(default)s")
    parser.add_argument("--passes", type=int, default=3, metavar="N", help="of each cell; default: %(default)s")
    parser.add_argument("--table", action="store_true", help="measure nothing; write the page from what is recorded")
    return parser.parse_args()


def main():
    arguments = parse()
    record.device = arguments.device
    if not arguments.table:
        with lock.machine("tox -e studies -- modes", wait=True, say=print):
            cells = record.cells(arguments.framework, arguments.task, arguments.phase)
            record.measure(cells, arguments.passes)
    results = record.load_all()
    if arguments.device == "cpu":
        write(results)
    else:
        print("\n\n".join(parts(results).values()))


def parts(results):
    """Return the parts of the page that were measured: the costs of each mode, and the tables of each task."""
    if not results:
        return {}
    measured = dict.fromkeys(cell.task for cell in results)
    costs = f"{table.costs(results, record.overheads())}\n\nFirst steps of: {', '.join(measured)}."
    return {"costs": costs, **{task: table.of_task(task, results) for task in measured}}


def write(results):
    """Write the parts that were measured, leave the others as they are, and draw the tables of the page."""
    for name, text in parts(results).items():
        page.fill(PAGE, text, by=f"studies/modes, {name}")
    plot.draw(PAGE.read_text(encoding="utf-8"), PAGE.with_suffix(".svg"))


if __name__ == "__main__":
    main()
