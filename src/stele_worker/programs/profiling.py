"""What a call of the user's code does: under the profiler of the framework that it has imported, else by py-spy."""

import functools
import sys
from time import perf_counter

from stele_worker.profiles import profile_functions

SECONDS = 0.2  # of the calls under the profiler, at least
MOST_CALLS = 1000
# those with a profiler of their own: the module, and the name here
FRAMEWORKS = {
    "torch": "torch",
    "jax": "jax",
    "tensorflow": "tensorflow",
    "paddle": "paddle",
    "mxnet": "mxnet_gluon",
}


def profile(call, least, sampler=None):
    """Return what calls of a function do, as ``stele_worker.measurement.profiled`` describes it.

    There are at least ``least`` calls. ``sampler`` is the path of py-spy.
    """
    durations = []

    def run():
        start = perf_counter()
        for _ in range(count):
            call()
        durations.append(perf_counter() - start)

    count = 1
    run()
    count = max(least, min(MOST_CALLS, int(SECONDS / max(durations[-1], 1e-9))))
    profiler = profiler_of_framework()
    if profiler is None:
        profiler = functools.partial(profile_functions, sampler=sampler)
    else:
        profiler(run)  # without its result, as for steps
    operations, seconds = profiler(run), durations[-1]
    each = {name: [total / count, calls / count] for name, (total, calls) in operations.items() if total > 0}
    return {"step": seconds / count, "busy": None, "operations": each, "kernels": {}}


def profiler_of_framework():
    """Return the profiler of the only framework that is imported; None if it has none, or if there are several.

    The profiler of one framework does not see what the others do.
    """
    imported = [name for name in FRAMEWORKS if name in sys.modules]
    if len(imported) != 1:
        return None
    from stele_worker import frameworks

    frameworks.tuned = False
    try:
        return frameworks.load(FRAMEWORKS[imported[0]]).profile
    except Exception as error:
        print("stele: the profiler of {} cannot be used: {}".format(imported[0], error), flush=True)
        return None
