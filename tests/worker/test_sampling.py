"""Functions of Python and their shares of a step."""

import pytest

from stele_worker import profiles as worker_profiles
from stele_worker import sampling


def slow_operator(count):
    total = 0
    for number in range(count):
        total += number * number
    return total


def test_a_framework_without_a_profiler_shows_its_python_functions():
    found = worker_profiles.profile_python(lambda: [slow_operator(100_000) for _ in range(3)])
    seconds = {name: numbers[0] for name, numbers in found.items()}
    assert max(seconds, key=seconds.get).startswith("test_sampling.py:")
    assert found["test_sampling.py:slow_operator"][1] == 3


def test_samples_of_stacks_are_shares_of_a_step():
    lines = ["main (a.py);step (b.py);sgemm (libblas.so) 30\n", "main (a.py);step (b.py) 10\n", "", "x\n"]
    lines += ["main (a.py);0x7fbb8e1e4b46 (libz.so) 5\n", "main (a.py);0x7fbb8e1e4b10 (libz.so) 5\n"]
    assert sampling.shares(lines, seconds=0.5) == {
        "sgemm (libblas.so)": pytest.approx(0.3),
        "step (b.py)": pytest.approx(0.1),
        "unknown function (libz.so)": pytest.approx(0.1),
    }
