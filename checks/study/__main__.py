"""How often is the gate wrong, how often is it right, and how long does it take?

    python -m checks study [--replay] [--condition ID] [--cell ID]
    python -m checks study --live [--target ID] [--times N]

Records passes of one release in eleven cells, on a quiet machine and beside foreign processes. Replays the rule of the
gate, the rule before it, and other tools on the same launches, with a slow-down multiplied onto those called NEW.
Simulates more rules. Writes docs/results/verdict-study.md. With --live, runs whole gates whose result is known, and
writes only their section. What was measured stays in .stele/study, and in passes.tar.xz beside this file; an
interrupted study continues from there.
"""

import argparse
from pathlib import Path

import archive
import live
import live_table
import others
import pool
import replay
import simulate
import steal
import table
from targets import TARGETS

from stele import files
from stele.report import page

PAGE = Path(__file__).parents[2] / "docs" / "results" / "verdict-study.md"
HEADING = "## Live"
CELLS = {str(subject): subject for subject in pool.SUBJECTS}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, scale in (("small", "study"), ("gate", "gate"), ("users", "users")):
        about = f"passes of each cell at scale {scale}; default: %(default)s"
        parser.add_argument(f"--passes-{name}", type=int, default=pool.PASSES[scale], metavar="N", help=about)
    conditions = ", ".join(pool.CONDITIONS)
    parser.add_argument("--condition", action="append", choices=pool.CONDITIONS, metavar="ID",
                        help=f"record only this condition, and write no page: {conditions}")  # fmt: skip
    parser.add_argument("--cell", action="append", choices=CELLS, metavar="ID",
                        help=f"record only this cell, and write no page: {', '.join(CELLS)}")  # fmt: skip
    parser.add_argument("--replay", action="store_true", help="measure nothing; write the page from what is recorded")
    parser.add_argument("--live", action="store_true", help="run the live gates, and write only their section")
    parser.add_argument("--target", action="append", choices=TARGETS, metavar="ID",
                        help=f"run only this live gate: {', '.join(TARGETS)}")  # fmt: skip
    parser.add_argument("--times", type=int, default=5, metavar="N", help="runs of each; default: %(default)s")
    return parser.parse_args()


def main():
    arguments = parse()
    if arguments.live:
        live.run(arguments.target or list(TARGETS), arguments.times)
        write_live_section()
        return
    archive.unpack(pool.FOLDER)
    if not arguments.replay:
        record(arguments)
    if not (arguments.condition or arguments.cell):
        write_page()


def record(arguments):
    counts = {"study": arguments.passes_small, "gate": arguments.passes_gate, "users": arguments.passes_users}
    subjects = [CELLS[name] for name in arguments.cell or CELLS]
    for condition in arguments.condition or pool.CONDITIONS:
        pool.measure(condition, subjects, counts)
        archive.pack(pool.FOLDER)


def write_live_section():
    """Replace the section of the live gates. The other sections need the recorded passes."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(f"{HEADING}\n")
    _, heading, after = rest.partition("\n## ")
    files.write_text(PAGE, f"{before}{HEADING}\n{live_table.markdown(live.load())}\n{heading}{after}")


def write_page():
    pools = {condition: pool.load(condition) for condition in pool.CONDITIONS}
    rates = replay.rates(pools) | others.rates(pools)
    page.fill(PAGE, table.markdown(pools, rates, steal.rates(pools), simulate.results(), live.load()))


if __name__ == "__main__":
    main()
