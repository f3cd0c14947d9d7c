"""A conversation with a worker, line by line, that checks every line: it tests the protocol."""

import json
import os
import queue
import signal
import time

KINDS = {"progress", "pause", "result", "error"}


class Conversation:
    """Requests to a running Worker and its messages. Every line must be a valid message."""

    def __init__(self, worker, timeout=300.0):
        self.process, self.lines, self.timeout = worker._process, worker._lines, timeout
        self.requests = 0

    def send(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def receive(self):
        """Return (id, kind, value) of the next message."""
        try:
            line = self.lines.get(timeout=self.timeout)
        except queue.Empty:
            raise AssertionError(f"no message for {self.timeout:g} s") from None
        assert line, "the worker closed its output"
        assert line.endswith(b"\n"), f"a line without a newline: {line[:80]!r}"
        message = json.loads(line, parse_constant=reject_constant)
        assert isinstance(message, dict), f"not a message: {line[:80]!r}"
        (kind,) = set(message) & KINDS
        assert set(message) == {"id", kind}
        return message["id"], kind, message[kind]

    def request(self, verb, **fields):
        """Send a request and return its number."""
        self.requests += 1
        self.send(json.dumps({"id": self.requests, "verb": verb, **fields}))
        return self.requests

    def reports(self, number):
        """Yield (time, progress) for each report, then ("result" or "error", value)."""
        while True:
            answer_id, kind, value = self.receive()
            assert answer_id == number
            if kind != "progress":
                yield kind, value
                return
            yield time.monotonic(), value

    def resume(self, number):
        """Resume a paused request."""
        self.send(json.dumps({"id": number, "go": True}))

    def ask(self, verb, **fields):
        """Send a request and return its result."""
        *_, (kind, value) = self.reports(self.request(verb, **fields))
        assert kind == "result", f"{value['type']}: {value['message']}\n{value['traceback']}"
        return value

    def request_error(self, verb, **fields):
        """Send a request that must fail, and return its error."""
        *_, (kind, value) = self.reports(self.request(verb, **fields))
        assert kind == "error"
        return check_error(value)

    def interrupt(self):
        os.kill(self.process.pid, signal.SIGINT)

    def close_input(self):
        """Close the input; return the remaining lines and the exit status."""
        self.process.stdin.close()
        rest = iter(lambda: self.lines.get(timeout=self.timeout), b"")
        return list(rest), self.process.wait(self.timeout)


def reject_constant(constant):
    raise AssertionError(f"{constant} is not JSON; write null for values that are not finite")


def check_error(error):
    """Check that an error is complete, and return it."""
    assert set(error) == {"type", "message", "traceback"}
    assert all(isinstance(value, str) for value in error.values())
    assert error["type"] and error["message"]
    return error
