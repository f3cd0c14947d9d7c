"""A worker with a planted fault: run ``faulty.py burn|hoard|forget|import|hang`` instead of ``-m stele_worker``."""

import sys
import time

import stele_worker.__main__ as worker
from stele_worker import clock, measurement, verbs

STEPS = clock.time_steps
memory = []


def burn(step, batches, wait):
    """Make each timed step 5 % longer with extra work."""

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
    """Double the memory of the process."""
    from stele_worker import process

    memory.append(b"\1" * process.peak_memory())  # written to, so that it is resident
    return STEPS(step, batches, wait)


def forget(framework, recipe, net, task, data, tell):
    """Lose three points of accuracy."""
    result = EVALUATION(framework, recipe, net, task, data, tell)
    return dict(result, accuracy=result["accuracy"] - 0.03)


def refuse(tell, framework, settings):
    raise ImportError("libcudart.so.14: cannot open shared object file")


def hang(*arguments, **options):
    time.sleep(3600)


EVALUATION = measurement.evaluate
fault = sys.argv[1]
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
