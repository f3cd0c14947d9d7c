"""A temporary project in which a fault is planted, and the checks that every fault must pass."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import psutil

from stele.parity import golden_numbers

FAKE = Path(__file__).with_name("fake.py")
ROOT = Path(__file__).parents[2]
LIMIT = 120.0  # seconds that a command may take
MEMORY = 2**30  # bytes that a host may use
GRACE = 5.0  # seconds that the kernel has to end the processes of a host that was killed
GATE = (
    *("gate", "old", "new", "--task", "resnet50", "--phase", "infer", "--metric", "step"),
    *("--budget", "5m", "--worker-timeout", "2", "--no-wait"),
)
SHORT = 240  # characters of a message on the page
INTERNAL = 4  # the exit code of an error in Stele itself


class NotRun(Exception):
    """The fault cannot be planted on this machine. The text is the reason."""


class Result(NamedTuple):
    """A command that ended. ``code`` is None if it had to be killed after LIMIT seconds."""

    code: int | None
    output: str
    seconds: float
    processor: float  # seconds, including its child processes
    memory: int  # peak, bytes

    @property
    def message(self):
        """The lines of the output that describe an error or a verdict; else its last line."""
        lines = [line for line in self.output.splitlines() if line.strip()]
        first = [line for line in lines if line.startswith("stele: ") and "waiting" not in line]
        verdicts = [line for line in lines if re.match(r" +(BROKEN|MISSING|REGRESSED|INCONCLUSIVE) ", line)]
        return (verdicts or first or lines[-1:] or ["no output"])[0]


class Process:
    """A command that runs in a separate process group, as in a terminal. Its output goes to a file."""

    def __init__(self, command, folder, variables, output, **options):
        self.output, self.start = output, time.monotonic()
        with output.open("wb") as file:
            streams = {"stdin": subprocess.DEVNULL, "stdout": file, "stderr": file, **options}
            self.process = subprocess.Popen(command, cwd=folder, env=variables, start_new_session=True, **streams)

    def interrupt(self, number=signal.SIGINT):
        """Send a signal to the process group, as a terminal does."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def wait(self, limit=LIMIT):
        """Return the Result. Kill the process group after ``limit`` seconds."""
        end, ended = self.start + limit, 0
        while not ended and time.monotonic() < end:
            ended, status, usage = os.wait4(self.process.pid, os.WNOHANG)
            time.sleep(0.01)
        code = os.waitstatus_to_exitcode(status) if ended else None
        if not ended:
            self.interrupt(signal.SIGKILL)
            _, _, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = code  # os.wait4 has reaped it
        output = self.output.read_text(encoding="utf-8", errors="replace")
        processor, memory = usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
        return Result(code, output, time.monotonic() - self.start, processor, memory)


class Project:
    """A temporary folder with a project, a home, a cache and a folder for temporary files.

    ``problems`` lists what violated a requirement. ``figures`` are numbers to show.
    """

    def __init__(self, fault, folder):
        self.fault, self.folder, self.problems, self.figures = fault, folder, [], []
        self.work, self.temporary, self.cache = folder / "work", folder / "tmp", folder / "cache"
        self.descriptions, self.wheels, self.canary = (
            folder / "environments",
            folder / "wheels",
            folder / "executed",
        )
        self.first, self.last, self.kept, self.count = None, None, "", 0
        for path in (self.work, self.temporary, self.descriptions, self.wheels, folder / "home"):
            path.mkdir(parents=True)
        self.describe("old")
        self.describe("new")

    def variables(self, **changes):
        """Return the environment variables of a command. A change to None removes a variable."""
        kept = ("PATH", "LD_LIBRARY_PATH", "SSL_CERT_FILE")
        values = {name: os.environ[name] for name in kept if name in os.environ}
        values |= {
            "HOME": str(self.folder / "home"),
            "LANG": "C.UTF-8",
            "COLUMNS": "10000",  # no line of a gate is folded
            "TMPDIR": str(self.temporary),
            "STELE_CACHE": str(self.cache),
            "STELE_ENVIRONMENTS": str(self.descriptions),
            "STELE_OFFLINE": "1",
            "STELE_FAULT": self.fault,
            "UV_CACHE_DIR": str(self.folder.parent / "uv"),
            "UV_FIND_LINKS": str(self.wheels),
            "UV_DEFAULT_INDEX": self.wheels.as_uri(),
            **changes,
        }
        return {name: value for name, value in values.items() if value is not None}

    def describe(self, name, *, worker=None, **facts):
        """Describe an environment with a fake worker, whose folder is ``worker`` or the name."""
        folder = self.folder / "workers" / (worker or name)
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, str(FAKE), str(folder)]
        values = {"label": name.title(), "framework": "fake", "command": command, **facts}
        lines = [f"{key} = {json.dumps(value)}\n" for key, value in values.items()]
        (self.descriptions / f"{name}.toml").write_text("".join(lines), encoding="utf-8")

    def plant(self, fault, *, name="new", **options):
        """Let the worker of an environment fail from its fourth launch on."""
        self.tell(name, "plant", {"fault": fault, "from": 4, **options})

    def remove_fault(self, name="new"):
        (self.folder / "workers" / name / "plant").unlink()

    def teach_parity(self, task):
        """Let both workers return the golden numbers of a task."""
        answer = {
            **golden_numbers.load(task),
            "unequal": {},
            "repeats": True,
            "tracked": False,
            "digest": "same",
        }
        for name in ("old", "new"):
            self.tell(name, "facts", {"parity": answer})

    def tell(self, name, what, facts):
        (self.folder / "workers" / name / what).write_text(json.dumps(facts), encoding="utf-8")

    def start(self, *arguments, module="stele", interpreter=(), prefix=(), folder=None, options=None, **changes):
        """Start ``python -m stele ARGUMENTS`` in the project. ``prefix`` starts another program that starts it."""
        self.count += 1
        command = [*prefix, sys.executable, *interpreter, "-m", module, *map(str, arguments)]
        output = self.folder / f"output-{self.count}"
        return Process(command, folder or self.work, self.variables(**changes), output, **(options or {}))

    def run(self, *arguments, limit=LIMIT, **options):
        return self.start(*arguments, **options).wait(limit)

    # what must be true

    def require(self, condition, problem):
        """Record a problem unless the condition is true."""
        if not condition:
            self.problems.append(problem)

    def observe(self, result, *codes, contains=None):
        """Check the command in which the fault was planted."""
        self.check(result, codes, "the command")
        self.first = self.first or result
        self.require(
            contains is None or re.search(contains, result.output),
            f"the output does not match {contains!r}",
        )
        return result

    def proceed(self, result, *codes):
        """Check the command that continues after the fault."""
        self.check(result, codes or (0,), "the next run")
        self.last = result
        return result

    def check(self, result, codes, what):
        if result.code is None:
            self.problems.append(f"{what} did not end within {LIMIT:g} s")
            return
        allowed = " or ".join(map(str, codes))
        self.require(result.code in codes, f"{what} exits with {result.code}, not {allowed}")
        self.require("Traceback (most recent call last)" not in result.output, f"{what} prints a traceback")
        self.require(result.code != INTERNAL, f"{what} reports an error in Stele: {result.message}")
        self.require(result.memory < MEMORY, f"{what} uses {result.memory / 2**20:,.0f} MiB")
        self.require(wait_for(lambda: not self.processes()), f"{what} leaves processes: {self.processes()}")

    def processes(self):
        """Return the command lines of running processes that were started for this fault."""
        return [" ".join(command) for process in processes_of(self.fault) if (command := command_of(process))]

    def folders(self):
        """Return the names of temporary files and folders that remain."""
        return sorted(path.name for path in self.temporary.iterdir())

    # gates

    def launches(self):
        """Return the moments of all launches in the complete lines of the gate's records; they identify them."""
        texts = [path.read_text(errors="replace") for path in self.work.glob(".stele/gates/*.jsonl")]
        complete = [text[: text.rfind("\n") + 1] for text in texts]
        return {moment for text in complete for moment in re.findall(r'"when": "([^"]+)"', text)}

    def keep(self, before):
        """Check that the launches are still in the records."""
        lost = before - self.launches()
        self.require(not lost, f"{len(lost)} launches were lost")
        self.kept = f"{len(before)} launches"

    def gate_and_resume(self, *codes, contains=None, next_codes=(0,), **options):
        """Run a gate with the planted fault, remove the fault, and resume the gate."""
        self.observe(self.run(*GATE, **options), *codes, contains=contains)
        self.resume(next_codes, **options)

    def resume(self, codes=(0,), **options):
        before = self.launches()
        for plant in (self.folder / "workers").glob("*/plant"):
            plant.unlink()
        self.proceed(self.run(*GATE, "--resume", **options), *codes)
        self.keep(before)


class Row(NamedTuple):
    """What happened after a fault. ``status`` is passed, failed or not run."""

    group: str
    fault: str
    title: str
    status: str
    message: str
    code: int | None
    kept: str
    processes: int
    folders: int
    next: str
    problems: tuple
    figures: tuple
    seconds: float


def title(fault):
    """Return the first line of a fault's docstring, without its full stop."""
    return fault.__doc__.splitlines()[0].removesuffix(".")


def carry_out(group, fault, parent):
    """Plant a fault in a new project and return the Row."""
    start, reason = time.monotonic(), None
    name = f"{group}-{fault.__name__}"
    project = Project(f"{name}-{os.getpid()}", Path(tempfile.mkdtemp(prefix="project-", dir=parent)))
    try:
        fault(project)
        project.require(not project.canary.exists(), "loaded content was executed")
        project.require(not project.folders(), f"temporary files remain: {project.folders()}")
    except NotRun as error:
        reason = str(error)
    except Exception as error:  # such as a file that a command should have written
        project.problems.append(f"the fault could not be carried out: {error!r}")
    processes, folders = len(project.processes()), len(project.folders())
    end_processes(project)
    shutil.rmtree(project.folder, ignore_errors=True)
    return Row(
        group,
        fault.__name__,
        title(fault),
        "not run" if reason else "failed" if project.problems else "passed",
        reason or clean(project, project.first.message if project.first else ""),
        project.first.code if project.first else None,
        project.kept,
        processes,
        folders,
        clean(project, f"{project.last.code}: {project.last.message}") if project.last else "",
        tuple(clean(project, problem) for problem in project.problems),
        tuple(project.figures),
        time.monotonic() - start,
    )


def processes_of(fault):
    """Return the running processes that were started for a fault."""
    running = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):  # it ended meanwhile, or belongs to another user
            if process.environ().get("STELE_FAULT") == fault and process.status() != psutil.STATUS_ZOMBIE:
                running.append(process)
    return running


def command_of(process):
    with contextlib.suppress(psutil.Error):
        return process.cmdline()
    return []


def end_processes(project):
    """Kill what a fault left, so that it does not disturb the next fault."""
    for process in processes_of(project.fault):
        with contextlib.suppress(psutil.Error):
            process.kill()


def clean(project, message):
    """Return a message on one line, without the paths of this machine and without control characters."""
    for path, name in (
        (project.folder, "…"),
        (project.folder.parent, "…"),
        (ROOT, "stele"),
        (sys.prefix, "python"),
        (sys.base_prefix, "python"),
    ):
        message = message.replace(str(path), name)
    message = "".join(letter if letter.isprintable() else "?" for letter in re.sub(r"\s+", " ", message))
    message = re.sub(r"process \d+", "process N", message)
    return message if len(message) <= SHORT else message[:SHORT] + " …"


def wait_for(condition, seconds=GRACE):
    """Return whether the condition becomes true within some seconds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
