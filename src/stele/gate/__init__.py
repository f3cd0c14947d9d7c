"""The gate: measure two environments side by side and judge whether NEW is worse than OLD.

The unit of measurement is the launch: one fresh process. A pass launches OLD and NEW twice each, at the same time and
in random order. ``trial`` launches, ``timing`` and ``correctness`` collect passes, ``state`` holds their results,
``steps`` says how long a launch is, ``metrics`` defines what is compared and ``thresholds`` how much it may grow,
``judgement`` turns launches into statuses, ``failures`` judges launches that failed, ``verdict`` adds the message, and
``record`` stores each launch on disk. ``baseline`` compares with an earlier measurement, ``calibration`` and ``advice``
describe what a machine can detect. The gate imports neither ``report`` nor ``releases``.
"""
