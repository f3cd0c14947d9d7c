"""The timed region: run steps one by one and wait for the device. Independent of the framework."""

import gc
from itertools import accumulate
from time import perf_counter


def time_steps(step, batches, wait):
    """Run ``step`` on each of ``batches``; yield (duration in seconds, result) after each step.

    The clock starts when a batch is ready on the device and stops when the step's result has been computed.
    Preparing the batch and the caller's use of the result are not timed. Garbage is collected before the first
    step and between steps, where it is not timed: a framework that leaves cycles would hold more and more memory.
    """
    gc.collect()
    gc.disable()
    try:
        for batch in batches:
            wait(batch)
            start = perf_counter()
            result = step(*batch)
            wait(result)
            yield perf_counter() - start, result
            gc.collect(0)  # what a step leaves is young, because nothing else is collected
    finally:
        gc.enable()


def time_blocks(step, blocks, wait):
    """Run the steps of each block and wait once, at its end. Yield, for each block, the seconds per step and the
    seconds until a call of the step returned.

    ``blocks`` are lists of batches. A framework may return before the device has finished, and so overlap steps.
    """
    gc.collect()
    gc.disable()
    try:
        for batches in blocks:
            wait(batches)
            start = perf_counter()
            for batch in batches:
                result = step(*batch)
            returned = perf_counter() - start
            wait(result)
            yield (perf_counter() - start) / len(batches), returned / len(batches)
            gc.collect(0)
    finally:
        gc.enable()


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
