"""The text of an explanation."""

import pytest

from stele.explain import text


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [(0.1, 0.15, "50.0% slower"), (0.1, 0.05, "50.0% faster"), (0.12e-3, 0.320, "2,667 times as long")],
)
def test_a_step_that_takes_many_times_as_long_has_no_percentage(old, new, expected):
    assert text.growth(old, new) == expected
