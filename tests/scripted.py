"""A worker whose every answer is written in advance, and which can fail in every way there is.

SCRIPT is JSON: {"seconds": [...], "<verb>": "<what to do instead of answering>"}.
"""

import json
import os
import signal
import sys
import time

SCRIPT = json.loads(os.environ.get("SCRIPT", "{}"))


def main():
    for line in sys.stdin:
        request = json.loads(line)
        deed = SCRIPT.get(request["verb"])
        if deed:
            DEEDS[deed](request)
        else:
            say(request, "result", RESULTS[request["verb"]]())


def say(request, kind, value):
    print(json.dumps({"id": request["id"], kind: value}), flush=True)


def configured():
    return {"import_seconds": 0.5, "versions": {"scripted": "1.0"}, "flags": {"threads": 1}}


def outcome():
    return {
        "seconds": SCRIPT["seconds"],
        "warmup": 1,
        "steady": True,
        "batch": 64,
        "host_memory": SCRIPT.get("host_memory", 2**20),
        "device_memory": None,
        "losses": [2.3] * len(SCRIPT["seconds"]),
        "accuracy": SCRIPT.get("accuracy"),
        "evaluated": 0,
    }


RESULTS = {
    "hello": dict,
    "configure": configured,
    "train": outcome,
    "infer": outcome,
    "parity": lambda: SCRIPT["numbers"],
    "capability": lambda: {"numbers": SCRIPT["numbers"]},
    "defaults": lambda: {"table": SCRIPT["table"], "versions": {"scripted": SCRIPT["release"]}},
}


def segfault(request):
    print("about to read address zero", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGSEGV)


def killed(request):
    os.kill(os.getpid(), signal.SIGKILL)


def leave(request):
    sys.exit(3)


def hang(request):
    time.sleep(600)


def hang_with_child(request):
    """A process of its own, which a framework's compiler pool or data loader would be, outlives nobody."""
    if os.fork() == 0:
        time.sleep(600)
    time.sleep(600)


def garbage(request):
    print("Using TensorFlow backend.", flush=True)


def another(request):
    print(json.dumps({"id": request["id"] + 7, "result": {}}), flush=True)


def complain(request):
    say(request, "error", {"type": "ValueError", "message": "no such kernel", "traceback": "Traceback ..."})


def mischief(request):
    said = "<script>alert(1)</script> | [x](y) \x00\x1b[31m"
    say(request, "error", {"type": "ValueError", "message": said, "traceback": ""})


def lack(request):
    say(request, "error", {"type": "NotImplementedError", "message": "no tapes here", "traceback": ""})


def progress(request):
    for done in range(3):
        say(request, "progress", {"phase": "train", "done": done, "of": 3})
    say(request, "result", {})


DEEDS = {
    deed.__name__: deed
    for deed in (
        segfault,
        killed,
        leave,
        hang,
        hang_with_child,
        garbage,
        another,
        complain,
        lack,
        mischief,
        progress,
    )
}

if __name__ == "__main__":
    main()
