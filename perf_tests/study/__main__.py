"""How often is the gate wrong, and how often is it right, beside the tools that people use?

    python perf_tests/study [--pairs N] [--replay]      or: tox -e study

Records pairs of launches of one release (A/A) of four cells, in the quiet and beside a busy foreign process; replays
every tool's own decision code, and the gate's, on those same launches, with slow-downs multiplied onto what is called
NEW; runs the gate on releases with a planted fault; and writes docs/verdict-study.md. The launches stay in
.stele/study, and a study that was interrupted goes on with them.
"""

import argparse
from pathlib import Path

import live
import pool
import replay
import table

from stele.report import page

PAGE = Path(__file__).parents[2] / "docs" / "verdict-study.md"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=60, help="of each cell; default: %(default)s")
    parser.add_argument("--replay", action="store_true", help="measure nothing: replay what was recorded")
    arguments = parser.parse_args()
    pools = {
        condition: pool.recorded(condition, arguments.pairs, only_read=arguments.replay)
        for condition in pool.CONDITIONS
    }
    rates = replay.rates(pools)
    faults = live.found(only_read=arguments.replay)
    page.fill(PAGE, table.markdown(pools, rates, faults))


if __name__ == "__main__":
    main()
