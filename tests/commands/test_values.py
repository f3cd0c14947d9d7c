"""``stele values``; tests/gate/test_behaviour.py prints those of a gate."""

from stele import __main__ as entry_point
from stele.commands import values
from tests.support import gate_records


def test_a_folder_without_records_says_how_to_make_one(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert entry_point.main(["values"]) == 2
    assert "Make one with: stele gate OLD NEW -- pytest tests" in capsys.readouterr().err


def test_a_gate_of_a_network_has_no_values(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    gate_records.gate(tmp_path / "gate.jsonl")
    assert entry_point.main(["values", "gate.jsonl"]) == 2
    assert "has no values. Name a gate of tests." in capsys.readouterr().err


def test_a_large_array_is_shown_by_some_numbers_and_its_shape():
    shown = values.text_of({"type": "numpy.ndarray", "shape": [2, 3], "numbers": [0.1, 1, "nan", 3.0, 4.0, 5.0]})
    assert shown == "[0.1, 1, nan, 3, … (2x3)]"
