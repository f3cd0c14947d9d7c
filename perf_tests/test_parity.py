"""Does every recipe compute the same, from its weights to twenty losses, and the same bits twice?

Nothing is timed, so --benchmark-only skips this test; ``stele parity`` prints the same as a table. A user's model has
no golden numbers: ``stele gate`` compares it with another release.
"""

import pytest

from stele.errors import SteleError
from stele.parity import examination, ladder

PHASE = "infer"  # which every environment has


def test_parity(stele_environment, stele_task, stele_settings, stele_session):
    if stele_session.model is not None:
        pytest.skip("a model of your own has no golden numbers: compare two releases with stele gate")
    result = examination.run_ladder(stele_environment, stele_task, stele_settings)
    first = ladder.first_difference(result.findings)
    if first is not None:
        raise SteleError(f"{stele_environment.name} {stele_task}: {ladder.message(first)}")
