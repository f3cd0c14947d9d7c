import pytest

from stele import files


def test_an_interrupted_write_leaves_only_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "run.json"
    files.write_text(path, "old")

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(files.Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        files.write_text(path, "new")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("run.json", "old")]


def test_a_failed_write_leaves_only_the_old_file(tmp_path):
    (tmp_path / "note").write_bytes(b"old")

    def save(file):
        file.write(b"half")
        raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space"):
        files.write(tmp_path / "note", save)
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"old"]


def test_a_file_does_not_exist_before_it_is_complete(tmp_path):
    files.write(tmp_path / "a" / "note", lambda file: not (tmp_path / "a" / "note").exists() or 1 / 0)
    assert (tmp_path / "a" / "note").exists()
