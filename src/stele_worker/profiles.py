"""Times of operations from the events of a profiler."""

import collections
import cProfile
import os

from stele_worker import sampling


def self_times(lines):
    """Return {operation: (seconds, calls)}. An operation that runs inside another one counts only for itself.

    ``lines`` has a list for each thread or stream, of (operation, start, duration) in nanoseconds.
    """
    seconds, calls = collections.defaultdict(float), collections.Counter()
    for events in lines:
        open_events = []  # (end, operation) of the events that contain the current one
        for name, start, duration in sorted(events, key=lambda event: (event[1], -event[2])):
            while open_events and open_events[-1][0] <= start:
                open_events.pop()
            seconds[name] += 1e-9 * duration
            calls[name] += 1
            if open_events:
                seconds[open_events[-1][1]] -= 1e-9 * duration
            open_events.append((start + duration, name))
    return {name: (seconds[name], calls[name]) for name in seconds}


def profile_functions(run, sampler=None):
    """Return {function: (seconds, calls)} of run(), for a framework without a profiler.

    ``sampler`` is the path of py-spy. It shows functions of native code, too, and does not count calls. Without it, or
    if the system does not let it read this process, cProfile shows the functions of Python.
    """
    if sampler:
        try:
            return {name: (seconds, 0) for name, seconds in sampling.sample(sampler, run).items()}
        except (sampling.NotSampled, OSError) as error:
            print("stele: py-spy cannot be used:", error, flush=True)
    return profile_python(run)


def profile_python(run):
    """Return {file:function: (seconds, calls)} of Python and C functions during run(), without their callees.

    What runs in threads of a framework shows up in the function that waits.
    """
    recorder = cProfile.Profile()
    recorder.runcall(run)
    seconds, calls = collections.defaultdict(float), collections.Counter()
    for entry in recorder.getstats():
        name = name_of_function(entry.code)
        seconds[name] += entry.inlinetime
        calls[name] += entry.callcount
    return {name: (seconds[name], calls[name]) for name in seconds}


def name_of_function(code):
    """Return "module.py:function", or the name of a built-in function, which is a text."""
    return code if isinstance(code, str) else "{}:{}".format(os.path.basename(code.co_filename), code.co_name)
