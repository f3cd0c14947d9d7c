"""A command of the user: its time, its memory, its exit code, and what it reports itself.

It reports metrics and values as JSON lines in the file that the variable STELE_REPORT names:

{"metric": "tokens_per_second", "value": 812, "better": "higher"}
{"value": "loss", "step": 12, "number": 2.31}
"""

import json
import math
import os
import resource
import subprocess
import sys
import threading
import time

from stele_worker.models.errors import SpecError
from stele_worker.programs import Program, outcome, values

REPORT = "STELE_REPORT"
KIB = 1024
LOOK = 0.02  # seconds between two looks at the memory of all processes
LARGEST = 8 * 2**20  # bytes of a report
MOST = 500  # metrics, and values
DIRECTIONS = ("lower", "higher")
LAST = 4096  # bytes of the output that are searched for its last line


class Main(Program):
    def prepare(self, model):
        self.words, self.report, self.better = model["arguments"], model["report"], model["better"]
        self.name = model["name"]
        self.folder_of_report = os.environ["TMPDIR"]
        programs = os.path.dirname(os.path.abspath(sys.executable))
        os.environ["PATH"] = os.pathsep.join([programs, os.environ.get("PATH", os.defpath)])
        os.environ.setdefault("VIRTUAL_ENV", os.path.dirname(programs))
        return 0.0, {}

    def collect(self, host):
        return {"items": [{"name": self.name}], "failures": []}

    def run(self, host, name, following=None):
        done = self.execute()
        if done["code"]:
            return outcome("failed", self.failure(done), "", done["wall"])
        metrics, computed = self.reported()
        timing = {"seconds": done["wall"], "calls": 1, "rounds": 1}
        directions = {name: better for name, (_, better) in metrics.items()}
        return outcome("passed", seconds=done["wall"], values=computed, timing=timing, metrics=directions)

    def rounds(self, host, task, turn=None, **_):
        if turn is not None:
            host.pause(0)
        done = self.execute()
        if done["code"]:
            raise RuntimeError(self.failure(done))
        numbers = {name: number for name, (number, _) in self.reported()[0].items()}
        return {
            "steps": {"seconds": [done["wall"]], "warmup": 0, "steady": True, "batch": 1},
            "memory": {"host": done["memory"], "device": None},
            "numbers": dict(numbers, **{"processor-time": done["processor"]}),
        }

    def execute(self):
        """Run the command once. Return its exit code, its times in seconds, and its peak memory in bytes."""
        self.path = os.path.join(self.folder_of_report, "report.jsonl")
        if os.path.exists(self.path):
            os.remove(self.path)
        self.written_before = facts(self.report)
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        with open(os.path.join(self.folder_of_report, "output"), "w+b") as output:
            try:
                running = subprocess.Popen(
                    self.words,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=dict(os.environ, **{REPORT: self.path}),
                )
            except OSError as error:
                raise SpecError("{}: {}".format(self.words[0], error.strerror or error)) from None
            with Memory(running.pid) as memory:
                code = running.wait()
            wall = time.perf_counter() - start
            output.seek(max(output.seek(0, os.SEEK_END) - LAST, 0))
            lines = output.read().decode("utf-8", "replace").strip().splitlines()
        sys.stderr.write("\n".join(lines) + "\n")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return {
            "code": code,
            "wall": wall,
            "processor": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            "memory": max(memory.peak or 0, after.ru_maxrss * KIB) or None,
            "last": lines[-1] if lines else "",
        }

    def failure(self, done):
        ended = "exit code {}".format(done["code"]) if done["code"] > 0 else "ended by signal {}".format(-done["code"])
        return "{}: {}".format(ended, done["last"][:500]) if done["last"] else ended

    def reported(self):
        """Return {metric: (number, direction or None)} and the values that the command reported."""
        metrics, computed = {}, {}
        for number, line in enumerate(read(self.path).splitlines(), 1):
            try:
                add(json.loads(line), metrics, computed)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise SpecError(
                    "line {} of {} is no report: {} ({!r:.80})".format(number, REPORT, error, line)
                ) from None
        if self.report is not None:
            try:
                content = json.loads(read(self.report) or "null")
            except ValueError as error:
                raise SpecError("--report {}: {}".format(self.report, error)) from None
            if content is None or facts(self.report) == self.written_before:
                raise SpecError("--report {}: the command did not write this file".format(self.report))
            every = dict(numbers_in(content, ""))
            unknown = [name for name in self.better if name not in every and name not in metrics]
            if unknown:
                known_names = ", ".join(list(every)[:10])
                raise SpecError("--better: {} has no number {!r}, but {}".format(self.report, unknown[0], known_names))
            for name, number in every.items():
                if name in self.better:
                    metrics[name] = (number, self.better[name])
                else:
                    computed[name] = values.part(number)
        metrics = {name: (number, self.better.get(name, better)) for name, (number, better) in metrics.items()}
        if len(metrics) > MOST or len(computed) > MOST:
            raise SpecError("the command reports more than {} metrics or values".format(MOST))
        return metrics, computed


def facts(path):
    """Return what changes when a file is written; None if there is none."""
    try:
        status = os.stat(path or "")
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def add(line, metrics, computed):
    """Add a line of the report. Raises ValueError, KeyError or TypeError if it is not one."""
    if "metric" in line:
        name, better = line["metric"], line.get("better")
        if better is not None and better not in DIRECTIONS:
            raise ValueError("better is {!r}, and must be lower or higher".format(better))
        if name in metrics:
            raise ValueError("the metric {!r} is reported twice".format(name))
        number = float(line["value"])
        if not math.isfinite(number):
            raise ValueError("{} is {}, which is no finite number".format(name, number))
        metrics[name] = (number, better)
    else:
        step = " at step {}".format(line["step"]) if "step" in line else ""
        computed[line["value"] + step] = values.part(line["number"])


def numbers_in(content, name):
    """Yield the name and the value of each number in a JSON document: ``train.loss``, ``runs[0].seconds``."""
    if isinstance(content, dict):
        for key, value in content.items():
            for each in numbers_in(value, "{}.{}".format(name, key) if name else key):
                yield each
    elif isinstance(content, list):
        for number, value in enumerate(content):
            for each in numbers_in(value, "{}[{}]".format(name, number)):
                yield each
    elif isinstance(content, (int, float)) and not isinstance(content, bool):
        yield name, float(content)


def read(path):
    """Return the text of a report; empty if there is none. Raises SpecError if it is too large."""
    if not os.path.exists(path):
        return ""
    if os.path.getsize(path) > LARGEST:
        raise SpecError("{} has more than {} bytes".format(os.path.basename(path), LARGEST))
    with open(path, "rb") as file:
        content = file.read()
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise SpecError("{} is not text in UTF-8".format(os.path.basename(path))) from None


class Memory:
    """Looks at the resident memory of a process and of all below it, while they run. Linux only."""

    def __init__(self, pid):
        self.pid, self.peak, self.ended = pid, None, threading.Event()

    def __enter__(self):
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()

    def watch(self):
        while not self.ended.wait(LOOK):
            now = sum(map(resident, below(self.pid)))
            if now:
                self.peak = max(now, self.peak or 0)


def below(pid):
    """Return a process and all that it has started."""
    pids = [pid]
    for parent in pids:
        try:
            with open("/proc/{0}/task/{0}/children".format(parent)) as file:
                pids.extend(map(int, file.read().split()))
        except OSError:
            pass
    return pids


def resident(pid):
    """Return the resident memory of a process, in bytes; 0 if it has ended."""
    try:
        with open("/proc/{}/statm".format(pid)) as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0
