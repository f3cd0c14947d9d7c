"""A worker with invalid answers, hostile text, a huge log, or a child process that it leaves behind."""

import dataclasses
import os
import shutil
import sys
import time
import tracemalloc
from pathlib import Path

import pytest

from fakes import SHORT
from processes import alive, in_group, wait_until
from stele.environments import Environment
from stele.errors import SteleError
from stele.measuring import strays
from stele.measuring.measure import Plan, measure
from stele.measuring.settings import Settings
from stele.measuring.worker import WorkerError, launch

PLAN = Plan(task="gru", phase="infer", scale="smoke", data=None, data_origin={})
SETTINGS = Settings(device="cpu", threads=1)
HELLO = """
import json, os, sys, time
from stele_worker import protocol
def send(kind, value):
    print(json.dumps({"id": request["id"], kind: value}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    BODY
"""


def python_environment(body):
    """Return an environment whose worker carries out ``body`` for each request."""
    return Environment(
        name="python",
        label="Python",
        framework="none",
        command=(sys.executable, "-c", HELLO.replace("BODY", body)),
    )


@pytest.mark.parametrize(
    ("seconds", "message"),
    [
        ([0.5, -0.01, 0.01], "a duration of -0.01 s"),
        ([0.5, 0.0, 0.01], "a duration of 0.0 s"),
        ([0.5, None, 0.01], r"seconds\[1\] is None, expected a number"),
        ([0.5, "0.01", 0.01], r"seconds\[1\] is '0.01', expected a number"),
        ([], "there are no durations"),
        ([0.5], "1 warm-up steps of 1"),
    ],
)
def test_durations_that_a_clock_cannot_measure_are_an_invalid_answer(scripted, seconds, message):
    with pytest.raises(WorkerError, match=f"sent an invalid answer during 'infer': .*{message}"):
        measure(scripted(seconds=seconds), PLAN, SETTINGS)


def test_a_worker_that_prints_forever_is_stopped_before_the_disk_is_full(start, monkeypatch):
    monkeypatch.setattr("stele.measuring.logs.LARGEST", 2**20)
    monkeypatch.setattr("stele.measuring.worker.CHECK", 0.05)
    worker = start(python_environment('while True: sys.stderr.write("noise " * 1000 + "\\n")'))
    with pytest.raises(
        WorkerError, match="printed more than 0.0009.* GiB during 'hello' and was stopped"
    ) as failure:
        worker.ask("hello")
    assert "noise" in str(failure.value)
    assert worker.log.stat().st_size < 2**17


def test_a_failure_on_a_full_disk_is_not_the_framework_s(start, monkeypatch):
    monkeypatch.setattr("stele.measuring.space.LEAST", 2**80)
    worker = start(python_environment("sys.exit(1)"))
    with pytest.raises(
        SteleError, match=r"crashed during 'hello'.*the disk of .* is full.*Free some space"
    ) as failure:
        worker.ask("hello")
    assert not isinstance(failure.value, WorkerError)


def test_an_answer_that_lacks_keys_is_an_invalid_answer(start):
    worker = start(python_environment('send("result", {"protocol": protocol.VERSION, "versions": {}})'))
    with pytest.raises(WorkerError, match="sent an invalid answer during"):
        measure(worker, PLAN, SETTINGS)


def test_nan_which_is_not_json_is_an_invalid_answer(start):
    worker = start(python_environment('send("result", {"losses": [float("nan")]})'), timeout=20)
    with pytest.raises(WorkerError, match="sent an invalid answer during 'train': .*NaN is not JSON"):
        worker.ask("train")


def test_control_characters_of_a_worker_never_reach_the_host(scripted):
    with pytest.raises(WorkerError) as raised:
        scripted(train="hostile_error").ask("train")
    assert "<script>alert(1)</script> | [x](y) ??[31m" in str(raised.value)
    assert raised.value.message == "<script>alert(1)</script> | [x](y) ??[31m"


def test_a_message_of_a_worker_cannot_look_like_a_line_of_stele(start):
    body = 'send("error", {"type": "ValueError", "message": "no kernel\\nPASS  gru infer", "traceback": ""})'
    with pytest.raises(WorkerError, match="ValueError: no kernel\n    PASS  gru infer"):
        start(python_environment(body), timeout=20).ask("train")


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
worker.load = lambda requests: (do, requests)
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
worker.load = lambda requests: (do, requests)
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


LEAVE = """
import tempfile, multiprocessing.util, pathlib
    made = [multiprocessing.util.get_temp_dir(), tempfile.mkdtemp(), tempfile.mkstemp()[1]]
    send("result", {"made": made, "folder": tempfile.gettempdir()})
""".strip()


def test_temporary_files_that_a_model_leaves_are_removed_with_the_worker(start, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", "/tmp")  # a short name
    monkeypatch.setattr("tempfile.tempdir", None)
    worker = start(python_environment(LEAVE), timeout=20)
    made = [Path(name) for name in worker.ask("hello")["made"]]
    assert all(path.exists() for path in made)
    worker.close(graceful=False)
    assert not any(path.exists() for path in made)


def test_sockets_fit_into_the_folder_of_temporary_files(start, monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", "/tmp")
    monkeypatch.setattr("tempfile.tempdir", None)
    body = LEAVE.replace(
        "made = [", "import multiprocessing.connection as c; c.Listener(family='AF_UNIX'); made = ["
    )
    assert start(python_environment(body), timeout=20).ask("hello")["made"]


def test_a_folder_of_temporary_files_with_a_long_name_is_used_itself(start, monkeypatch, tmp_path):
    long = tmp_path / ("x" * 50)
    long.mkdir()
    monkeypatch.setenv("TMPDIR", str(long))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert start(python_environment(LEAVE), timeout=20).ask("hello")["folder"] == str(long)


@pytest.mark.parametrize("removed", ["project", "temporary"])
def test_a_folder_that_is_deleted_in_the_middle_is_named(start, monkeypatch, tmp_path, removed):
    for name in ("project", "temporary"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", None)
    worker = start(python_environment("os._exit(3)"), timeout=20)
    shutil.rmtree(tmp_path / removed)
    with pytest.raises(
        SteleError, match=f"The folder {tmp_path / removed} was deleted .* Create it again"
    ) as error:
        worker.ask("hello")
    assert not isinstance(error.value, WorkerError)  # so NEW is not to blame


def test_a_log_that_is_a_link_or_a_fifo_is_replaced(start, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "precious").write_text("text")
    (tmp_path / ".stele/logs").mkdir(parents=True)
    (tmp_path / ".stele/logs/link.log").symlink_to(tmp_path / "precious")
    os.mkfifo(tmp_path / ".stele/logs/fifo.log")
    for name in ("link", "fifo"):
        with launch(python_environment('send("result", {})'), SETTINGS, name=name) as worker:
            worker.ask("hello")
    assert (tmp_path / "precious").read_text() == "text"


@pytest.mark.parametrize(
    ("message", "end"),
    [
        ("it does not fit.", "it does not fit."),
        ("it does not fit", "it does not fit."),
        ("does it fit?", "does it fit?"),
        ("first\n  File x, line 1", "first\n      File x, line 1"),
    ],
)
def test_a_message_ends_with_one_full_stop_and_without_an_empty_log(start, message, end):
    body = f'send("error", {{"type": "ValueError", "message": {message!r}, "traceback": ""}})'
    with pytest.raises(WorkerError) as error:
        start(python_environment(body), timeout=20).ask("train")
    assert str(error.value) == f"Worker 'python' failed during 'train': ValueError: {end}"


def test_an_error_shows_the_end_of_a_huge_log_without_reading_all_of_it(scripted, tmp_path):
    worker = scripted(train="segfault")
    tracemalloc.start()
    try:
        with Path(worker.log).open("r+b") as log:
            log.truncate(200 * 2**20)
        with pytest.raises(WorkerError, match="killed by SIGSEGV"):
            worker.ask("train")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20 * 2**20


FOREVER = """threading.Thread(target=report).start()
    time.sleep(600)"""
THREAD = """
import itertools, threading
def report():
    for number in itertools.count():
        send("progress", {"phase": "train", "done": DONE, "of": 10**9})
        time.sleep(0.005)
"""


def heartbeat(done):
    """Return an environment whose worker hangs, while a thread of it reports progress."""
    environment = python_environment(FOREVER)
    source = THREAD.replace("DONE", done) + environment.command[2]
    return dataclasses.replace(environment, command=(sys.executable, "-c", source))


def test_a_worker_that_hangs_while_a_thread_repeats_its_progress_is_stopped(start):
    with pytest.raises(
        WorkerError, match=f"sent messages but reported no new step for {SHORT} s during"
    ) as failure:
        start(heartbeat("7"), timeout=SHORT).ask("train")
    assert "'train' and was stopped. If the machine is slow, increase --worker-timeout" in str(failure.value)


def test_a_worker_that_reports_new_steps_forever_is_stopped(start, monkeypatch):
    monkeypatch.setattr("stele.measuring.deadline.LONGEST", 1.5)
    with pytest.raises(
        WorkerError, match=rf"did not finish within {1.5 * SHORT} s \(1\.5 times the timeout\) during 'train'"
    ):
        start(heartbeat("number"), timeout=SHORT).ask("train")


def test_a_worker_that_prints_forever_is_stopped_also_if_it_reports_progress(start, monkeypatch):
    monkeypatch.setattr("stele.measuring.logs.LARGEST", 2**20)
    body = 'while True:\n        send("progress", {"phase": "train", "done": 0, "of": 1})\n'
    worker = start(python_environment(body + '        sys.stderr.write("noise " * 10**5)'), timeout=20)
    with pytest.raises(WorkerError, match="printed more than"):
        worker.ask("train")


@pytest.mark.parametrize(
    "body",
    [
        'send("error", {"type": "OSError", "message": "[Errno 28] No space left on device", "traceback": ""})',
        'sys.exit("LLVM ERROR: IO failure on output stream: No space left on device")',
    ],
)
def test_a_framework_that_finds_a_disk_full_is_not_broken(start, body):
    with pytest.raises(
        SteleError, match=r"a disk that it uses \(.*No space.*\) is full.*Free some"
    ) as failure:
        start(python_environment(body), timeout=20).ask("train")
    assert not isinstance(failure.value, WorkerError)
