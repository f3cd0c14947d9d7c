"""Does every recipe compute the same, from its weights to twenty losses, and the same bits twice?

Nothing is timed, so --benchmark-only skips this test; ``stele parity`` prints the same as a table.
"""

from stele.errors import SteleError
from stele.parity import examination, ladder

PHASE = "infer"  # which every environment has


def test_parity(stele_environment, stele_task, stele_settings):
    result = examination.run_ladder(stele_environment, stele_task, stele_settings)
    first = ladder.first_difference(result.findings)
    if first is not None:
        raise SteleError(f"{stele_environment.name} {stele_task}: {ladder.message(first)}")
