"""A worker with a fault in it: ``faulty.py burn|hoard|forget|import|hang``, in the place of ``-m stele_worker``."""

import sys
import time

import stele_worker.__main__ as worker
from stele_worker import clock, measurement, verbs

STEPS = clock.steps
held = []


def burn(step, batches, wait):
    """Each step works on for a twentieth of what it took, and the clock sees it."""

    def longer(*batch):
        start = time.perf_counter()
        result = step(*batch)
        wait(result)
        end = time.perf_counter() + 0.05 * (time.perf_counter() - start)
        while time.perf_counter() < end:
            pass
        return result

    return STEPS(longer, batches, wait)


def hoard(step, batches, wait):
    """As much memory again as the process has."""
    from stele_worker import process

    held.append(b"\1" * process.peak_memory())  # written to, so that it is there
    return STEPS(step, batches, wait)


def forget(framework, recipe, net, task, data, tell):
    """Three points of accuracy are lost."""
    found = EVALUATION(framework, recipe, net, task, data, tell)
    return dict(found, accuracy=found["accuracy"] - 0.03)


def refuse(tell, framework, settings):
    raise ImportError("libcudart.so.14: cannot open shared object file")


def hang(*given, **named):
    time.sleep(3600)


EVALUATION = measurement.evaluation
fault = sys.argv[1]
if fault in ("burn", "hoard"):
    clock.steps = {"burn": burn, "hoard": hoard}[fault]
elif fault == "forget":
    measurement.evaluation = forget
elif fault == "import":
    verbs.VERBS["configure"] = refuse
elif fault == "hang":
    verbs.VERBS["infer"] = hang

sys.argv[1:] = []
sys.exit(worker.main())
