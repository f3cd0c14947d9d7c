"""``stele nightly`` in simulated time: no release is built, and each launch takes a minute of a simulated clock.

    python -m simulated_nightly RELEASES SLOW_RELEASE BUDGET

The steps of the release 1.SLOW_RELEASE and of all later ones are 20 % longer.
"""

import os
import sys
import time
from datetime import datetime, timezone

from stele import __main__ as entry_point
from stele.environments import builds
from stele.measuring import measure
from stele.measuring.machine import Machine
from stele.measuring.run import Framework, Memory, Options, Origin, Run, Steps

LAUNCH = 60.0  # seconds
ORIGIN = Origin(origin="seeded noise", fingerprint="none")
SECONDS = (0.5, *[0.010, 0.011, 0.012] * 16)

monotonic, simulated = time.monotonic, 0.0
releases, slow_release, budget = sys.argv[1:]


def side_by_side(sides, plan, settings, **options):
    """Return the Runs that the releases would give, and advance the clock."""
    global simulated
    simulated += LAUNCH
    return {side: run_of(side, plan, settings) for side in sides}


def run_of(side, plan, settings):
    factor = 1.2 if int(side.rpartition(".")[2]) >= int(slow_release) else 1.0
    return Run(
        when=datetime.now(timezone.utc).isoformat(),
        environment=side,
        label=side,
        task=plan.task,
        phase=plan.phase,
        scale=plan.scale,
        settings=settings,
        options=Options(turn=1),
        framework=Framework(import_seconds=1.0, versions={"toy": side}, flags={}),
        machine=Machine(),
        data=ORIGIN,
        weights="seeded",
        steps=Steps(seconds=tuple(factor * value for value in SECONDS), warmup=1, steady=True, batch=64),
        memory=Memory(host=2**20, device=None),
    )


time.monotonic = lambda: monotonic() + simulated
measure.side_by_side = side_by_side
measure.inputs = lambda task: ({"data": None, "data_origin": ORIGIN}, None)
builds.make = lambda environment: True
os.environ["STELE_INDEX"] = os.environ["UV_FIND_LINKS"]
command = ["nightly", "toy", "--last", releases, "--budget", budget, "--task", "gru", "--phase", "infer"]
sys.exit(entry_point.main([*command, "--launches", "3"]))
