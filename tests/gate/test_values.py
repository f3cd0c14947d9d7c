"""Values of OLD and NEW: equal, within rounding, or changed."""

import numpy
import pytest

from stele.gate import values
from stele.gate.values import CHANGED, EQUAL, ROUNDING, UNSTABLE
from stele_worker.programs.values import describe


def value(content):
    return describe(content)[""]


ARRAY = numpy.linspace(1, 2, 7, dtype="float32")


@pytest.mark.parametrize(
    ("old", "again", "new", "kind"),
    [
        (3, 3, 3, EQUAL),
        (3, 3, 4, CHANGED),
        (0.1, 0.1, 0.1 + 1e-16, ROUNDING),
        (0.1, 0.1, 0.1 + 1e-9, CHANGED),
        (float(numpy.float32(0.1)), float(numpy.float32(0.1)), float(numpy.float32(0.1000001)), ROUNDING),
        ("a", "a", "a", EQUAL),
        ("a", "a", "b", CHANGED),
        (ARRAY, ARRAY, ARRAY * numpy.float32(1 + 2e-7), ROUNDING),
        (ARRAY, ARRAY, ARRAY * numpy.float32(1 + 1e-4), CHANGED),
        (ARRAY, ARRAY * numpy.float32(1 + 2e-5), ARRAY * numpy.float32(1 + 1e-4), ROUNDING),
        (ARRAY, ARRAY * numpy.float32(1.1), ARRAY * numpy.float32(1.2), UNSTABLE),
        (ARRAY, ARRAY, ARRAY.astype("float64"), CHANGED),
        (ARRAY, ARRAY, ARRAY[:3], CHANGED),
        (ARRAY, ARRAY[:3], ARRAY, UNSTABLE),
        (numpy.array([numpy.nan, 1.0]), numpy.array([numpy.nan, 1.0]), numpy.array([numpy.nan, 1.0]), EQUAL),
        (numpy.array([numpy.nan, 1.0]), numpy.array([numpy.nan, 1.0]), numpy.array([0.0, 1.0]), CHANGED),
        (numpy.zeros(3), numpy.zeros(3), numpy.array([0, 0, 1e-30]), CHANGED),
    ],
)
def test_a_value_is_compared_with_what_old_differs_from_itself(old, again, new, kind):
    parts = [value(each) for each in (old, again, new)]
    assert values.compare(parts[:2], [parts[2], parts[2]]).kind == kind


def test_what_differs_in_one_launch_of_new_alone_is_no_change():
    old, new = value(1.0), value(2.0)
    assert values.compare([old, old], [new, old]).kind == EQUAL


def test_a_container_is_compared_part_by_part_and_a_missing_part_has_changed():
    old, new = describe({"loss": [1.0, 2.0], "name": "x"}), describe({"loss": [1.0, 3.0]})
    changes = values.compare_all([old, old], [new, new])
    assert {name: change.kind for name, change in changes.items()} == {"['loss']": CHANGED, "['name']": CHANGED}
    assert changes["['name']"].message == "not computed in NEW"


def test_all_numbers_of_a_large_array_count():
    old = numpy.ones(100_000)
    new = old.copy()
    new[1] = 1 + 1e-15  # between two of the numbers that are kept
    assert value(old)["numbers"] == value(new)["numbers"] and len(value(old)["numbers"]) == 4096
    assert values.compare([value(old)] * 2, [value(new)] * 2).kind == ROUNDING


def test_a_value_of_too_many_parts_is_refused():
    with pytest.raises(ValueError, match="more than 500 parts"):
        describe([[number] for number in range(600)])
