import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from fakes import SHORT
from processes import alive, in_group, wait_until
from stele.environments import Environment
from stele.errors import SteleError
from stele.measuring import strays
from stele.measuring.worker import CACHES, WorkerError
from stele_worker import process, protocol


def test_a_worker_answers_a_request(oracle):
    answer = oracle.ask("hello")
    assert answer["protocol"] == protocol.VERSION
    assert answer["pid"] != os.getpid()


def test_progress_reaches_the_caller_before_the_result(scripted):
    reports = []
    assert scripted(train="progress").ask("train", progress=reports.append) == {}
    assert [report["done"] for report in reports] == [0, 1, 2]


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("segfault", r"Worker 'scripted' crashed during 'train': killed by SIGSEGV"),
        ("kill", r"killed by SIGKILL, perhaps by the kernel because memory ran out"),
        ("exit_with_3", r"crashed during 'train': it exited with status 3"),
        ("invalid_json", r"sent an invalid answer during 'train': b'Using TensorFlow backend"),
        ("wrong_id", r"sent an invalid answer during 'train'"),
        ("raise_error", r"failed during 'train': ValueError: no such kernel"),
    ],
)
def test_every_failure_has_a_distinct_message(scripted, action, message):
    with pytest.raises(WorkerError, match=message):
        scripted(train=action).ask("train")


def test_a_worker_that_hangs_is_stopped_after_the_timeout(scripted):
    worker = scripted(train="hang", timeout=SHORT)
    with pytest.raises(WorkerError, match=f"sent no message for {SHORT} s during 'train' and was stopped"):
        worker.ask("train")
    assert not alive(worker._process.pid)


def test_a_failure_shows_the_end_of_the_log(scripted):
    with pytest.raises(WorkerError, match="about to read address zero"):
        scripted(train="segfault").ask("train")


def test_a_request_to_a_dead_worker_is_an_error(scripted):
    worker = scripted(train="exit_with_3")
    for _ in range(2):
        with pytest.raises(WorkerError, match="crashed"):
            worker.ask("train")


def test_the_child_processes_of_a_worker_end_with_it(scripted):
    worker = scripted(train="hang_with_child", timeout=SHORT)
    with pytest.raises(WorkerError):
        worker.ask("train")
    wait_until(lambda: not in_group(worker._process.pid))


def test_a_worker_ends_when_its_input_ends(oracle):
    oracle.ask("hello")
    oracle.close()
    assert oracle._process.returncode == 0


def test_a_missing_interpreter_is_named_and_is_no_failure_of_its_framework(start):
    missing = Environment(
        name="cntk", label="CNTK", framework="cntk", command=("/nowhere/python3.6", "-m", "x")
    )
    with pytest.raises(SteleError, match=r"interpreter /nowhere/python3\.6 no longer exists") as caught:
        start(missing)
    assert not isinstance(caught.value, WorkerError)


NOISY = """
import os
from stele_worker import __main__, verbs

def noisy(request, report, do=verbs.do):
    print("WARNING:" * 10**6)
    os.write(1, b"from C")
    return do(request, report)

verbs.do = noisy
__main__.main()
"""


def test_the_output_of_a_library_goes_to_the_log(start, tmp_path):
    worker = start(Environment(name="noisy", label="", framework="", command=(sys.executable, "-c", NOISY)))
    assert worker.ask("hello")["protocol"] == protocol.VERSION
    worker.close()
    log = (tmp_path / "worker.log").read_text()
    assert len(log) > 8 * 10**6
    assert log.count("from C") == 1


def test_a_worker_survives_a_large_message_and_an_error(oracle):
    with pytest.raises(WorkerError, match="unknown verb 'shout'"):
        oracle.ask("shout", text="x" * 2**20)
    assert oracle.ask("hello")["protocol"] == protocol.VERSION


def test_an_interrupt_is_reported_as_an_error_and_the_worker_survives(start):
    source = "import os, signal\nfrom stele_worker import __main__, verbs\n"
    source += "verbs.VERBS['wait'] = lambda report: os.kill(os.getpid(), signal.SIGINT)\n__main__.main()"
    worker = start(
        Environment(name="patient", label="", framework="", command=(sys.executable, "-c", source))
    )
    with pytest.raises(WorkerError, match="KeyboardInterrupt"):
        worker.ask("wait")
    assert worker.ask("hello")["protocol"] == protocol.VERSION


class ScriptedClock:
    """A clock that only moves in sleep. Threads of this process compute until ``busy`` seconds have passed."""

    def __init__(self, busy):
        self.busy, self.now = busy, 0.0

    def perf_counter(self):
        return self.now

    def process_time(self):
        return min(self.now, self.busy)

    def sleep(self, seconds):
        self.now += seconds


@pytest.mark.parametrize(
    ("busy", "waited"), [(0.0, process.LOOK), (0.2, 0.2 + process.LOOK), (9.0, process.LONGEST)]
)
def test_a_turn_ends_when_the_threads_of_a_worker_are_idle(monkeypatch, busy, waited):
    clock = ScriptedClock(busy)
    monkeypatch.setattr(process, "time", clock)
    process.wait_until_idle()
    assert clock.now == pytest.approx(waited, abs=process.LOOK)


def test_a_worker_has_the_users_variables_but_folders_of_its_own(scripted, monkeypatch):
    seen, popen = [], subprocess.Popen

    def started(command, **options):
        seen.append(options["env"])
        return popen(command, **options)

    monkeypatch.setattr(subprocess, "Popen", started)
    for name in ("XLA_FLAGS", "PYTHONPATH", "TMPDIR", *CACHES):
        monkeypatch.setenv(name, "/of/the/user")
    for worker in (scripted(), scripted()):
        worker.ask("hello")
        worker.close()
    first, second = seen
    assert first["XLA_FLAGS"] == second["XLA_FLAGS"] == "/of/the/user"
    assert first["PYTHONHASHSEED"] == "0"
    for name in ("PYTHONPATH", "TMPDIR", *CACHES):
        assert len({first[name], second[name], "/of/the/user"}) == 3
        assert not Path(first[name]).exists()  # deleted with the worker


class Hung(NamedTuple):
    """A process that does not end."""

    pid: int


def test_a_process_that_cannot_be_ended_is_named_and_not_waited_for(scripted, monkeypatch, capsys):
    worker = scripted(action="hang_with_child")
    monkeypatch.setattr(strays, "TIMEOUT", 0.2)
    monkeypatch.setattr(strays, "processes", lambda folder: [Hung(4711), Hung(4712)])
    monkeypatch.setattr(strays, "kill", lambda process: None)
    start = time.monotonic()
    worker.close(graceful=False)
    assert 0.2 <= time.monotonic() - start < 3
    assert "left processes that cannot be ended now: 4711, 4712." in capsys.readouterr().err


def test_waiting_for_processes_to_end_takes_no_processor(tmp_path, monkeypatch):
    looks = []

    def processes(folder):
        looks.append(folder)
        return [Hung(4711)] if len(looks) < 5 else []

    monkeypatch.setattr(strays, "processes", processes)
    monkeypatch.setattr(strays, "kill", lambda process: None)
    monkeypatch.setattr(time, "sleep", lambda seconds: looks.append(seconds))
    assert strays.end(tmp_path) == [] and strays.PAUSE in looks
