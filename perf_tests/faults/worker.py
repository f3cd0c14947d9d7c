"""Faults of a worker: NEW's worker fails from its fourth launch on; then the fault is removed and the gate resumed."""

FAILS = (1, 3)  # BROKEN or INCONCLUSIVE, never PASS


def kill(project):
    """The worker is killed with SIGKILL."""
    project.plant("kill")
    project.gate_and_resume(*FAILS, contains="killed by SIGKILL")


def segfault(project):
    """The worker reads address zero (SIGSEGV)."""
    project.plant("segfault")
    project.gate_and_resume(*FAILS, contains="killed by SIGSEGV")


def stop(project):
    """The worker is stopped with SIGSTOP."""
    project.plant("stop")
    project.gate_and_resume(*FAILS, contains="sent no message for 2 s")


def out_of_memory(project):
    """The worker reaches a limit of memory (RLIMIT_AS)."""
    project.plant("out_of_memory")
    project.gate_and_resume(*FAILS, contains="MemoryError")


def hang(project):
    """The worker hangs in native code and holds the interpreter's lock."""
    project.plant("hang")
    project.gate_and_resume(*FAILS, contains="sent no message for 2 s")


def flood_output(project):
    """The worker prints 100 MB to standard output."""
    project.plant("flood_output", **{"from": 6})
    project.gate_and_resume(0)


def flood_answers(project):
    """The worker sends the host 100 MB without a newline."""
    project.plant("flood_answers")
    project.gate_and_resume(*FAILS, contains="sent an invalid answer")


def invalid_utf8(project):
    """The answer contains invalid UTF-8."""
    project.plant("invalid_utf8")
    project.gate_and_resume(*FAILS, contains="sent an invalid answer")


def half_line(project):
    """The worker exits in the middle of a line."""
    project.plant("half_line")
    project.gate_and_resume(*FAILS, contains="sent an invalid answer|crashed")


def wrong_request(project):
    """The answer belongs to another request."""
    project.plant("wrong_request")
    project.gate_and_resume(*FAILS, contains="sent an invalid answer")


def other_protocol(project):
    """The worker has another version of the protocol."""
    project.plant("other_protocol", verb="hello")
    project.gate_and_resume(*FAILS, 2, contains="protocol")


def incomplete_answer(project):
    """The answer lacks most of its keys."""
    project.plant("incomplete_answer")
    project.gate_and_resume(*FAILS, contains="sent an invalid answer")


def backward_clock(project):
    """The clock of the worker goes backwards: durations are negative."""
    project.plant("backward_clock")
    project.gate_and_resume(*FAILS, contains="sent an invalid answer|seconds")


def nan_losses(project):
    """The losses are NaN and infinite, and the worker sends them as null."""
    project.plant("nan_losses")
    project.gate_and_resume(0)


def nan_text(project):
    """The losses are NaN and infinite, and the worker sends NaN, which is not JSON."""
    project.plant("nan_text")
    project.gate_and_resume(*FAILS, contains="sent an invalid answer")


def child_in_group(project):
    """A child process of the worker stays behind."""
    project.plant("child_in_group")
    project.gate_and_resume(0)


def child_in_session(project):
    """A child process of the worker stays behind in a separate session."""
    project.plant("child_in_session")
    project.gate_and_resume(0)


def print_forever(project):
    """A thread prints forever, and the worker never answers."""
    project.plant("print_forever")
    project.gate_and_resume(*FAILS, contains="sent no message for 2 s")


def answer_forever(project):
    """A thread writes lines to the host forever, and the worker never answers."""
    project.plant("answer_forever")
    project.gate_and_resume(*FAILS, contains="sent an invalid answer")


FAULTS = (
    kill,
    segfault,
    stop,
    out_of_memory,
    hang,
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
    print_forever,
    answer_forever,
)
