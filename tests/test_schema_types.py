"""The types of values in JSON: an error names the place, the value and the expected type."""

from typing import Any, TypedDict

import pytest

from stele import schema


class Launch(TypedDict):
    seconds: list[float | None]


class Named(Launch, total=False):
    name: str


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        (True, int, "it is True, expected a whole number"),
        (2**63, int, "expected a whole number"),
        (float("nan"), float, "it is nan, expected a number"),
        (10**400, float, "expected a number"),
        (None, str, "it is None, expected text"),
        ({"a": [1, "2"]}, dict[str, list[int]], r"it\['a'\]\[1\] is '2', expected a whole number"),
        ([], dict[str, Any], r"it is \[\], expected an object"),
        ({}, Named, "it has no 'seconds'"),
        ({"seconds": [1, {}]}, Named, r"seconds\[1\] is \{\}, expected a number"),
        ({"seconds": [], "name": 3}, Named, "name is 3, expected text"),
    ],
)
def test_a_value_of_another_type_is_named(value, kind, message):
    with pytest.raises(ValueError, match=message):
        schema.check(value, kind, "it")


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (3, float),
        (None, str | None),
        ([1, None, 0.5], tuple[float | None, ...]),
        ({"seconds": [1], "more": object()}, Named),
    ],
)
def test_a_value_of_the_right_type_is_accepted(value, kind):
    schema.check(value, kind, "it")


def test_json_that_is_nested_too_deeply_is_refused():
    with pytest.raises(ValueError, match="it is nested too deeply"):
        schema.parse("[" * 100_000)
