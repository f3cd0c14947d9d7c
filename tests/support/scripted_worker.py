"""A worker with prepared answers, which can also fail in every possible way.

SCRIPT is JSON: {"seconds": [...], "<verb>": "<action instead of an answer>"}.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

from stele_worker import protocol

TEXT = os.environ.get("SCRIPT", "{}")  # or "@" and the path of a file
SCRIPT = json.loads(Path(TEXT[1:]).read_text() if TEXT.startswith("@") else TEXT)
STATE = {"own": False}  # whether such a request has arrived


def main():
    for line in sys.stdin:
        request = json.loads(line)
        action = SCRIPT.get(request["verb"])
        if action:
            ACTIONS[action](request)
        else:
            send(request, "result", RESULTS[request["verb"]](request))


def send(request, kind, value):
    print(json.dumps({"id": request["id"], kind: value}), flush=True)


def configuration(request):
    return {"import_seconds": 0.5, "versions": {"scripted": "1.0"}, "flags": {"threads": 1}}


def outcome(request):
    time.sleep(SCRIPT.get("takes", 0))
    return {
        "steps": {"seconds": SCRIPT.get("seconds"), "warmup": 1, "steady": True, "batch": 64},
        "memory": {"host": SCRIPT.get("host_memory", 2**20), "device": None},
        "learning": {
            "losses": [2.3] * len(SCRIPT.get("seconds", [])),
            "accuracy": SCRIPT.get("accuracy"),
            "evaluated": 0,
        },
        **({"profile": SCRIPT["profile"]} if request.get("profile") and "profile" in SCRIPT else {}),
    }


def training(request):
    """Return a training of epochs of 2 s and evaluations of 1 s; SCRIPT has the accuracy of each seed."""
    script = {"compile_seconds": 5.0, "epoch_seconds": 2.0, "continued": [], **SCRIPT}
    seed, epochs = request["seed"], request.get("epochs", 3)
    accuracy = script["accuracies"][seed % len(script["accuracies"])]
    accuracy += script.get("gain", 0.0) * len(request.get("tricks") or [])
    seconds = [script["epoch_seconds"]] * epochs
    return {
        **outcome(request),
        "steps": {"seconds": seconds, "warmup": 0, "steady": True, "batch": 64},
        "learning": {"losses": [2.0] * epochs, "accuracy": accuracy, "evaluated": 320},
        "epochs": {
            "accuracies": script.get("each") or [accuracy * (number + 1) / epochs for number in range(epochs)],
            "evaluation_seconds": [1.0] * epochs,
            "compile_seconds": script["compile_seconds"],
            "data_seconds": 0.5,
            "elapsed": 0.5 + sum(seconds) + epochs + script["compile_seconds"],
            "missed": [],
            "continued": seed in script["continued"],
        },
    }


def parity(request):
    """Return SCRIPT's numbers; in a launch that compares what the arm itself makes, also those of "own" or "seeded"."""
    if SCRIPT.get("unless", "") in os.environ:
        return {**SCRIPT["numbers"], **SCRIPT["repaired"]}
    STATE["own"] = STATE["own"] or bool(request.get("own"))
    if request["seed"] and SCRIPT.get("fails_with_seed"):
        raise SystemExit(3)
    seeded = SCRIPT.get("seeded", {}) if request["seed"] else {}  # the seed of a gate is 0
    return {**SCRIPT["numbers"], **((seeded or SCRIPT.get("own", {})) if STATE["own"] else {})}


RESULTS = {
    "hello": lambda request: {"protocol": SCRIPT.get("protocol", protocol.VERSION)},
    "configure": configuration,
    "train": outcome,
    "infer": outcome,
    "time-to-accuracy": training,
    "parity": parity,
    "inspect": lambda request: SCRIPT["inspection"],
    "reads": lambda request: {"files": [], "noticed": [], "variables": [], **SCRIPT.get("has_read", {})},
    "capability": lambda request: {"numbers": SCRIPT["numbers"]},
    "defaults": lambda request: {"table": SCRIPT["table"], "versions": {"scripted": SCRIPT["release"]}},
}


def segfault(request):
    print("about to read address zero", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGSEGV)


def kill(request):
    os.kill(os.getpid(), signal.SIGKILL)


def exit_with_3(request):
    sys.exit(3)


def hang(request):
    time.sleep(600)


def hang_with_child(request):
    """Start a child process, as a compiler pool or a data loader does; it must end together with the worker."""
    if os.fork() == 0:
        time.sleep(600)
    time.sleep(600)


def invalid_json(request):
    print("Using TensorFlow backend.", flush=True)


def wrong_id(request):
    print(json.dumps({"id": request["id"] + 7, "result": {}}), flush=True)


def raise_error(request):
    send(request, "error", {"type": "ValueError", "message": "no such kernel", "traceback": "Traceback ..."})


def hostile_error(request):
    message = "<script>alert(1)</script> | [x](y) \x00\x1b[31m"
    send(request, "error", {"type": "ValueError", "message": message, "traceback": ""})


def user_error(request):
    message = "net.py raised ZeroDivisionError: division by zero\n  File net.py, line 3, in build"
    send(request, "error", {"type": "UserCodeError", "message": message, "traceback": "in stele_worker"})


def missing_module(request):
    message = "net.py:build raised ModuleNotFoundError: No module named 'flax'\n  File net.py, line 3, in build"
    send(request, "error", {"type": "UserCodeError", "message": message, "traceback": "in stele_worker"})


def spec_error(request):
    message = "The optimizer 'torch.optim:AdamWW' cannot be imported: torch.optim has no AdamWW"
    send(request, "error", {"type": "SpecError", "message": message, "traceback": "in stele_worker"})


def internal_error(request):
    message = "Traceback (most recent call last): in stele_worker\nNameError: name 'nets' is not defined"
    send(request, "error", {"type": "InternalError", "message": message, "traceback": ""})


def setup_error(request):
    message = "JAX_DISABLE_JIT=1 disables the compiler, which mode 'jit' needs."
    send(request, "error", {"type": "SetupError", "message": message, "traceback": ""})


def lose_the_program(request):
    """Fail after somebody has renamed the environment of this worker."""
    Path(SCRIPT["program"]).rename(SCRIPT["program"] + ".gone")
    raise_error(request)


def unfit_weights(request):
    message = "The weights lack 'gate.weight' of shape (4, 2): they hold 3 arrays, the model 2."
    send(request, "error", {"type": "WeightsError", "message": message, "traceback": "in stele_worker"})


def other_error(request):
    """Fail in another way in each process."""
    send(request, "error", {"type": "ValueError", "message": f"no kernel {os.getpid()}", "traceback": ""})


def not_implemented(request):
    send(request, "error", {"type": "NotImplementedError", "message": "no tapes here", "traceback": ""})


def progress(request):
    for done in range(3):
        send(request, "progress", {"phase": "train", "done": done, "of": 3})
    send(request, "result", {})


ACTIONS = {
    action.__name__: action
    for action in (
        segfault,
        kill,
        exit_with_3,
        hang,
        hang_with_child,
        invalid_json,
        wrong_id,
        raise_error,
        not_implemented,
        user_error,
        missing_module,
        spec_error,
        setup_error,
        internal_error,
        lose_the_program,
        unfit_weights,
        other_error,
        hostile_error,
        progress,
    )
}

if __name__ == "__main__":
    main()
