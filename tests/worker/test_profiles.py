"""Operations and their times."""

import pytest

from stele_worker import profiles as worker_profiles


def test_an_operation_counts_without_those_that_run_inside_it():
    lines = [
        [("inner", 10, 20), ("outer", 0, 100), ("inner", 40, 30), ("next", 100, 5), ("innermost", 45, 5)],
        [("other", 0, 50)],
    ]
    assert worker_profiles.self_times(lines) == {
        "outer": (pytest.approx(50e-9), 1),
        "inner": (pytest.approx(45e-9), 2),
        "innermost": (pytest.approx(5e-9), 1),
        "next": (pytest.approx(5e-9), 1),
        "other": (pytest.approx(50e-9), 1),
    }
