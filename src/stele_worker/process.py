"""Process-level facts from the operating system: peak memory, processors, and ending with the parent process."""

import ctypes
import gc
import os
import signal
import sys
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
LONGEST = 0.5  # seconds that a process waits to be idle
LOOK, BUSY = 0.002, 0.3  # seconds; share of them in which the threads of a busy process compute


def die_with_parent():
    """Make the kernel kill this process when the host dies, even without warning. Linux only."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans():
    """Become the parent of all processes below this one whose parents end: the host then finds them. Linux only."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def wait_until_idle():
    """Wait until no thread of this process computes, before another process is measured.

    After a step, the threads of Intel's OpenMP wait actively for 0.2 s, and those of OpenBLAS for 0.1 s.
    """
    end = time.perf_counter() + LONGEST
    while is_busy() and time.perf_counter() < end:
        pass


def is_busy():
    before = time.process_time()
    time.sleep(LOOK)
    return time.process_time() - before > BUSY * LOOK


def limit_processors(count, part=0):
    """Run on at most ``count`` of the processors that this process may use. Linux only.

    ``part`` is the number of the group of so many processors. If there are too few, groups share processors.
    """
    if hasattr(os, "sched_setaffinity"):
        usable = sorted(os.sched_getaffinity(0))
        groups = max(len(usable) // count, 1)
        first = part % groups * count
        os.sched_setaffinity(0, usable[first : first + count])


def processors():
    """Return the numbers of the processors that this process may use, or None if unknown."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


def reset_peak_memory():
    """Reset the peak memory counter, if the kernel allows it (proc(5): write 5 to clear_refs).

    What an earlier request of this process left does not count.
    """
    gc.collect()
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass


def peak_memory():
    """Return the peak resident memory in bytes, or None if unknown.

    Reads VmHWM. On Linux, ru_maxrss survives exec, so it would report the parent's peak. macOS has no VmHWM; there it
    is reset by exec, and in bytes (getrusage(2)).
    """
    if sys.platform == "darwin":
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        with open("/proc/self/status") as file:
            lines = [line for line in file if line.startswith("VmHWM:")]
    except OSError:
        return None
    return int(lines[0].split()[1]) * 1024 if lines else None
