import gc
import sys

import pytest

from stele_worker import clock, frameworks


def test_every_step_is_timed_and_its_result_is_returned():
    steps = list(clock.time_steps(lambda x: 2 * x, [(1,), (2,)], wait=lambda value: None))
    assert [result for _, result in steps] == [2, 4]
    assert all(seconds > 0 for seconds, _ in steps)


def test_preparing_a_batch_and_using_a_result_are_outside_the_timed_region(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(clock, "perf_counter", lambda: now[0])

    def spend(seconds):
        now[0] += seconds

    def batches():
        for _ in range(3):
            spend(100)
            yield (0.25,)

    durations = []
    for seconds, _ in clock.time_steps(spend, batches(), wait=lambda value: None):
        spend(1000)
        durations.append(seconds)
    assert durations == [0.25, 0.25, 0.25]


def test_the_clock_stops_only_when_the_device_has_finished(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(clock, "perf_counter", lambda: now[0])

    def wait(value):
        now[0] += 5.0 if value == "computing" else 0.0

    [(seconds, _)] = clock.time_steps(lambda x: "computing", [(1,)], wait)
    assert seconds == 5.0


def test_garbage_is_not_collected_between_steps_but_is_afterwards():
    states = [gc.isenabled() for _ in clock.time_steps(lambda: None, [()] * 3, wait=lambda value: None)]
    assert states == [False, False, False]
    assert gc.isenabled()


def blocks():
    return clock.time_blocks(lambda: None, [[()] * 2] * 3, wait=lambda value: None)


def steps():
    return clock.time_steps(lambda: None, [()] * 3, wait=lambda value: None)


@pytest.mark.parametrize("timed", [steps, blocks])
@pytest.mark.parametrize("enabled", [True, False])
def test_of_a_model_of_the_user_garbage_is_collected_as_in_a_plain_process(monkeypatch, timed, enabled):
    """Or never, if the user's code has turned the collector off."""
    collected = []
    monkeypatch.setattr(frameworks, "tuned", False)
    monkeypatch.setattr(clock.gc, "collect", lambda *generation: collected.append(generation))
    (gc.enable if enabled else gc.disable)()
    try:
        assert [gc.isenabled() for _ in timed()] == [enabled] * 3
        assert gc.isenabled() is enabled and not collected
    finally:
        gc.enable()


def test_steps_are_steady_when_two_adjacent_windows_agree():
    falling = [9.0, 5.0, 4.0, 3.0, 2.0]
    assert clock.find_steady_step([*falling, *[1.0] * 20], window=5, tolerance=0.05) == 3


def test_the_first_step_is_never_steady():
    assert clock.find_steady_step([1.0] * 20, window=5, tolerance=0.05) == 1


def test_steps_that_never_stop_trending_have_no_steady_step():
    assert clock.find_steady_step([0.9**n for n in range(40)], window=5, tolerance=0.05) is None


def test_too_few_steps_have_no_steady_step():
    assert clock.find_steady_step([1.0] * 10, window=5, tolerance=0.05) is None


def test_several_steps_are_timed_with_their_batches_and_two_waits(monkeypatch):
    now, waits = [0.0], []
    monkeypatch.setattr(clock, "perf_counter", lambda: now[0])

    def spend(seconds, result):
        now[0] += seconds
        return result

    def batches():
        for number in range(4):
            now[0] += 0.5
            yield 8.0 if number == 0 else 1.0, number

    def wait(result):
        waits.append(result)
        now[0] += 0.25

    timing = clock.time_all(spend, batches(), wait)
    assert timing == (0.5 + 8 + 0.25 + 3 * 1.5 + 0.25, 8.75, [0, 1, 2, 3])
    assert waits == [0, 3]


def test_compilation_is_what_the_first_call_took_longer_than_the_mean_of_the_others():
    assert clock.Timing(11.0, 8.0, [0, 1, 2, 3]).compile_seconds() == 7.0
    assert clock.Timing(3.0, 0.5, [0, 1]).compile_seconds() == 0.0
    assert clock.Timing(8.0, 8.0, [0]).compile_seconds() == 0.0


def watch_beside_others(monkeypatch, *, passed, computed, waited):
    """Return what the stopwatch shows. ``waited`` has the seconds that each thread waited for a processor."""
    now = {"passed": 0.0, "computed": 0.0, "waited": {"1": 5.0}}
    monkeypatch.setattr(clock, "perf_counter", lambda: now["passed"])
    monkeypatch.setattr(clock.time, "process_time", lambda: now["computed"])
    monkeypatch.setattr(clock, "seconds_waited", lambda: now["waited"])
    seconds = clock.stopwatch(together=True)
    now.update(
        passed=passed, computed=computed, waited={thread: 5.0 * (thread == "1") + waited[thread] for thread in waited}
    )
    return seconds()


@pytest.mark.parametrize(
    ("passed", "computed", "waited", "expected"),
    [
        (8.0, 2.0, {"1": 6.0}, 2.0),  # three others computed as much
        (8.0, 2.0, {"1": 3.0}, 5.0),  # it slept for 3 s
        (8.0, 2.0, {"1": 0.0, "2": 6.0}, 2.0),  # a second thread computed, and the first one waited for it
        (8.0, 2.0, {"2": 6.0}, 2.0),  # the first thread has ended
        (4.0, 4.0, {"1": 2.0, "2": 2.0}, 4.0),  # two of its own threads computed, and waited for each other
    ],
)
def test_waiting_for_a_processor_does_not_count_beside_others(monkeypatch, passed, computed, waited, expected):
    assert watch_beside_others(monkeypatch, passed=passed, computed=computed, waited=waited) == expected


def test_only_the_first_step_is_made_beside_others(monkeypatch):
    together = []
    stopwatch = clock.stopwatch
    monkeypatch.setattr(clock, "stopwatch", lambda beside=False: together.append(beside) or stopwatch())
    list(clock.time_steps(lambda x: x, [(1,), (2,), (3,)], wait=lambda value: None, together=True))
    assert together == [True, False, False]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux only")
def test_the_kernel_says_how_long_each_thread_waited():
    waited = clock.seconds_waited()
    assert waited and all(seconds >= 0 for seconds in waited.values())
