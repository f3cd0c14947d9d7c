"""The serve loop: read a request, do it, answer. The only place that catches everything."""

import os
import sys
import traceback

from stele_worker import process, protocol


def main():
    process.die_with_parent()
    requests, answers = claim_streams()
    from stele_worker import verbs  # not before: NumPy may print, too

    for line in requests:
        answer(verbs.do, line, answers)


def claim_streams():
    """Keep standard input and output for the protocol; what else prints gets the log, what else reads, nothing."""
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return requests, answers


def answer(do, line, answers):
    """One request: its progress, then its result or its error."""
    number = None

    def send(kind, value):
        answers.write(protocol.encode({"id": number, kind: value}) + "\n")
        answers.flush()

    try:
        request = protocol.decode(line)
        number = request.pop("id", None)
        send("result", do(request, lambda **fields: send("progress", fields)))
    except BrokenPipeError:
        raise  # the host is gone
    except BaseException as error:  # an interrupt and a library's sys.exit are answers, too
        send("error", described(error))


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
