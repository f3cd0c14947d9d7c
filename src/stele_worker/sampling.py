"""Times of functions by sampling: py-spy reads the stacks of this process from outside, those of native code too.

It is for frameworks without a profiler. See https://github.com/benfred/py-spy.
"""

import collections
import ctypes
import os
import re
import signal
import subprocess
import sys
import tempfile
from time import perf_counter

RATE = 200  # samples per second
SECONDS = 3.0  # the least duration of a recording
ADDRESS = re.compile("^0x[0-9a-f]+ ")  # of a function without a symbol
LONGEST = 120  # seconds until py-spy has written its file
PR_SET_PTRACER, ANY = 0x59616D61, -1  # linux/prctl.h


class NotSampled(Exception):
    """py-spy did not record anything. The message is what it printed."""


def sample(program, run):
    """Return {function: seconds} of one call of run(), without the functions that a function calls.

    ``run`` is called until the recording is long enough. ``program`` is the path of py-spy.
    Raises NotSampled if py-spy may not read this process.
    """
    allow_tracing()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "stacks")
        recorder, first = start(program, path)
        try:
            calls, began = 0, perf_counter()
            while recorder.poll() is None and perf_counter() - began < SECONDS:
                run()
                calls += 1
            seconds = (perf_counter() - began) / max(calls, 1)
            recorder.send_signal(signal.SIGINT)  # it writes the file and ends
            printed = first + recorder.communicate(timeout=LONGEST)[0]
        finally:
            recorder.kill()
        if not os.path.exists(path):
            raise NotSampled(printed.decode("utf-8", "replace").strip() or "py-spy wrote no file")
        with open(path, encoding="utf-8", errors="replace") as file:
            return shares(file, seconds)


def allow_tracing():
    """Allow any process of this user to read this one. Otherwise only a parent may, and py-spy is a child."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_PTRACER, ANY)


def start(program, path):
    """Start py-spy. When it has begun to record, or failed, return it and the first line that it printed."""
    command = [program, "record", "--pid", str(os.getpid()), "--native", "--format", "raw", "--output", path]
    command += ["--rate", str(RATE), "--duration", "3600", "--nolineno"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return process, process.stdout.readline()


def shares(lines, seconds):
    """Return {function: seconds} from lines such as ``main (a.py);step (b.py) 17``: stack, number of samples."""
    samples = collections.Counter()
    for line in lines:
        stack, _, count = line.rstrip("\n").rpartition(" ")
        if count.isdigit():
            samples[ADDRESS.sub("unknown function ", stack.rpartition(";")[2])] += int(count)
    total = sum(samples.values())
    return {name: seconds * count / total for name, count in samples.items()}
