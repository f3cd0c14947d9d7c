import os
import sys

import pytest

from processes import alive, in_group, wait_until
from stele.environments import Environment
from stele.measuring.worker import WorkerError
from stele_worker import protocol


def test_a_worker_answers_a_request(oracle):
    answer = oracle.ask("hello")
    assert answer["protocol"] == protocol.VERSION
    assert answer["pid"] != os.getpid()


def test_progress_reaches_the_caller_before_the_result(scripted):
    seen = []
    assert scripted(train="progress").ask("train", progress=seen.append) == {}
    assert [report["done"] for report in seen] == [0, 1, 2]


@pytest.mark.parametrize(
    ("deed", "message"),
    [
        ("segfault", r"Worker 'scripted' crashed during 'train': killed by SIGSEGV"),
        ("killed", r"killed by SIGKILL, as the kernel does when memory runs out"),
        ("leave", r"crashed during 'train': it ended with status 3"),
        ("garbage", r"answered garbage during 'train': b'Using TensorFlow backend"),
        ("another", r"answered garbage during 'train'"),
        ("complain", r"failed during 'train': ValueError: no such kernel"),
    ],
)
def test_every_failure_has_a_sentence_of_its_own(scripted, deed, message):
    with pytest.raises(WorkerError, match=message):
        scripted(train=deed).ask("train")


def test_a_hang_is_stopped_when_patience_ends(scripted):
    worker = scripted(train="hang", timeout=0.5)
    with pytest.raises(WorkerError, match=r"no sign of life for 0\.5 s during 'train' and was stopped"):
        worker.ask("train")
    assert not alive(worker._process.pid)


def test_a_failure_shows_the_end_of_the_log(scripted):
    with pytest.raises(WorkerError, match="about to read address zero"):
        scripted(train="segfault").ask("train")


def test_a_dead_worker_says_so_at_the_next_request(scripted):
    worker = scripted(train="leave")
    for _ in range(2):
        with pytest.raises(WorkerError, match="crashed"):
            worker.ask("train")


def test_children_of_a_worker_end_with_it(scripted):
    worker = scripted(train="hang_with_child", timeout=0.5)
    with pytest.raises(WorkerError):
        worker.ask("train")
    wait_until(lambda: not in_group(worker._process.pid))


def test_a_worker_ends_when_its_input_ends(oracle):
    oracle.ask("hello")
    oracle.close()
    assert oracle._process.returncode == 0


def test_an_interpreter_that_is_not_there_is_named(start):
    missing = Environment(
        name="cntk", label="CNTK", framework="cntk", command=("/nowhere/python3.6", "-m", "x")
    )
    with pytest.raises(WorkerError, match=r"'cntk' did not start: .*/nowhere/python3\.6"):
        start(missing)


NOISY = """
import os
from stele_worker import __main__, verbs

def noisy(request, tell, do=verbs.do):
    print("WARNING:" * 10**6)
    os.write(1, b"from C")
    return do(request, tell)

verbs.do = noisy
__main__.main()
"""


def test_prints_of_a_library_go_to_the_log_and_not_into_the_protocol(start, tmp_path):
    worker = start(Environment(name="noisy", label="", framework="", command=(sys.executable, "-c", NOISY)))
    assert worker.ask("hello")["protocol"] == protocol.VERSION
    worker.close()
    log = (tmp_path / "worker.log").read_text()
    assert len(log) > 8 * 10**6
    assert log.count("from C") == 1


def test_a_message_of_a_megabyte_and_an_error_leave_the_worker_alive(oracle):
    with pytest.raises(WorkerError, match="unknown verb 'shout'"):
        oracle.ask("shout", text="x" * 2**20)
    assert oracle.ask("hello")["protocol"] == protocol.VERSION


def test_an_interrupt_is_an_answer_and_not_the_end(start):
    source = "import os, signal\nfrom stele_worker import __main__, verbs\n"
    source += "verbs.VERBS['wait'] = lambda tell: os.kill(os.getpid(), signal.SIGINT)\n__main__.main()"
    worker = start(
        Environment(name="patient", label="", framework="", command=(sys.executable, "-c", source))
    )
    with pytest.raises(WorkerError, match="KeyboardInterrupt"):
        worker.ask("wait")
    assert worker.ask("hello")["protocol"] == protocol.VERSION
