"""The gate: measure two environments side by side and judge whether NEW is worse than OLD.

The unit of measurement is the launch: one fresh process. A pass launches OLD and NEW twice each, at the same time and
in random order. A ``Gate`` is a ``trial``, its ``record``, which stores each launch on disk, and what receives its
messages; ``run`` says what is judged, in which order.

What launches: ``preparation`` builds both arms, ``launcher`` launches, ``timing``, ``correctness`` and
``model_parity`` collect what is missing. What judges is pure, so a ``replay`` of a record needs nothing else: ``state``
holds the results, ``metrics`` defines what is compared and how much it may grow, ``judgement`` turns launches into
statuses, ``failures`` judges launches that failed, ``verdict`` adds the messages, and ``correctness_verdicts`` and
``model_verdict`` compare what both compute. ``steps`` says how long a launch is. ``baseline`` compares with an earlier
measurement, ``calibration`` and ``advice`` describe what a machine can detect. The gate imports neither ``report`` nor
``releases``.
"""
