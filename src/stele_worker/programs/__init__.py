"""Programs of the user that a worker runs as they are: tests, functions, commands and asv suites.

A program is started as ``python -m stele_worker --program=NAME``. It needs the standard library and what the
environment has, and answers the same lines as other workers. All programs have the same verbs, which docs/protocol.md
describes:

configure   the request of the subject, and the settings -> an answer as of a framework
collect     -> the names of its items, and what failed while they were collected
run         the name of an item, and of the one that follows -> what it did, and the values that it computed
rounds      the same, and how often -> durations of the item, in turns with other workers
finish      let the program end by itself
"""

import functools
import importlib
import os
import platform
import sys
from importlib.machinery import SourceFileLoader

from stele_worker import process, protocol
from stele_worker.models import reads
from stele_worker.models.errors import describe_error, user_frames, write_bytecode

LONGEST = 0.2  # seconds of the calls that show how long one takes
MOST_CALLS = 20


class Program:
    """What all programs have in common. Each extends this class in a module of its own, as ``Main``.

    ``folder`` is the absolute path of the user's folder, in which the program runs.
    """

    folder = ""
    together = False  # whether other workers import, and make the first call, at the same time on the same processor

    def __init__(self, requests, answers, answer):
        self.requests, self.answers, self.answer = requests, answers, answer

    def do(self, request, host):
        """Carry out a request and return its result."""
        verb = request.pop("verb", None)
        verbs = ("hello", "configure", "collect", "run", "rounds", "reads", "finish")
        if verb not in verbs:
            raise ValueError("unknown verb {!r}; this worker knows {}".format(verb, ", ".join(verbs)))
        return getattr(self, verb)(host, **request)

    def hello(self, host):
        return {
            "protocol": protocol.VERSION,
            "python": platform.python_version(),
            "numpy": None,
            "pid": os.getpid(),
        }

    def configure(self, host, framework, settings, model):
        """Go to the user's folder, with the user's PYTHONPATH, and prepare the program."""
        self.together = settings.get("together", False)
        process.limit_processors(settings["threads"])
        self.folder = model["folder"]
        enter(self.folder, model["python_path"])
        reads.watch(self.folder)
        seconds, versions = self.prepare(model)
        return {
            "import_seconds": max(seconds, 1e-9),
            "versions": dict(versions),
            "flags": {"device": "cpu", "processors": process.processors()},
        }

    def prepare(self, model):
        """Return the seconds of the import, and the versions of what it imports."""
        raise NotImplementedError

    def collect(self, host):
        """Return the items, {"name": ...}, and the failures, {"name": ..., "message": ...}."""
        raise NotImplementedError

    def run(self, host, name, following):
        """Run an item. Return its outcome: see ``outcome``."""
        raise NotImplementedError

    def rounds(self, host, task, steps, batch, turn, following=None, **_):
        """Time ``steps`` rounds of so many calls. Return them as the steps of an outcome, without the warm-up."""
        raise NotImplementedError

    def reads(self, host, folder):
        return reads.of_process(folder)

    def finish(self, host):
        return {}


def load(name, requests, answers, answer):
    """Return the function that carries out the requests of a program. ``answer`` is the function of the serve loop.

    Raises ModuleNotFoundError if the environment lacks a package that runs it.
    """
    # bytecode of packages is written, and not that of the user's modules
    SourceFileLoader.set_data = functools.partialmethod(write_bytecode, SourceFileLoader.set_data)
    return importlib.import_module("stele_worker.programs." + name).Main(requests, answers, answer).do


def enter(folder, python_path):
    """Go to a folder, with the variables and the import path of a process that was started there."""
    stele = os.environ.get("PYTHONPATH")
    if python_path is None:
        os.environ.pop("PYTHONPATH", None)
    else:
        os.environ["PYTHONPATH"] = python_path
    # the first entry is the folder of Stele, as ``python -m`` sets it; its modules are found at the end
    sys.path[:] = [path for path in sys.path if path not in ("", stele, os.getcwd())]
    added = [os.path.abspath(os.path.join(folder, path)) for path in (python_path or "").split(os.pathsep) if path]
    sys.path[:0] = added
    sys.path.append(stele)
    os.chdir(folder)


def outcome(status, message="", place="", seconds=0.0, values=None, timing=None, metrics=None):
    """Return what an item did.

    status     "passed", "failed", "error", "skipped", "xfailed" or "xpassed"
    message    the last line of the error, or the reason
    place      where, as FILE:LINE
    seconds    its duration
    values     {name: value}: see ``stele_worker.programs.values``
    timing     {"seconds": of a call, "calls": in a round, "rounds": their number}; null if it is not timed
    metrics    {name: "lower", "higher" or null}: what a command reports, and which direction is better
    """
    return {
        "status": status,
        "message": message,
        "place": place,
        "seconds": seconds,
        "values": values or {},
        "timing": timing,
        "metrics": metrics or {},
    }


def failed(error, folder, seconds):
    """Return the outcome of an item of the user that raised an error. ``folder`` is that of the project."""
    frames = user_frames(error, folder)
    place = "{}:{}".format(os.path.relpath(frames[-1].filename, folder), frames[-1].lineno) if frames else ""
    return outcome("failed", describe_error(error, folder).splitlines()[0], place, seconds)


def timing_of_calls(seconds_of_call):
    """Return the timing of an item, from the shortest of some calls; ``seconds_of_call()`` calls it once."""
    seconds = []
    while len(seconds) < MOST_CALLS and sum(seconds) < LONGEST:
        seconds.append(seconds_of_call())
    return {"seconds": max(min(seconds), 1e-9), "calls": 1, "rounds": MOST_CALLS}


def timed(seconds, calls, profile=None):
    """Return the durations of calls in rounds as the outcome of a launch, with what a profiler showed of a call."""
    return {
        **({} if profile is None else {"profile": profile}),
        "steps": {"seconds": seconds, "warmup": min(1, len(seconds) - 1), "steady": True, "batch": calls},
        "memory": {"host": process.peak_memory(), "device": None},
    }
