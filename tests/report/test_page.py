import pytest

from stele.errors import SteleError
from stele.report import page


def test_only_the_generated_part_is_replaced(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{page.BEGIN}\nold\n{page.END}\nafter\n")
    page.fill(readme, "new")
    assert readme.read_text() == f"before\n{page.BEGIN}\nnew\n{page.END}\nafter\n"


def test_a_page_has_several_generated_parts(tmp_path):
    readme = tmp_path / "README.md"
    second = page.BEGIN.replace("stele", "stele, second")
    readme.write_text(f"{page.BEGIN}\none\n{page.END}\n{second}\ntwo\n{page.END}\n")
    page.fill(readme, "three", by="stele, second")
    page.fill(readme, "four")
    assert readme.read_text() == f"{page.BEGIN}\nfour\n{page.END}\n{second}\nthree\n{page.END}\n"


def test_a_page_without_markers_is_an_error_and_not_changed(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text("text")
    with pytest.raises(SteleError, match=r"README\.md has no lines"):
        page.fill(readme, "new")
    assert readme.read_text() == "text"


def test_a_table_that_is_written_is_read_again():
    table = page.table(["name", "ms"], [["a|b", "1"], ["c", ""]], right=slice(1, None))
    text = f"## Results\n\n{table}\n\nmore\n{page.table(['x'], [])}\n"
    assert list(page.read_tables(text)) == [
        ("## Results", [{"name": r"a\|b", "ms": "1"}, {"name": "c", "ms": ""}]),
        ("more", []),
    ]
