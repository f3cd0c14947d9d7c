"""Tables, and how their values are shown."""

from stele.report import content
from stele.report.content import Table, number_columns, shown
from tests.support.reports import NAME

# cells


def test_numbers_have_five_digits_and_unknown_ones_are_empty():
    values = [None, 3, 1.23456789, 123456.7, float("nan"), 1e-9, "a\x1b\u202e"]
    assert [shown(value) for value in values] == ["", "3", "1.2346", "123457", "", "1e-09", "a??"]


def test_a_column_of_numbers_may_have_unknown_ones_but_no_text():
    rows = [[1, 1, None, "a"], [None, "x", None, "b"]]
    assert number_columns(Table("name", "title", ["a", "b", "c", "d"], rows)) == [True, False, False, False]
    assert number_columns(Table("name", "title", ["a"], [])) == [False]


def test_a_usual_text_is_not_shortened():
    text = "From jax==0.10.1 to jax==0.10.2, nothing became worse: " + "a message of many words " * 30
    assert content.short(text) == text
    assert content.short(NAME) == f"{'n' * 80} … {'n' * 30}"
