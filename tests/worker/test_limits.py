"""A launch ends when its own steps took a limit, however many were asked for. The clock is virtual."""

import itertools
from types import SimpleNamespace

import numpy
import pytest

from stele_worker import clock, measurement, process
from tests.support.numpy_framework import framework

WARMUP = {"window": 5, "tolerance": 0.05, "most": 16}


@pytest.fixture
def measure(monkeypatch):
    """measure("train" or "infer", first, other, limit, ...) -> the outcome of 24 steps of so many seconds."""
    now, done = [0.0], []
    monkeypatch.setattr(clock, "perf_counter", lambda: now[0])
    monkeypatch.setattr(measurement, "perf_counter", lambda: now[0])
    monkeypatch.setattr(process, "reset_peak_memory", lambda: None)
    host = SimpleNamespace(pause=lambda done: None, report=lambda **_: None)

    def measure(phase, first, other, limit, steps=24, **asked):
        def step(*batch):
            now[0] += other if done else first
            done.append(len(batch[0]))
            return 0.5

        recipe = SimpleNamespace(
            load=lambda net, weights: net, network=lambda task: None,
            training_step=lambda net, task: step, inference_step=lambda net, task: step,
        )  # fmt: skip
        subject = SimpleNamespace(
            task=SimpleNamespace(name="net", batch=4), recipe=recipe, samples=lambda part, data: (numpy.zeros(8),) * 2,
            weights=lambda path, samples=None: None, rows=lambda part: numpy.arange(4 * 50).reshape(50, 4) % 8,
        )  # fmt: skip
        function, plain = getattr(measurement, phase), framework(fetch=lambda value: value)
        return function(
            plain,
            subject,
            host,
            None,
            None,
            WARMUP,
            turn=1,
            steps=steps,
            limit=limit,
            **asked,
        )

    return measure


@pytest.mark.parametrize("phase", ["train", "infer"])
@pytest.mark.parametrize(
    ("first", "other", "limit", "count"),
    [
        (0.1, 0.01, 5.0, 24),
        (8.0, 8.0, 5.0, 2),
        (8.0, 8.0, 10.0, 3),
        (8.0, 8.0, 0.0, 2),
        (100.0, 0.01, 5.0, 24),  # only the compilation is slow
        (0.1, 1.0, 5.0, 6),
        (8.0, 8.0, None, 24),
    ],
)
def test_the_steps_end_with_the_limit_and_at_least_one_counts(measure, phase, first, other, limit, count):
    outcome = measure(phase, first, other, limit)
    assert len(outcome["steps"]["seconds"]) == count
    assert 1 <= outcome["steps"]["warmup"] < count


@pytest.mark.parametrize("phase", ["train", "infer"])
@pytest.mark.parametrize(
    ("asked", "most"), [({"blocks": 8}, 2 * 2 * 8), ({"sizes": 16}, 8 * 8), ({"new_batch": True}, 8)]
)
def test_what_is_measured_after_the_steps_ends_with_the_limit_too(measure, phase, asked, most):
    outcome = measure(phase, 8.0, 8.0, 5.0, **asked)
    seconds = [*outcome.get("blocks", {}).get("seconds", []), *itertools.chain(*outcome.get("sizes", {}).values())]
    assert len(outcome["steps"]["seconds"]) == 2
    assert sum(seconds) <= most
    assert all(outcome.get(name) for name in asked)


@pytest.mark.parametrize(("count", "limit", "expected"), [(20, None, 20), (20, 80.0, 10), (20, 1.0, 1), (20, 1e9, 20)])
def test_a_profile_has_the_steps_that_the_limit_affords(count, limit, expected):
    outcome = {"seconds": [100.0, 8.0, 8.0, 8.0], "warmup": 1}
    assert measurement.affordable(count, outcome, limit) == expected
