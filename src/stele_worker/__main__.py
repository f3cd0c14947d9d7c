"""The serve loop: read a request, carry it out, answer. Only this module catches every exception."""

import os
import signal
import sys
import traceback

from stele_worker import frameworks, process, protocol

PROGRAM = "--program="  # the last argument, with the name of a module in stele_worker.programs


def main():
    process.die_with_parent()
    process.adopt_orphans()
    # a shell's background jobs ignore SIGINT, and their children inherit that
    signal.signal(signal.SIGINT, signal.default_int_handler)
    requests, answers = claim_streams()
    do, requests = load(requests, answers)
    for line in requests:
        answer(do, line, requests, answers)


def load(requests, answers):
    """Return the function that carries out requests, and the requests. It is called now, because NumPy may print."""
    if sys.argv[-1].startswith(PROGRAM):  # the user's tests, function, command or asv suite
        from stele_worker import programs

        try:
            return programs.load(sys.argv[-1][len(PROGRAM) :], requests, answers, answer), requests
        except ModuleNotFoundError as error:
            advice = "{0} is not installed. Install it, or add it to both arms: --with {0}"
            return refuse(protocol.SetupError(advice.format(error.name))), requests
    try:
        from stele_worker import verbs
        from stele_worker.ranks import Requests, ranks
    except ModuleNotFoundError as error:
        return refuse(frameworks.missing_package(error) or error), requests
    return verbs.do, Requests(requests, ranks)


def refuse(error):
    """Return a function that answers every request with an error."""

    def do(request, host):
        raise error

    return do


def claim_streams():
    """Reserve standard input and output for the protocol: other output goes to the log, other input is empty."""
    requests = os.fdopen(os.dup(0), "rb")  # bytes, because a line that is not UTF-8 needs an answer, too
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    return requests, answers


class HostGone(Exception):
    """The host has closed the connection, so nobody reads an answer."""


class Host:
    """The connection to the host while one request runs. ``number`` is the id of the request."""

    def __init__(self, requests, answers):
        self.requests, self.answers, self.number, self.failed = requests, answers, None, False

    def send(self, kind, value):
        line = protocol.encode({"id": self.number, kind: value})
        try:
            self.answers.write(line + "\n")
            self.answers.flush()
        except BrokenPipeError:
            raise HostGone from None

    def report(self, **fields):
        """Send a progress message."""
        self.send("progress", fields)

    def pause(self, done):
        """Report that ``done`` steps are done, then wait until the host says to continue."""
        process.wait_until_idle()
        self.send("pause", {"done": done})
        line = self.requests.readline()
        if not line:
            raise HostGone
        if protocol.decode(line) != {"id": self.number, "go": True}:
            raise ValueError("expected 'go' during a pause, got {!r:.80}".format(line))


def answer(do, line, requests, answers):
    """Carry out one request and send its result or its error."""
    host = Host(requests, answers)
    try:
        request = protocol.decode(line)
        host.number = protocol.number_of(request)
        host.send("result", do(request, host))
    except HostGone:
        raise
    except BaseException as error:  # an interrupt and a library's sys.exit are also answered
        host.failed = True
        host.send("error", describe_error(error))


def describe_error(error):
    return {
        "type": type(error).__name__,
        "message": text_of(error) or type(error).__name__,
        "traceback": traceback.format_exc(),
    }


def text_of(error):
    """Return the text of an error; empty if the class of the error fails to make one."""
    try:
        return str(error)
    except Exception:
        return ""


if __name__ == "__main__":
    try:
        main()
    except (HostGone, KeyboardInterrupt):
        sys.exit(1)
