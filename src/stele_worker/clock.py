"""The timed region: run steps one by one and wait for the device. Knows no framework."""

import gc
from time import perf_counter


def steps(step, batches, wait):
    """Run ``step`` on each of ``batches``; yield (duration in seconds, result) after each.

    The clock starts when a batch lies ready on the device and stops when the step's result has been
    computed. Making the batch, and whatever the caller does with what is yielded, lie outside. Garbage
    is collected before the first step and not again until the last.
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
    finally:
        gc.enable()


def steady_from(seconds, window, tolerance):
    """The index of the first step that is steady, or None if the steps never stop trending.

    Steps are steady once the medians of two neighbouring windows differ by less than ``tolerance``,
    a fraction. The first step is never steady: it traces, compiles and allocates.
    """
    for start in range(1, len(seconds) - 2 * window + 1):
        earlier = median(seconds[start : start + window])
        later = median(seconds[start + window : start + 2 * window])
        if abs(later - earlier) < tolerance * earlier:
            return start
    return None


def median(values):
    """The middle value, or the mean of the two in the middle."""
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2
