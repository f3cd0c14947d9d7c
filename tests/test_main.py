import json
import sys

import pytest

from fakes import SCRIPTED
from stele import __main__ as door
from stele import accuracy, environments, parity, report, store


def test_tables_are_written_between_the_markers(run, tmp_path, capsys):
    store.save(run, tmp_path / "runs")
    page = tmp_path / "README.md"
    page.write_text(f"# Title\n{report.BEGIN}\n{report.END}\nrest\n")
    assert door.main(["table", "--steps", f"--runs={tmp_path / 'runs'}", f"--write={page}"]) == 0
    assert "| PyTorch |" in page.read_text()
    assert page.read_text().startswith("# Title\n")
    assert page.read_text().endswith("rest\n")


def test_tables_are_printed(run, tmp_path, capsys):
    store.save(run, tmp_path)
    assert door.main(["table", "--steps", f"--runs={tmp_path}"]) == 0
    assert "| PyTorch |" in capsys.readouterr().out


def test_an_error_is_one_sentence_and_status_two(tmp_path, capsys):
    assert door.main(["table", "--steps", f"--runs={tmp_path}"]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("stele: There are no Runs to show.")
    assert "Traceback" not in captured.err


def test_an_unknown_command_is_a_usage_error(capsys):
    with pytest.raises(SystemExit) as ending:
        door.main(["polish"])
    assert ending.value.code == 2


def test_the_golden_numbers_are_what_the_oracle_makes(monkeypatch, tmp_path, capsys):
    committed = parity.golden("gru")
    monkeypatch.setattr(parity, "FOLDER", tmp_path / "parity")
    monkeypatch.chdir(tmp_path)
    assert door.main(["parity", "--rebase", "--task", "gru"]) == 0
    made = parity.golden("gru", folder=tmp_path / "parity")
    assert made["task"] == committed["task"]
    assert max(parity.errors(made, committed).values()) < 1e-8
    assert parity.golden("gru", "one-bias", tmp_path / "parity")["task"] != committed["task"]


def test_a_band_is_measured_over_seeds(monkeypatch, tmp_path, capsys):
    script = {"seconds": [0.5, 0.1], "accuracy": 0.5}
    facts = [
        'label = "Steady"',
        'framework = "scripted"',
        f"command = {json.dumps([sys.executable, str(SCRIPTED)])}",
    ]
    facts.append(f"variables = {{ SCRIPT = {json.dumps(json.dumps(script))} }}")
    (tmp_path / "steady.toml").write_text("\n".join(facts))
    for variable in ("STELE_ENVIRONMENTS", "STELE_CACHE"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setenv("STELE_OFFLINE", "1")
    monkeypatch.delenv("STELE_DATA", raising=False)
    monkeypatch.setattr(accuracy, "FILE", tmp_path / "accuracy.json")
    monkeypatch.chdir(tmp_path)
    environments.rows.cache_clear()
    assert door.main(["band", "--task=cnn", "--scale=smoke", "--framework=steady", "--seeds=5"]) == 0
    [entry] = accuracy.read(tmp_path / "accuracy.json")["cnn"]["smoke"].values()
    assert entry["accuracies"] == [0.5] * 5
    assert entry["source"].startswith("5 seeds of scripted 1.0")
    environments.rows.cache_clear()


def test_a_band_over_four_seeds_is_refused(capsys):
    assert door.main(["band", "--task=cnn", "--scale=smoke", "--seeds=4"]) == 2
    assert "--seeds 4: a band needs at least 5." in capsys.readouterr().err
