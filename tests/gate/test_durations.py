"""How long launches took in earlier gates."""

from stele.gate import durations


def test_a_damaged_file_of_durations_is_ignored(monkeypatch, tmp_path):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path))
    (tmp_path / durations.FILE).write_text("[")
    assert durations.read() == {}
