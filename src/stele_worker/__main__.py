"""The serve loop: read a request, do it, answer. The only place that catches everything."""

import os
import signal
import sys
import traceback

from stele_worker import process, protocol


def main():
    process.die_with_parent()
    # a shell's background jobs ignore it, and so do their children
    signal.signal(signal.SIGINT, signal.default_int_handler)
    requests, answers = claim_streams()
    from stele_worker import verbs  # not before: NumPy may print, too

    for line in requests:
        answer(verbs.do, line, requests, answers)


def claim_streams():
    """Keep standard input and output for the protocol; what else prints gets the log, what else reads, nothing."""
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return requests, answers


class Host:
    """The host, as a request's verb sees it. A number is that of the request."""

    def __init__(self, requests, answers):
        self.requests, self.answers, self.number = requests, answers, None

    def send(self, kind, value):
        self.answers.write(protocol.encode({"id": self.number, kind: value}) + "\n")
        self.answers.flush()

    def tell(self, **fields):
        """Report progress."""
        self.send("progress", fields)

    def pause(self, done):
        """Wait after so many steps, while another worker has its turn, until the host says to go on."""
        self.send("pause", {"done": done})
        line = self.requests.readline()
        if not line:
            raise BrokenPipeError("the host is gone")
        if protocol.decode(line) != {"id": self.number, "go": True}:
            raise ValueError("in a pause only 'go' can be asked for, not {:.80}".format(line))


def answer(do, line, requests, answers):
    """One request: its progress, then its result or its error."""
    host = Host(requests, answers)
    try:
        request = protocol.decode(line)
        host.number = request.pop("id", None)
        host.send("result", do(request, host))
    except BrokenPipeError:
        raise  # the host is gone
    except BaseException as error:  # an interrupt and a library's sys.exit are answers, too
        host.send("error", described(error))


def described(error):
    return {
        "type": type(error).__name__,
        "message": str(error) or type(error).__name__,
        "traceback": traceback.format_exc(),
    }


if __name__ == "__main__":
    try:
        main()
    except (BrokenPipeError, KeyboardInterrupt):
        sys.exit(1)
