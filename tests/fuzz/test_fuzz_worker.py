"""Arbitrary and mutated lines never end a worker: it gives one answer to each line, and then to the next one."""

import json
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stele.environments import Environment
from stele.measuring.worker import Worker
from tests.fuzz.hostile import JSON, changed_json, documents

SETTINGS = {
    "device": "cpu",
    "precision": "fp32",
    "threads": 1,
    "deterministic": False,
    "seed": 0,
    "autotune": True,
}
MODEL = {"spec": "package:model", "folder": "/nowhere", "inputs": None, "optimizer": None, "pretrained": None}
REQUESTS = [
    {"id": 1, "verb": "hello"},
    {"id": 1, "verb": "configure", "framework": "numpy", "settings": SETTINGS},
    {
        "id": 1,
        "verb": "train",
        "task": "gru",
        "scale": "none",
        "seed": 0,
        "data": None,
        "weights": None,
        "warmup": {},
    },
    {"id": 1, "verb": "parity", "task": "none", "phase": "infer", "seed": 0, "form": None},
    {"id": 1, "verb": "inspect", "model": MODEL},
    {"id": 1, "verb": "capability", "name": "hooks"},
    {"id": 1, "verb": "defaults", "framework": "numpy"},
    {"id": 1, "verb": "pause"},
    {"id": 1, "verb": "fail"},
]
HELLO = json.dumps({"id": 99, "verb": "hello"}).encode()
# the worker of this package with two verbs more: one pauses, one raises an exception that has no text
SOURCE = """
from stele_worker import __main__, verbs

class Silent(Exception):
    def __str__(self):
        raise RuntimeError("no text")

def fail(host, kind=None):
    raise {"pipe": BrokenPipeError, "exit": SystemExit, "end": EOFError}.get(kind, Silent)()

verbs.VERBS.update(pause=lambda host: host.pause(1), fail=fail)
__main__.main()
"""


@pytest.fixture(scope="session")
def start(tmp_path_factory):
    """start() -> the running Worker, or a new one if the last one has ended."""
    environment = Environment(name="x", label="X", framework="numpy", command=(sys.executable, "-c", SOURCE))
    log, workers = tmp_path_factory.mktemp("fuzz") / "log", []

    def start():
        if not workers or workers[-1]._process.poll() is not None:
            workers.append(Worker(environment, log=log, variables={}))
        return workers[-1]

    yield start
    for worker in workers:
        worker.close(graceful=False)


def exchange(worker, line):
    """Send a line and return the worker's answer. If the worker pauses, tell it to go on."""
    worker._process.stdin.write(line + b"\n")
    worker._process.stdin.flush()
    answer = json.loads(worker._lines.get(timeout=20))
    return exchange(worker, json.dumps({"id": answer["id"], "go": True}).encode()) if "pause" in answer else answer


LINE = st.sampled_from(REQUESTS).flatmap(documents) | st.binary(max_size=50) | JSON.map(json.dumps).map(str.encode)


@given(lines=st.lists(LINE.map(lambda line: line.replace(b"\n", b" ")), max_size=4))
@example(lines=[b"\xff\xfe", b""])
@example(lines=[b'{"id": 1}\r{"id": 2}'])
@example(lines=[b'{"id": ' + b"[" * 700 + b"]" * 700 + b', "verb": "hello"}'])
@example(lines=[b"[" * 100_000])
@example(lines=[b'{"id": NaN, "verb": "hello"}'])
@example(lines=[b'{"id": 1, "verb": "fail"}', b'{"id": 1, "verb": "fail", "kind": "pipe"}'])
@example(lines=[b'{"id": 1, "verb": "fail", "kind": "exit"}'])
def test_each_line_has_one_answer(start, lines):
    worker = start()
    for line in lines:
        answer = exchange(worker, line)
        assert set(answer) in ({"id", "result"}, {"id", "error"})
    answer = exchange(worker, HELLO)
    assert answer["id"] == 99 and answer["result"]["protocol"]


@given(reply=changed_json({"id": 7, "go": True}).map(json.dumps).map(str.encode) | LINE)
@example(reply=b"\xff")
def test_another_line_in_place_of_go_ends_the_request_and_not_the_worker(start, reply):
    worker = start()
    worker._process.stdin.write(b'{"id": 7, "verb": "pause"}\n')
    worker._process.stdin.flush()
    assert "pause" in json.loads(worker._lines.get(timeout=20))
    answer = exchange(worker, reply.replace(b"\n", b" "))
    assert answer["id"] == 7 and {"result", "error"} & set(answer)
    assert exchange(worker, HELLO)["id"] == 99
