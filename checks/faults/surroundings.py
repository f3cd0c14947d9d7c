"""Surroundings of the host: clocks, locales, paths, terminals, interpreters."""

import contextlib
import os
import pty
import struct
import termios
import threading
from fcntl import ioctl

from harness import GATE
from interruptions import start_gate
from toy import describe_build

CLOCK = """
import datetime, itertools, time
jumps, now = itertools.cycle([0, 86400, -86400, 3e7]), time.time
time.time = lambda: now() + next(jumps)
class Jumping(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(time.time(), tz)
datetime.datetime = Jumping
"""


# clocks, locales and paths


def wall_clock(project):
    """The wall clock jumps by days between two calls."""
    folder = project.folder / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(CLOCK)
    path = os.pathsep.join(filter(None, [str(folder), project.variables().get("PYTHONPATH")]))
    project.observe(project.run(*GATE, PYTHONPATH=path), 0)
    project.resume(PYTHONPATH=path)


def time_zones(project):
    """The time zone changes between the gate and its continuation."""
    process = start_gate(project)
    process.interrupt()
    project.observe(process.wait(), 130)
    for zone in ("Pacific/Kiritimati", "Etc/GMT+12"):
        project.resume(TZ=zone)


def ascii_output(project):
    """The locale is C, and the output is ASCII."""
    in_locale(project, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", PYTHONIOENCODING="ascii")


def ascii_paths(project):
    """The locale is C, Python runs with -O, and a description has a path that is not ASCII."""
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    project.describe("other", label="Other", worker="größer")
    arguments = [*GATE[:2], "other", *GATE[3:]]
    project.observe(project.run(*arguments, interpreter=["-O"], **locale), 2)
    project.require("cannot express" in project.first.output, "the message does not name the path")
    project.proceed(project.run(*arguments, "--resume", interpreter=["-O"]), 0)


def turkish_locale(project):
    """The locale is Turkish, in which the lower case of I is not i."""
    in_locale(project, LC_ALL="tr_TR.UTF-8", LANG="tr_TR.UTF-8")


def in_locale(project, **variables):
    """Run a gate with reports on an environment whose name is not ASCII."""
    project.describe("größer", label="Größer → I", worker="new")
    arguments = [*GATE, "--markdown", "report.md", "--json", "report.json", "--junit", "report.xml"]
    arguments[2] = "größer"
    project.observe(project.run(*arguments, **variables), 0)
    project.observe(project.run("env", "list", **variables), 0)
    project.proceed(project.run(*arguments, "--resume", **variables), 0)


def paths(project):
    """All folders have blanks, umlauts and 200 characters in their names."""
    base = project.folder / "a b's" / ("ü" * 100)
    project.work, project.temporary, project.cache = base / "work dir", base / "tmp dir", base / "cache dir"
    for folder in (project.work, project.temporary):
        folder.mkdir(parents=True)
    project.observe(project.run(*GATE, "--json", "größe 1.json"), 0)
    describe_build(project)
    project.observe(project.run("env", "make", "toy"), 0)
    project.resume()


def relative_folders(project):
    """STELE_CACHE, TMPDIR and STELE_ENVIRONMENTS are relative paths."""
    folders = {
        "STELE_CACHE": os.path.relpath(project.cache, project.work),
        "TMPDIR": os.path.relpath(project.temporary, project.work),
        "STELE_ENVIRONMENTS": os.path.relpath(project.descriptions, project.work),
    }
    describe_build(project)
    project.observe(project.run(*GATE, **folders), 0)
    project.observe(project.run("env", "make", "toy", **folders), 0)
    project.resume()


# terminals and interpreters


def narrow_terminal(project):
    """The terminal has 20 columns."""
    master, slave = pty.openpty()
    ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 20, 0, 0))
    log = project.folder / "terminal"
    thread = threading.Thread(target=copy_terminal, args=(master, log), daemon=True)
    thread.start()
    streams = {"stdin": slave, "stdout": slave, "stderr": slave}
    result = project.run(*GATE, options=streams, COLUMNS="20", TERM="xterm")
    os.close(slave)
    thread.join(5)
    os.close(master)
    output = log.read_text(encoding="utf-8", errors="replace").replace("\r", "")
    project.observe(result._replace(output=output), 0)
    project.resume(COLUMNS="20")


def copy_terminal(master, log):
    with log.open("wb") as file, contextlib.suppress(OSError):  # the terminal was closed
        while block := os.read(master, 4096):
            file.write(block)
            file.flush()


def closed_stdout(project):
    """Standard output is closed."""
    shell = ["sh", "-c", 'exec "$@" >&-', "sh"]
    project.observe(project.run(*GATE, "--json", "report.json", prefix=shell), 0, 2)
    project.resume()


def closed_pipe(project):
    """The program that reads standard output ends early."""
    shell = ["bash", "-c", '"$@" | true; exit ${PIPESTATUS[0]}', "bash"]
    project.observe(project.run(*GATE, prefix=shell), 0, 2)
    project.observe(project.run("env", "list", prefix=shell), 0, 2)
    project.resume()


def python_optimized(project):
    """Python runs with -O, which removes assertions."""
    with_interpreter(project, "-O")


def python_isolated(project):
    """Python runs with -I, which ignores variables and the current folder."""
    with_interpreter(project, "-I")


def python_development(project):
    """Python runs with -X dev, which shows warnings."""
    with_interpreter(project, "-X", "dev")
    project.require("Warning" not in project.first.output, "the command prints a warning")


def with_interpreter(project, *flags):
    project.observe(project.run(*GATE, interpreter=flags), 0)
    project.resume(interpreter=flags)


FAULTS = (
    wall_clock,
    time_zones,
    ascii_output,
    ascii_paths,
    turkish_locale,
    paths,
    relative_folders,
    narrow_terminal,
    closed_stdout,
    closed_pipe,
    python_optimized,
    python_isolated,
    python_development,
)
