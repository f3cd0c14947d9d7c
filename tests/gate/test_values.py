"""Values of OLD and NEW: equal, within rounding, or changed."""

import dataclasses

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


def test_a_change_with_one_number_of_threads_is_a_change():
    old, new = value(1.0), value(2.0)
    assert values.compare([old, old], [new, old]).kind == values.compare([old, old], [old, new]).kind == CHANGED


def test_a_small_number_of_a_list_does_not_hide_behind_a_large_one():
    old, new = value([1e6, 0.5]), value([1e6, 1.5])
    assert values.compare([old, old], [new, new]).kind == CHANGED


def test_a_container_is_compared_part_by_part_and_a_missing_part_has_changed():
    old, new = describe({"loss": [1.0, 2.0], "name": "x"}), describe({"loss": [1.0, 3.0]})
    changes = values.compare_all([old, old], [new, new])
    assert {name: change.kind for name, change in changes.items()} == {"['loss']": CHANGED, "['name']": CHANGED}
    assert changes["['name']"].message == "not computed in NEW"


def test_all_numbers_of_a_large_array_count():
    old = numpy.ones(200_000)
    rounded, changed = old.copy(), old.copy()
    rounded[1], changed[1] = 1 + 1e-15, 1.5
    assert len(value(old)["numbers"]) == 4096
    assert values.compare([value(old)] * 2, [value(rounded)] * 2).kind == ROUNDING
    assert values.compare([value(old)] * 2, [value(changed)] * 2).kind == CHANGED


@pytest.mark.parametrize(
    ("old", "new"),
    [("a" * 2000 + "b", "a" * 2000 + "c"), (10**400, 10**400 + 1), (2**70, 2**70 + 1)],
)
def test_all_of_a_long_text_and_of_a_large_number_counts(old, new):
    assert values.compare([value(old)] * 2, [value(new)] * 2).kind == CHANGED


def test_a_value_of_too_many_parts_is_refused():
    with pytest.raises(ValueError, match="more than 5000 parts"):
        describe([[number] for number in range(6000)])


def test_the_fields_of_a_dataclass_are_parts():
    @dataclasses.dataclass
    class Result:
        loss: float
        name: str

    assert list(describe(Result(1.0, "x"))) == ["['loss']", "['name']"]
