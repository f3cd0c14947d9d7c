"""``stele capabilities`` as a user runs it."""

from stele import __main__ as entry_point
from stele.report import page


def test_capabilities_are_written_to_a_page_and_a_wrong_one_has_exit_code_one(add_environment, tmp_path, capsys):
    add_environment("able", numbers=[12.0])
    (tmp_path / "page.md").write_text(f"{page.BEGIN}\n{page.END}\n")
    assert entry_point.main(["capabilities", "--framework=able", f"--write={tmp_path / 'page.md'}"]) == 1
    assert "able  second-order gradient            yes" in capsys.readouterr().out
    assert "| Able | yes | **wrong** |" in (tmp_path / "page.md").read_text()
