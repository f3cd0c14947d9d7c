"""The log of a worker."""

import os
import tracemalloc
from pathlib import Path

import pytest

from stele.measuring.worker import WorkerError, launch
from tests.support.faults import SETTINGS, python_environment


def test_a_worker_that_prints_forever_is_stopped_before_the_disk_is_full(start, monkeypatch):
    monkeypatch.setattr("stele.measuring.logs.LARGEST", 2**20)
    monkeypatch.setattr("stele.measuring.worker.CHECK", 0.05)
    worker = start(python_environment('while True: sys.stderr.write("noise " * 1000 + "\\n")'))
    with pytest.raises(WorkerError, match="printed more than 0.0009.* GiB during 'hello' and was stopped") as failure:
        worker.ask("hello")
    assert "noise" in str(failure.value)
    assert worker.log.stat().st_size < 2**17


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
