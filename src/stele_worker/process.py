"""What the operating system knows of this process: its peak memory, its processors, its parent's death."""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # linux/prctl.h


def die_with_parent():
    """Have the kernel kill this process when the host dies without a goodbye. Linux only."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def keep_to(processors):
    """Run on at most this many processors, the first that this process may use. Linux only."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:processors])


def processors():
    """The numbers of the processors that this process may use, or None where that is unknown."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


def forget_peak_memory():
    """Start the peak anew, where the kernel allows it (proc(5): 5 into clear_refs)."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass


def peak_memory():
    """Highest resident memory so far, in bytes, or None where it is unknown.

    VmHWM, and not ru_maxrss, which survives exec and so reports the parent's.
    """
    try:
        with open("/proc/self/status") as file:
            lines = [line for line in file if line.startswith("VmHWM:")]
    except OSError:
        return None
    return int(lines[0].split()[1]) * 1024 if lines else None
