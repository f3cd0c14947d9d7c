"""Which operations explain the difference between OLD and NEW: ``profiles`` launches and compares, ``changes`` lists
what else differs. The times of this package never enter a verdict.

May import the layers below the gate: measuring, environments, models, parity.
"""
