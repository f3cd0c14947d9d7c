"""Single values as text. Text from outside never controls the terminal."""

import pytest

from stele import text

HOSTILE = "a\x1b[31mb\x00c\u202ed\r\ne"


def test_text_without_characters_that_control_a_terminal():
    assert text.printable(HOSTILE) == "a?[31mb?c?d?\ne"
    assert text.printable(HOSTILE, keep="") == "a?[31mb?c?d??e"
    assert text.printable("größer → 12\u00a0%") == "größer → 12\u00a0%"


def test_half_of_a_surrogate_pair_is_replaced_but_not_a_byte_of_a_name():
    assert text.printable("\ud800 gr\udcc3\udcb6") == "? gr\udcc3\udcb6"


def test_a_version_has_one_line():
    assert text.versions({"a\nb": "1\x1b[0m"}) == "a?b 1?[0m"


@pytest.mark.parametrize("name", ["..", "a/../b", "ü\n$(x)", "x" * 300, "jax==0.9.2 " * 30])
def test_any_name_becomes_a_file_name(name, tmp_path):
    slug = text.slug(name)
    (tmp_path / f"{slug}.json").write_text("")
    assert [path.name for path in tmp_path.iterdir()] == [f"{slug}.json"]
    assert slug.isascii() and len(slug) <= text.SLUG


def test_two_long_names_become_two_file_names():
    names = ["x" * 300 + ending for ending in "ab"]
    assert len({text.slug(name) for name in names}) == 2


def test_a_value_beside_its_label_is_folded_in_its_own_column():
    lines = text.labelled("parity", "one two three\nhttps://example.org/long", 30)
    assert lines == [
        "  parity         one two three",
        "                 https://example.org/long",
    ]
    assert text.labelled("parity", "one two three four five six", 37)[1:] == ["                 five six"]
    assert text.labelled("a long label", "", 80, width=3) == ["  a long label"]


def test_of_many_names_the_first_are_shown_and_the_others_counted():
    assert text.first_of(["a"], 2) == "a"
    assert text.first_of(["a", "b"], 2) == "a, b"
    assert text.first_of(["a", "b", "c", "d"], 2) == "a, b and 2 more"


def test_a_period_of_one_day_is_that_day():
    assert text.period(["2026-12-01", "2026-12-01"]) == "2026-12-01"
    assert text.period(["2026-11-30", "2026-12-01", "2026-12-02"]) == "2026-11-30 to 2026-12-02"
