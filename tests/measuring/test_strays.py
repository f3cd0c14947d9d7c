"""Processes that a worker leaves."""

import os
import sys
import time
from typing import NamedTuple

import pytest

from stele.environments import Environment
from stele.measuring import strays
from tests.support.faults import python_environment
from tests.support.processes import alive, in_group, wait_until


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


def require_end(worker, pids, *, graceful=False):
    """Close the worker, and require that these processes run before it and have ended soon after."""
    try:
        assert all(map(alive, pids))
        worker.close(graceful=graceful)
        wait_until(lambda: not any(map(alive, pids)))
    finally:
        for pid in filter(alive, pids):
            os.kill(pid, 9)


def test_a_child_process_in_another_session_ends_with_the_worker(start, tmp_path):
    body = (
        "pid = os.fork()\n"
        "    if pid == 0:\n"
        "        os.setsid()\n"
        "        time.sleep(600)\n"
        '    send("result", {"pid": pid})'
    )
    worker = start(python_environment(body), timeout=20)
    require_end(worker, [worker.ask("hello")["pid"]])


def test_a_child_without_variables_in_another_folder_and_session_ends_with_the_worker(start):
    body = (
        "import subprocess\n"
        '    code = "import os, time; os.fork() or print(os.getpid(), flush=True); time.sleep(600)"\n'
        "    child = subprocess.Popen([sys.executable, '-c', code], env={}, cwd='/', start_new_session=True,"
        " stdout=subprocess.PIPE, universal_newlines=True)\n"
        '    send("result", {"pids": [child.pid, int(child.stdout.readline())]})'
    )
    worker = start(python_environment(body), timeout=20)
    require_end(worker, worker.ask("hello")["pids"])


DAEMON = """
import os, signal, time
import stele_worker.__main__ as worker
def do(request, host):
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        os.waitpid(child, 0)
        return {"pid": int(os.read(reader, 20))}
    os.setsid()
    os.chdir("/")
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for _ in range(FORKS):
        if os.fork():
            os._exit(0)
    os.dup2(writer, 1)
    os.closerange(3, 60)
    os.execve("/bin/sh", ["sh", "-c", "echo $$; exec >&-; exec sleep 600"], {"PATH": os.environ["PATH"]})
worker.load = lambda requests, answers: (do, requests)
worker.main()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives the orphans to a process")
@pytest.mark.parametrize("forks", [1, 2])
@pytest.mark.parametrize("graceful", [True, False])
def test_a_daemon_whose_parents_have_ended_ends_with_the_worker(start, forks, graceful):
    """Nothing of it names the worker: not its session, its folder, its variables or its open files."""
    command = (sys.executable, "-c", DAEMON.replace("FORKS", str(forks)))
    worker = start(Environment(name="python", label="Python", framework="none", command=command), timeout=20)
    require_end(worker, [worker.ask("hello")["pid"]], graceful=graceful)


LATE = """
import os, time
time.sleep(0.2)
os.fork() and os._exit(0)
time.sleep(20)
"""
LEAVING = f"""
import subprocess, sys
import stele_worker.__main__ as worker
def do(request, host):
    command = [sys.executable, "-ISc", {LATE!r}]
    return {{"pid": subprocess.Popen(command, env={{}}, cwd="/", start_new_session=True).pid}}
worker.load = lambda requests, answers: (do, requests)
worker.main()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives the orphans to a process")
def test_a_process_that_starts_another_one_before_it_is_killed_leaves_none(start, monkeypatch):
    kill = strays.kill
    monkeypatch.setattr(strays, "kill", lambda number: (time.sleep(0.5), kill(number)))
    command = (sys.executable, "-c", LEAVING)
    worker = start(Environment(name="python", label="Python", framework="none", command=command), timeout=20)
    group = worker.ask("hello")["pid"]
    worker.close(graceful=False)
    time.sleep(0.5)
    assert not in_group(group)
