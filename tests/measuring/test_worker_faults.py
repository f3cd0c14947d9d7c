"""A worker with invalid answers, hostile text, a huge log, or a child process that it leaves behind."""

import dataclasses
import shutil
import sys
from pathlib import Path

import pytest

from stele.errors import SteleError
from stele.measuring.worker import WorkerError
from tests.support.faults import python_environment
from tests.support.scripted_environments import SHORT


def test_control_characters_of_a_worker_never_reach_the_host(scripted):
    with pytest.raises(WorkerError) as raised:
        scripted(train="hostile_error").ask("train")
    assert "<script>alert(1)</script> | [x](y) ??[31m" in str(raised.value)
    assert raised.value.message == "<script>alert(1)</script> | [x](y) ??[31m"


def test_a_message_of_a_worker_cannot_look_like_a_line_of_stele(start):
    body = 'send("error", {"type": "ValueError", "message": "no kernel\\nPASS  gru infer", "traceback": ""})'
    with pytest.raises(WorkerError, match="ValueError: no kernel\n    PASS  gru infer"):
        start(python_environment(body), timeout=20).ask("train")


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
    body = LEAVE.replace("made = [", "import multiprocessing.connection as c; c.Listener(family='AF_UNIX'); made = [")
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
    with pytest.raises(SteleError, match=f"The folder {tmp_path / removed} was deleted .* Create it again") as error:
        worker.ask("hello")
    assert not isinstance(error.value, WorkerError)  # so NEW is not to blame


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


@pytest.mark.slow
def test_a_worker_that_hangs_while_a_thread_repeats_its_progress_is_stopped(start):
    with pytest.raises(WorkerError, match=f"sent messages but reported no new step for {SHORT} s during") as failure:
        start(heartbeat("7"), timeout=SHORT).ask("train")
    assert "'train' and was stopped. If the machine is slow, increase --worker-timeout" in str(failure.value)


@pytest.mark.slow
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
