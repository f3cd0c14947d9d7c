"""A worker with prepared answers, in which a fault can be planted: ``fake.py FOLDER``.

It uses the serve loop of the real worker, but neither NumPy nor a framework, so a launch takes milliseconds.
FOLDER/plant is JSON, {"fault": NAME, "from": N}: the fault happens in the N-th launch and in all later ones. Without
this file, nothing fails. FOLDER/facts is JSON that replaces prepared answers: {"versions": {...}}.
"""

import ctypes
import errno
import json
import os
import resource
import signal
import sys
import threading
import time
import types
from pathlib import Path

import stele_worker.__main__ as worker

FOLDER = Path(sys.argv[1])
FLOOD = 100 * 2**20  # bytes
MEMORY = 512 * 2**20  # bytes
STEPS = [0.5, *[0.010, 0.011, 0.012] * 16]  # seconds


def main():
    verbs = types.ModuleType("stele_worker.verbs")
    verbs.do = do
    sys.modules["stele_worker.verbs"] = verbs
    with (FOLDER / "launches").open("a") as file:
        file.write(f"{os.getpid()}\n")
    worker.main()


def do(request, host):
    """Return the prepared answer, or cause the planted fault."""
    verb = request["verb"]
    planted = read("plant")
    launches = len((FOLDER / "launches").read_text().splitlines())
    if planted and launches >= planted["from"] and verb == planted.get("verb", "infer"):
        return FAULTS[planted["fault"]](host)
    return {**answer(verb), **read("facts").get(verb, {})}


def read(name):
    path = FOLDER / name
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def answer(verb):
    if verb == "hello":
        from stele_worker import protocol

        return {"protocol": protocol.VERSION, "python": "3", "numpy": None, "pid": os.getpid()}
    if verb == "configure":
        return {"import_seconds": 0.5, "versions": {"fake": "1.0"}, "flags": {}}
    return outcome()


def outcome(*, seconds=STEPS, losses=None):
    return {
        "steps": {"seconds": seconds, "warmup": 1, "steady": True, "batch": 64},
        "memory": {"host": 2**20, "device": None},
        "learning": {"losses": losses or [2.3] * len(STEPS), "accuracy": None, "evaluated": 0},
    }


def write(host, content):
    """Write bytes to the host, past the encoding of the protocol."""
    os.write(host.answers.fileno(), content)


def kill(host):
    os.kill(os.getpid(), signal.SIGKILL)


def segfault(host):
    ctypes.string_at(0)


def stop(host):
    os.kill(os.getpid(), signal.SIGSTOP)


def out_of_memory(host):
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    return outcome(losses=[len(bytearray(2 * MEMORY))])


def hang(host):
    ctypes.PyDLL(None).pause()  # PyDLL keeps the interpreter's lock, as a deadlock in native code does


def wait(host):
    time.sleep(3600)


def slow(host):
    time.sleep(0.3)
    return outcome()


def flood_output(host):
    """Print to descriptor 1, as C code does."""
    for _ in range(FLOOD // 2**16):
        os.write(1, b"x" * (2**16 - 1) + b"\n")
    return outcome()


def flood_answers(host):
    for _ in range(FLOOD // 2**16):
        write(host, b"x" * 2**16)
    return outcome()


def invalid_utf8(host):
    write(host, b'{"id": 3, "result": {"losses": "\xff\xfe"}}\n')
    wait(host)


def half_line(host):
    write(host, b'{"id": 3, "resu')
    os._exit(0)


def wrong_request(host):
    host.number += 7
    return outcome()


def other_protocol(host):
    return {**answer("hello"), "protocol": 99}


def incomplete_answer(host):
    return {"seconds": STEPS}


def backward_clock(host):
    return outcome(seconds=[0.5, *[-0.010, 0.011, -0.012] * 16])


def nan_losses(host):
    return outcome(losses=[float("nan"), float("inf"), float("-inf")] * 16)


def nan_text(host):
    """Write NaN as a literal, which is not JSON but which many encoders write."""
    text = json.dumps({"id": host.number, "result": outcome(losses=[float("nan"), float("inf")])})
    write(host, text.encode() + b"\n")
    wait(host)


def child_in_group(host):
    if os.fork() == 0:
        time.sleep(3600)
    return outcome()


def child_in_session(host):
    """Leave a child process in a separate session, as a daemon or a compile server is."""
    if os.fork() == 0:
        os.setsid()
        time.sleep(3600)
    return outcome()


def hostile_error(host):
    raise RuntimeError("<script>alert(1)</script>|[x](y)<!--\x1b[31m\x00\nforged: PASS\r$(touch executed)")


def print_forever(host):
    """Print to descriptor 1 in a thread, and never answer."""

    def print_lines():
        while True:
            os.write(1, b"still here\n" * 1000)
            time.sleep(0.001)

    threading.Thread(target=print_lines, daemon=True).start()
    wait(host)


def answer_forever(host):
    """Write lines to the host in a thread, and never answer."""

    def write_lines():
        while True:
            write(host, b"still here\n" * 1000)

    threading.Thread(target=write_lines, daemon=True).start()
    wait(host)


def report_forever(host):
    """Report the same step in a thread, and never answer."""

    def report():
        while True:
            host.report(phase="infer", done=3, of=48)
            time.sleep(0.01)

    threading.Thread(target=report, daemon=True).start()
    wait(host)


def full_disk(host):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "kernels")


FAULTS = {
    fault.__name__: fault
    for fault in (
        kill,
        segfault,
        stop,
        out_of_memory,
        hang,
        wait,
        slow,
        flood_output,
        flood_answers,
        invalid_utf8,
        half_line,
        wrong_request,
        other_protocol,
        incomplete_answer,
        backward_clock,
        nan_losses,
        nan_text,
        child_in_group,
        child_in_session,
        hostile_error,
        print_forever,
        answer_forever,
        report_forever,
        full_disk,
    )
}

if __name__ == "__main__":
    main()
