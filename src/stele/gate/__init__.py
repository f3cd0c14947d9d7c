"""The gate: measure two environments side by side and judge whether NEW is worse than OLD.

The unit of measurement is the launch: one fresh process. Launches of OLD and NEW are paired: they run at the same time
and in random order. ``trial`` launches, ``timing`` and ``correctness`` collect pairs, ``metrics`` defines what is
compared, ``judgement`` turns differences into statuses, ``verdict`` adds the message, ``conditions`` excludes disturbed
launches, and ``record`` stores each launch on disk. ``baseline`` compares with an earlier measurement, ``calibration``
and ``advice`` describe what a machine can detect. The gate imports neither ``report`` nor ``releases``.
"""
