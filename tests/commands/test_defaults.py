"""``stele defaults`` as a user runs it."""

from stele import __main__ as entry_point


def test_defaults_are_recorded_and_compared(add_environment, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("stele.parity.defaults.FOLDER", tmp_path / "defaults")
    add_environment("old", table={"epsilon": 1e-7, "GRU form": "reset before"}, release="2.3")
    add_environment("new", table={"epsilon": 1e-7, "GRU form": "reset after"}, release="3.0")
    assert entry_point.main(["defaults", "old"]) == 0
    assert "GRU form             reset before" in capsys.readouterr().out
    assert len(list((tmp_path / "defaults").iterdir())) == 1
    assert entry_point.main(["defaults", "old", "new"]) == 0
    shown = capsys.readouterr().out
    assert "GRU form             reset before  →  reset after" in shown
    assert "epsilon" not in shown
