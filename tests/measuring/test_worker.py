import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stele.environments import ORACLE, Environment
from stele.errors import SteleError
from stele.measuring import worker
from stele.measuring.settings import Settings
from stele.measuring.worker import CACHES, WorkerError, cache_variables
from stele_worker import protocol
from tests.support.processes import alive, in_group, wait_until
from tests.support.scripted_environments import SHORT


def test_a_worker_answers_a_request(oracle):
    answer = oracle.ask("hello")
    assert answer["protocol"] == protocol.VERSION
    assert answer["pid"] != os.getpid()


def test_progress_reaches_the_caller_before_the_result(scripted):
    reports = []
    assert scripted(train="progress").ask("train", progress=reports.append) == {}
    assert [report.done for report in reports] == [0, 1, 2]


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


@pytest.mark.slow
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


@pytest.mark.slow
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
    missing = Environment(name="cntk", label="CNTK", framework="cntk", command=("/nowhere/python3.6", "-m", "x"))
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
    worker = start(Environment(name="patient", label="", framework="", command=(sys.executable, "-c", source)))
    with pytest.raises(WorkerError, match="KeyboardInterrupt"):
        worker.ask("wait")
    assert worker.ask("hello")["protocol"] == protocol.VERSION


def test_a_worker_has_the_users_variables_but_folders_of_its_own(scripted, monkeypatch):
    seen, popen = [], subprocess.Popen

    def started(command, **options):
        seen.append(options["env"])
        return popen(command, **options)

    monkeypatch.setattr(subprocess, "Popen", started)
    for name in ("XLA_FLAGS", "PYTHONPATH", "TMPDIR", *CACHES):
        monkeypatch.setenv(name, "/of/the/user")
    for running in (scripted(), scripted()):
        running.ask("hello")
        running.close()
    first, second = seen
    assert first["XLA_FLAGS"] == second["XLA_FLAGS"] == "/of/the/user"
    assert first["PYTHONHASHSEED"] == "0"
    for name in ("PYTHONPATH", "TMPDIR", *CACHES):
        assert len({first[name], second[name], "/of/the/user"}) == 3
        assert not Path(first[name]).exists()  # deleted with the worker


def test_the_caches_of_frameworks_are_in_the_folder(tmp_path):
    variables = cache_variables(tmp_path / "caches")
    assert variables["JAX_ENABLE_COMPILATION_CACHE"] == "true"
    assert variables["TORCHINDUCTOR_CACHE_DIR"].startswith(str(tmp_path))


def test_the_kernels_that_cuda_compiles_stay_for_each_lock(tmp_path, monkeypatch):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path))
    started = []
    monkeypatch.setattr(worker, "Worker", lambda *_, **given: started.append(given["variables"]))
    for name, content in (("a", "x==1"), ("b", "x==1"), ("c", "x==2")):
        lock = tmp_path / f"{name}.lock"
        lock.write_text(content)
        worker.launch(dataclasses.replace(ORACLE, lock=lock), Settings(device="cuda"))
    first, same, other = (variables["CUDA_CACHE_PATH"] for variables in started)
    assert first == same != other and first.startswith(str(tmp_path))


def test_a_cold_start_has_an_empty_folder_for_kernels_too(tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr(worker, "Worker", lambda *_, **given: started.append(given["variables"]))
    worker.launch(ORACLE, Settings(device="cuda"), caches=tmp_path / "empty")
    assert started[0]["CUDA_CACHE_PATH"].startswith(str(tmp_path / "empty"))
