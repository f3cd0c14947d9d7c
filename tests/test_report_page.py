import pytest

from stele.errors import SteleError
from stele.report import page


def test_only_what_was_generated_is_replaced(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{page.BEGIN}\nold\n{page.END}\nafter\n")
    page.fill(readme, "new")
    assert readme.read_text() == f"before\n{page.BEGIN}\nnew\n{page.END}\nafter\n"


def test_a_page_without_markers_is_left_alone(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text("text")
    with pytest.raises(SteleError, match=r"README\.md lacks the lines"):
        page.fill(readme, "new")
    assert readme.read_text() == "text"
