"""Does every recipe compute the same, from its weights to twenty losses, and the same bits twice?

Nothing is timed, so --benchmark-only leaves this test out; ``stele parity`` prints the same as a table. A user's model
has no golden numbers: ``stele gate`` compares it with another release.
"""

PHASE = "infer"  # which every environment has


def test_parity(stele_assert_ladder):
    stele_assert_ladder()
