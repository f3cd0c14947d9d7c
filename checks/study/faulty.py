"""A worker with a planted fault: run ``faulty.py burn|hoard|forget|import|hang|none`` instead of ``-m stele_worker``.

STELE_STUDY_BURN is the share by which "burn" makes a step longer. With STELE_STUDY_JUMPS, the wall clock jumps.
"""

import os
import sys
import time

import jumping

import stele_worker.__main__ as worker
from stele_worker import clock, measurement, verbs

STEPS = clock.time_steps
BURN = float(os.environ.get("STELE_STUDY_BURN", "0.05"))
memory = []


def burn(step, batches, wait):
    """Make each timed step longer with extra work."""

    def longer(*batch):
        start = time.perf_counter()
        result = step(*batch)
        wait(result)
        end = time.perf_counter() + BURN * (time.perf_counter() - start)
        while time.perf_counter() < end:
            pass
        return result

    return STEPS(longer, batches, wait)


def hoard(step, batches, wait):
    """Double the memory of the process."""
    from stele_worker import process

    memory.append(b"\1" * process.peak_memory())  # written to, so that it is resident
    return STEPS(step, batches, wait)


def forget(*arguments):
    """Lose three points of accuracy."""
    result = EVALUATION(*arguments)
    return dict(result, accuracy=result["accuracy"] - 0.03)


def refuse(*arguments, **options):
    raise ImportError("libcudart.so.14: cannot open shared object file")


def hang(*arguments, **options):
    time.sleep(3600)


EVALUATION = measurement.evaluate
fault = sys.argv[1]
if "STELE_STUDY_JUMPS" in os.environ:
    jumping.start()
if fault in ("burn", "hoard"):
    clock.time_steps = {"burn": burn, "hoard": hoard}[fault]
elif fault == "forget":
    measurement.evaluate = forget
elif fault == "import":
    verbs.VERBS["configure"] = refuse
elif fault == "hang":
    verbs.VERBS["infer"] = hang

sys.argv[1:] = []
sys.exit(worker.main())
