"""``stele table`` as a user runs it."""

from stele import __main__ as entry_point
from stele.measuring import store
from stele.report import page


def test_tables_are_written_between_the_markers(run, tmp_path, capsys):
    store.save(run, tmp_path / "runs")
    readme = tmp_path / "README.md"
    readme.write_text(f"# Title\n{page.BEGIN}\n{page.END}\nrest\n")
    assert entry_point.main(["table", "--steps", f"--runs={tmp_path / 'runs'}", f"--write={readme}"]) == 0
    assert "| PyTorch |" in readme.read_text()
    assert readme.read_text().startswith("# Title\n")
    assert readme.read_text().endswith("rest\n")


def test_tables_are_printed(run, tmp_path, capsys):
    store.save(run, tmp_path)
    assert entry_point.main(["table", "--steps", f"--runs={tmp_path}"]) == 0
    assert "| PyTorch |" in capsys.readouterr().out
