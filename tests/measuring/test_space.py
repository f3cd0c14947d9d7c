"""A full disk."""

import pytest

from stele.errors import SteleError
from stele.measuring.worker import WorkerError
from tests.support.faults import python_environment


def test_a_failure_on_a_full_disk_is_not_the_framework_s(start, monkeypatch):
    monkeypatch.setattr("stele.measuring.space.LEAST", 2**80)
    worker = start(python_environment("sys.exit(1)"))
    with pytest.raises(SteleError, match=r"crashed during 'hello'.*the disk of .* is full.*Free some space") as failure:
        worker.ask("hello")
    assert not isinstance(failure.value, WorkerError)


@pytest.mark.parametrize(
    "body",
    [
        'send("error", {"type": "OSError", "message": "[Errno 28] No space left on device", "traceback": ""})',
        'sys.exit("LLVM ERROR: IO failure on output stream: No space left on device")',
    ],
)
def test_a_framework_that_finds_a_disk_full_is_not_broken(start, body):
    with pytest.raises(SteleError, match=r"a disk that it uses \(.*No space.*\) is full.*Free some") as failure:
        start(python_environment(body), timeout=20).ask("train")
    assert not isinstance(failure.value, WorkerError)
