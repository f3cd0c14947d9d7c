"""How long the host waits for a worker that reports steps, pauses, or nothing."""

import pytest

from stele.measuring import deadline
from stele.measuring.deadline import Deadline
from stele.measuring.processors import Usage


def progress(done, phase="train"):
    return phase, done


def wait(limit, seconds):
    limit.total, limit.since_step, limit.since_message = (
        limit.total + seconds,
        limit.since_step + seconds,
        limit.since_message + seconds,
    )


@pytest.mark.parametrize("message", [progress(4), progress(0, "evaluate"), progress(0, "pause")])
def test_a_new_step_a_new_phase_and_a_pause_extend_the_wait(message, monkeypatch):
    monkeypatch.setattr(deadline, "REPEATS", 0)
    limit = Deadline(10)
    limit.heard(*progress(3))
    wait(limit, 9)
    limit.heard(*message)
    assert limit.left() == 10


@pytest.mark.parametrize("message", [progress(3), progress(2)])
def test_a_message_without_a_new_step_does_not_extend_the_wait(message, monkeypatch):
    monkeypatch.setattr(deadline, "REPEATS", 0)
    limit = Deadline(10)
    limit.heard(*progress(3))
    wait(limit, 9)
    limit.heard(*message)
    assert limit.left() == 1


def test_the_steps_of_a_warm_up_which_are_not_counted_extend_the_wait():
    limit = Deadline(10)
    for _ in range(60):
        limit.heard(*progress(0, "infer"))
        wait(limit, 9)
    assert limit.left() == 1


def test_the_reason_tells_silence_repetition_and_a_request_without_end():
    silent, repeating, endless = Deadline(10), Deadline(10), Deadline(10)
    wait(silent, 10)
    wait(repeating, 10)
    repeating.since_message = 0.0
    wait(endless, 1000)
    assert [limit.left() for limit in (silent, repeating, endless)] == [0, 0, 0]
    assert silent.reason() == "sent no message for 10 s"
    assert repeating.reason() == "sent messages but reported no new step for 10 s"
    assert endless.reason() == "did not finish within 1000 s (100 times the timeout)"


def test_the_time_in_which_a_worker_waits_for_a_processor_does_not_count():
    """Four workers that compile at the same time on one processor take four times as long."""
    limit = Deadline(10)
    limit.excuse(Usage(computed=0.0, waited=0.0))
    wait(limit, 8)
    limit.excuse(Usage(computed=2.0, waited=6.0))
    assert limit.left() == 8
    wait(limit, 8)
    limit.excuse(None)  # the system does not say
    assert limit.left() == 0


@pytest.mark.parametrize(
    "usage",
    [
        Usage(computed=0.0, waited=0.0),  # it sleeps
        Usage(computed=8.0, waited=56.0),  # eight of its own threads compute, and wait for each other
    ],
)
def test_the_time_of_a_worker_that_hangs_counts(usage):
    limit = Deadline(10)
    limit.excuse(Usage(computed=0.0, waited=0.0))
    wait(limit, 8)
    limit.excuse(usage)
    assert limit.left() == 2
