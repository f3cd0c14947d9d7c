"""The timed region: run steps one by one and wait for the device. Independent of the framework."""

import contextlib
import gc
import os
import time
from functools import partial
from itertools import accumulate
from time import perf_counter
from typing import NamedTuple

from stele_worker import frameworks


def stopwatch(together=False):
    """Return a function that returns the seconds since now.

    ``together``: other workers compute at the same time on the same processor. The time in which a thread of this
    process waits for the processor does not count then. While all its threads sleep, as for a disk or for a compiler in
    another process, the time counts. It is at least the time that the threads computed: several that wait at the same
    time would count twice.
    """
    waited = seconds_waited() if together else {}
    computed, start = time.process_time(), perf_counter()
    if not together:
        return lambda: perf_counter() - start

    def seconds():
        passed, computing, now = perf_counter() - start, time.process_time() - computed, seconds_waited()
        return max(computing, passed - sum(now[thread] - waited.get(thread, 0) for thread in now))

    return seconds


def seconds_waited():
    """Return {thread: seconds in which it has waited for a processor} of this process. Linux only."""
    waited = {}
    for thread in os.listdir("/proc/self/task"):
        try:
            with open("/proc/self/task/{}/schedstat".format(thread)) as file:
                waited[thread] = int(file.read().split()[1]) / 1e9
        except OSError:  # the thread has ended
            pass
    return waited


def within(items, seconds, limit, first=1):
    """Yield items until their steps took ``limit`` seconds; None for no limit.

    ``seconds`` has the durations of the steps so far. The ``first`` of them, which compile, do not count: so there are
    more than these, and the limit is exceeded by one item at most.
    """
    for item in items:
        if is_over(seconds, limit, first):
            return
        yield item


def is_over(seconds, limit, first=1):
    return limit is not None and len(seconds) > first and sum(seconds[first:]) >= limit


@contextlib.contextmanager
def garbage_apart():
    """Collect garbage now, and then only with the function that this yields, which nobody times.

    A framework that leaves cycles would else hold more and more memory. So it does in a plain process, and what the
    collector takes is a part of a plain step: of a user's model, nothing is changed.
    """
    if not frameworks.tuned:
        yield lambda: None
        return
    gc.collect()
    gc.disable()
    try:
        yield partial(gc.collect, 0)  # what a step leaves is young, because nothing else is collected
    finally:
        gc.enable()


def time_steps(step, batches, wait, together=False):
    """Run ``step`` on each of ``batches``; yield (duration in seconds, result) after each step.

    The clock starts when a batch is ready on the device and stops when the step's result has been computed.
    Preparing the batch and the caller's use of the result are not timed. ``garbage_apart`` says when garbage is
    collected. ``together``: other workers make the first step at the same time; see ``stopwatch``.
    """
    with garbage_apart() as collect:
        for batch in batches:
            wait(batch)
            seconds = stopwatch(together)
            result = step(*batch)
            wait(result)
            yield seconds(), result
            collect()
            together = False


def time_blocks(step, blocks, wait):
    """Run the steps of each block and wait once, at its end. Yield, for each block, the seconds per step and the
    seconds until a call of the step returned.

    ``blocks`` are lists of batches. A framework may return before the device has finished, and so overlap steps.
    """
    with garbage_apart() as collect:
        for batches in blocks:
            wait(batches)
            start = perf_counter()
            for batch in batches:
                result = step(*batch)
            returned = perf_counter() - start
            wait(result)
            yield (perf_counter() - start) / len(batches), returned / len(batches)
            collect()


class Timing(NamedTuple):
    """The seconds of several calls, those of the first alone, and their results."""

    seconds: float
    first: float
    results: list

    def compile_seconds(self):
        """Return by how much the first call exceeded the mean of the others; 0 if there are no others."""
        others = len(self.results) - 1
        return max(self.first - (self.seconds - self.first) / others, 0.0) if others else 0.0


def time_all(step, batches, wait):
    """Run ``step`` on each of ``batches`` and return the Timing, which includes the time to make the batches.

    It waits for the device after the first call and after the last: a framework may overlap the others.
    """
    results, start = [], perf_counter()
    for batch in batches:
        results.append(step(*batch))
        if len(results) == 1:
            wait(results[0])
            first = perf_counter() - start
    wait(results[-1])
    return Timing(perf_counter() - start, first, results)


def find_steady_step(seconds, window, tolerance, least=0.0):
    """Return the index of the first steady step, or None if the step times never stop trending.

    Steps are steady once the medians of two adjacent windows differ by less than ``tolerance``, a fraction. The first
    step is never steady: it traces, compiles and allocates. Steps of the first ``least`` seconds are not either.
    """
    early = sum(1 for total in accumulate(seconds) if total < least)
    for start in range(max(1, early), len(seconds) - 2 * window + 1):
        earlier = median(seconds[start : start + window])
        later = median(seconds[start + window : start + 2 * window])
        if abs(later - earlier) < tolerance * earlier:
            return start
    return None


def median(values):
    """Return the middle value, or the mean of the two middle values."""
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
