import pytest

from stele import __main__ as door
from stele import report, store


def test_tables_are_written_between_the_markers(run, tmp_path, capsys):
    store.save(run, tmp_path / "runs")
    page = tmp_path / "README.md"
    page.write_text(f"# Title\n{report.BEGIN}\n{report.END}\nrest\n")
    assert door.main(["table", f"--runs={tmp_path / 'runs'}", f"--write={page}"]) == 0
    assert "| PyTorch |" in page.read_text()
    assert page.read_text().startswith("# Title\n")
    assert page.read_text().endswith("rest\n")


def test_tables_are_printed(run, tmp_path, capsys):
    store.save(run, tmp_path)
    assert door.main(["table", f"--runs={tmp_path}"]) == 0
    assert "| PyTorch |" in capsys.readouterr().out


def test_an_error_is_one_sentence_and_status_two(tmp_path, capsys):
    assert door.main(["table", f"--runs={tmp_path}"]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("stele: There are no Runs to show.")
    assert "Traceback" not in captured.err


def test_an_unknown_command_is_a_usage_error(capsys):
    with pytest.raises(SystemExit) as ending:
        door.main(["polish"])
    assert ending.value.code == 2
