"""How often is the gate wrong, and how often is it right, compared with other tools?

    python perf_tests/study [--pairs N] [--replay]      or: tox -e study

Records pairs of launches of one release (A/A) in four cells, on a quiet machine and next to a busy foreign process.
Replays the decision code of each tool, and of the gate, on the same launches, with a slow-down multiplied onto the
launches called NEW. Runs the gate on releases with a planted fault. Writes docs/verdict-study.md. The launches stay in
.stele/study; an interrupted study continues from them.
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
    parser.add_argument("--pairs", type=int, default=60, help="pairs of each cell; default: %(default)s")
    parser.add_argument("--replay", action="store_true", help="measure nothing; replay the recorded launches")
    arguments = parser.parse_args()
    pools = {
        condition: pool.load_or_record(condition, arguments.pairs, only_read=arguments.replay)
        for condition in pool.CONDITIONS
    }
    rates = replay.rates(pools)
    results = live.load_or_gate(only_read=arguments.replay)
    page.fill(PAGE, table.markdown(pools, rates, results))


if __name__ == "__main__":
    main()
