"""Faults of a worker: NEW's worker fails from its fourth launch on; then the fault is removed and the gate resumed."""

FAILS = (1, 3)  # BROKEN or INCONCLUSIVE, never PASS
PASSES = (0,)


def make_fault(name, title, *, codes=FAILS, contains="", **planted):
    """Return the fault ``name`` of fake.py. The gate has to end with one of these codes and print what it contains."""

    def fault(project):
        project.plant(name, **planted)
        project.gate_and_resume(*codes, **({"contains": contains} if contains else {}))

    fault.__name__, fault.__doc__ = name, title
    return fault


FAULTS = (
    make_fault("kill", "The worker is killed with SIGKILL.", contains="killed by SIGKILL"),
    make_fault("segfault", "The worker reads address zero (SIGSEGV).", contains="killed by SIGSEGV"),
    make_fault("stop", "The worker is stopped with SIGSTOP.", contains="sent no message for 2 s"),
    make_fault("out_of_memory", "The worker reaches a limit of memory (RLIMIT_AS).", contains="MemoryError"),
    make_fault(
        "hang",
        "The worker hangs in native code and holds the interpreter's lock.",
        contains="sent no message for 2 s",
    ),
    make_fault("flood_output", "The worker prints 100 MB to standard output.", codes=PASSES, **{"from": 6}),
    make_fault(
        "flood_answers",
        "The worker sends the host 100 MB without a newline.",
        contains="sent an invalid answer",
    ),
    make_fault("invalid_utf8", "The answer contains invalid UTF-8.", contains="sent an invalid answer"),
    make_fault("half_line", "The worker exits in the middle of a line.", contains="sent an invalid answer|crashed"),
    make_fault("wrong_request", "The answer belongs to another request.", contains="sent an invalid answer"),
    make_fault(
        "other_protocol",
        "The worker has another version of the protocol.",
        codes=(*FAILS, 2),
        contains="protocol",
        verb="hello",
    ),
    make_fault("incomplete_answer", "The answer lacks most of its keys.", contains="sent an invalid answer"),
    make_fault(
        "backward_clock",
        "The clock of the worker goes backwards: durations are negative.",
        contains="sent an invalid answer|seconds",
    ),
    make_fault("nan_losses", "The losses are NaN and infinite, and the worker sends them as null.", codes=PASSES),
    make_fault(
        "nan_text",
        "The losses are NaN and infinite, and the worker sends NaN, which is not JSON.",
        contains="sent an invalid answer",
    ),
    make_fault("child_in_group", "A child process of the worker stays behind.", codes=PASSES),
    make_fault("child_in_session", "A child process of the worker stays behind in a separate session.", codes=PASSES),
    make_fault(
        "print_forever",
        "A thread prints forever, and the worker never answers.",
        contains="sent no message for 2 s",
    ),
    make_fault(
        "answer_forever",
        "A thread writes lines to the host forever, and the worker never answers.",
        contains="sent an invalid answer",
    ),
    make_fault(
        "report_forever",
        "A thread reports the same step forever, and the worker never answers.",
        contains="reported no new step for 2 s",
    ),
    make_fault(
        "full_disk",
        "The worker finds the disk full.",
        codes=(2,),
        contains="a disk that it uses .* is full",
    ),
)
