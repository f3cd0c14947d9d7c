"""Does every recipe compute the same, from its weights to twenty losses, and the same bits twice?

Nothing is timed, so that --benchmark-only leaves this out; ``stele parity`` prints the same as a table.
"""

from stele.errors import SteleError
from stele.parity import examination, ladder

PHASE = "infer"  # which every row has


def test_parity(environment, task, settings):
    first = ladder.first_difference(examination.run_ladder(environment, task, settings).findings)
    if first is not None:
        raise SteleError(f"{environment.name} computes another {task}, {ladder.message(first)}")
