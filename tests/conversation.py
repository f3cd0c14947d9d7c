"""A conversation with a worker, line by line, that takes nothing for granted: what a contract is tested with."""

import json
import os
import queue
import signal
import time

KINDS = {"progress", "pause", "result", "error"}


class Conversation:
    """Requests to a live Worker and what comes back; every line has to be a message."""

    def __init__(self, worker, timeout=300.0):
        self.process, self.lines, self.timeout = worker._process, worker._lines, timeout
        self.requests = 0

    def say(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def hear(self):
        """(id, kind, value) of the next message."""
        try:
            line = self.lines.get(timeout=self.timeout)
        except queue.Empty:
            raise AssertionError(f"silent for {self.timeout:g} s") from None
        assert line, "it ended its output"
        assert line.endswith(b"\n"), f"a line without an end: {line[:80]!r}"
        message = json.loads(line, parse_constant=unknown)
        assert isinstance(message, dict), f"no message: {line[:80]!r}"
        (kind,) = set(message) & KINDS
        assert set(message) == {"id", kind}
        return message["id"], kind, message[kind]

    def request(self, verb, **fields):
        """Send a request; its number."""
        self.requests += 1
        self.say(json.dumps({"id": self.requests, "verb": verb, **fields}))
        return self.requests

    def reports(self, number):
        """(time, progress) of each report until the answer, then ("result" or "error", value)."""
        while True:
            answered, kind, value = self.hear()
            assert answered == number
            if kind != "progress":
                yield kind, value
                return
            yield time.monotonic(), value

    def go(self, number):
        self.say(json.dumps({"id": number, "go": True}))

    def ask(self, verb, **fields):
        """The result of a request."""
        *_, (kind, value) = self.reports(self.request(verb, **fields))
        assert kind == "result", f"{value['type']}: {value['message']}\n{value['traceback']}"
        return value

    def refused(self, verb, **fields):
        """The error of a request, which has to be one."""
        *_, (kind, value) = self.reports(self.request(verb, **fields))
        assert kind == "error"
        return whole(value)

    def interrupt(self):
        os.kill(self.process.pid, signal.SIGINT)

    def farewell(self):
        """What it still says when its input has ended, and the status that it ends with."""
        self.process.stdin.close()
        rest = iter(lambda: self.lines.get(timeout=self.timeout), b"")
        return list(rest), self.process.wait(self.timeout)


def unknown(constant):
    raise AssertionError(f"{constant} is no JSON; what is not finite is null")


def whole(error):
    """An error with all that belongs to it."""
    assert set(error) == {"type", "message", "traceback"}
    assert all(isinstance(value, str) for value in error.values())
    assert error["type"] and error["message"]
    return error
