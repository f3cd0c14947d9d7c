"""The gate: two environments measured side by side, and a verdict that holds on a noisy machine.

The launch of a fresh process is the unit; launches of OLD and NEW come in pairs, neighbours in time, in an order
drawn at random. ``metrics`` are what of a Run is judged, ``judgement`` is the procedure, numbers in and verdicts
out, ``trial`` launches, ``timing`` draws and pairs, ``correctness`` comes before it, ``conditions`` disqualify a
launch, ``record`` keeps what was measured, and ``pages`` say it. ``baseline`` compares with another day,
``calibration`` and ``advice`` say what a machine can see.
"""
