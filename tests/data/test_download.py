"""stele.data.download with a scripted server on this machine."""

import hashlib
import http.server
import io
import socket
import sys
import threading
import time

import numpy
import pytest

from stele import data
from stele.config import Config
from stele.data import download
from stele.errors import DataUnavailable

CONTENT = numpy.random.RandomState(0).bytes(300_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Server(http.server.ThreadingHTTPServer):
    """Serves CONTENT. ``ranges``: whether it can resume; ``cut``: the number of bytes until it disconnects."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.content, self.ranges, self.cut, self.length = CONTENT, True, None, True
        self.requests, self.seconds = [], 0
        self.url = f"http://127.0.0.1:{self.server_port}/set.npz"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        requested = self.headers.get("Range")
        self.server.requests.append(requested)
        time.sleep(self.server.seconds)
        if not self.path.endswith("set.npz"):
            return self.send_error(404)
        start = int(requested[6:-1]) if requested and self.server.ranges else 0
        if start and start >= len(self.server.content):
            return self.send_error(416)
        body = self.server.content[start:]
        self.send_response(206 if start else 200)
        if self.server.length:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: self.server.cut])

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def target(tmp_path, monkeypatch):
    monkeypatch.delenv("STELE_OFFLINE", raising=False)
    return tmp_path / "downloads" / "set.npz"


def part(target):
    return target.with_name("set.npz.part")


def test_a_complete_download_leaves_no_part(server, target):
    assert download.fetch(server.url, SHA256, target) == target
    assert target.read_bytes() == CONTENT
    assert not part(target).exists()


def test_an_incomplete_download_is_an_error_and_the_next_call_resumes_it(server, target):
    server.cut = 100_000
    with pytest.raises(DataUnavailable, match=r"stopped at 100,000 of 300,000 bytes; run again"):
        download.fetch(server.url, SHA256, target)
    assert not target.exists()
    server.cut = None
    assert download.fetch(server.url, SHA256, target).read_bytes() == CONTENT
    assert server.requests == [None, "bytes=100000-"]


def test_a_server_that_cannot_resume_is_read_from_the_beginning(server, target):
    target.parent.mkdir()
    part(target).write_bytes(b"x" * 100_000)
    server.ranges = False
    assert download.fetch(server.url, SHA256, target).read_bytes() == CONTENT


def test_a_complete_part_is_used(server, target):
    target.parent.mkdir()
    part(target).write_bytes(CONTENT)
    assert download.fetch(server.url, SHA256, target).read_bytes() == CONTENT


def test_a_file_with_another_hash_is_deleted_and_reported(server, target):
    server.content = CONTENT[:-1] + b"x"
    with pytest.raises(DataUnavailable, match=r"differs from the published one.*expected.*it was deleted"):
        download.fetch(server.url, SHA256, target)
    assert not target.exists()
    assert not part(target).exists()


def test_a_part_with_other_bytes_is_deleted_and_the_next_call_starts_again(server, target):
    target.parent.mkdir()
    part(target).write_bytes(b"x" * 100_000)
    with pytest.raises(DataUnavailable, match="differs from the published one"):
        download.fetch(server.url, SHA256, target)
    assert download.fetch(server.url, SHA256, target).read_bytes() == CONTENT


def test_an_incomplete_download_without_a_length_is_an_error(server, target):
    server.cut, server.length = 100_000, False
    with pytest.raises(DataUnavailable, match="differs from the published one"):
        download.fetch(server.url, SHA256, target)
    assert not target.exists()


def test_a_missing_page_is_an_error_with_the_status(server, target):
    with pytest.raises(DataUnavailable, match="gone answered 404 Not Found"):
        download.fetch(server.url.replace("set.npz", "gone"), SHA256, target)


def test_a_closed_port_is_an_error_with_the_reason(target):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/set.npz"
    with pytest.raises(DataUnavailable, match="cannot be reached .*refused"):
        download.fetch(url, SHA256, target)


def test_a_server_that_never_answers_is_an_error(target, monkeypatch):
    monkeypatch.setattr(download, "TIMEOUT", 0.1)
    start = time.monotonic()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/set.npz"
        with pytest.raises(DataUnavailable, match=r"cannot be reached \(no answer within 0.1 s\)"):
            download.fetch(url, SHA256, target)
    assert time.monotonic() - start < 2


def test_a_download_that_stalls_is_an_error_and_the_next_call_resumes_it(server, target, monkeypatch):
    monkeypatch.setattr(download, "READ_TIMEOUT", 0.2)
    resume = threading.Event()

    class Stalling(Handler):
        def do_GET(self):
            if self.headers.get("Range"):
                return super().do_GET()
            self.send_response(200)
            self.send_header("Content-Length", str(len(CONTENT)))
            self.end_headers()
            self.wfile.write(CONTENT[:50_000])
            resume.wait(5)

    server.RequestHandlerClass = Stalling
    with pytest.raises(DataUnavailable, match="the download of .* stopped .*timed out"):
        download.fetch(server.url, SHA256, target)
    resume.set()
    assert download.fetch(server.url, SHA256, target).read_bytes() == CONTENT


def test_an_endless_download_is_an_error(server, target, monkeypatch):
    monkeypatch.setattr(download, "LARGEST", 1000)
    with pytest.raises(DataUnavailable, match="sends more than 1,000 bytes"):
        download.fetch(server.url, SHA256, target)


def test_offline_sends_no_request(tmp_path, monkeypatch):
    monkeypatch.setattr(download, "fetch", lambda *_: pytest.fail("sent a request"))
    dataset = data.load("imdb", Config(cache=tmp_path, offline=True))
    assert "STELE_OFFLINE is set" in dataset.notice


def test_concurrent_downloads_send_one_request(server, target):
    server.seconds = 0.1
    paths = []
    threads = [
        threading.Thread(target=lambda: paths.append(download.fetch(server.url, SHA256, target))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert paths == [target] * 4
    assert server.requests == [None]
    assert target.read_bytes() == CONTENT


def test_without_a_terminal_progress_is_a_few_lines(server, target, monkeypatch, capsys):
    monkeypatch.setattr(download, "CHUNK", 1000)
    download.fetch(server.url, SHA256, target)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines()[-1] == "set.npz  0.3 of 0.3 MB"
    assert len(shown.err.splitlines()) == 10


def test_on_a_terminal_progress_is_a_bar(server, target, monkeypatch):
    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    download.fetch(server.url, SHA256, target)
    assert "set.npz" in screen.getvalue()
    assert "━" in screen.getvalue()
