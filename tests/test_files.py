import pytest

from stele import files


def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "run.json"
    files.write_text(path, "old")

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(files.Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        files.write_text(path, "new")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("run.json", "old")]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    (tmp_path / "note").write_bytes(b"old")

    def save(file):
        file.write(b"half")
        raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space"):
        files.write(tmp_path / "note", save)
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"old"]


def test_a_file_is_not_seen_before_it_is_whole(tmp_path):
    files.write(tmp_path / "a" / "note", lambda file: not (tmp_path / "a" / "note").exists() or 1 / 0)
    assert (tmp_path / "a" / "note").exists()
