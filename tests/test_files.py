import errno
import os
from pathlib import Path

import pytest

from stele import files
from stele.errors import SteleError


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

    with pytest.raises(SteleError, match="No space"):
        files.write(tmp_path / "note", save)
    assert [file.read_bytes() for file in tmp_path.iterdir()] == [b"old"]


def test_a_full_disk_is_an_error_with_the_file_and_what_to_do(tmp_path):
    def save(file):
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(SteleError) as failure:
        files.write(tmp_path / "note", save)
    message = str(failure.value)
    assert message.startswith(f"{tmp_path / 'note'}: No space left on device.")
    assert "Free some space" in message and "--resume" in message


def test_a_line_that_does_not_fit_on_the_disk_is_an_error_with_the_file():
    if not Path("/dev/full").exists():
        pytest.skip("/dev/full does not exist")
    with pytest.raises(SteleError, match="/dev/full: No space left on device"):
        files.append_text(Path("/dev/full"), "a line\n")


def test_a_folder_that_cannot_be_written_is_an_error_with_its_path(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SteleError, match=f"{tmp_path / 'file'}"):
        files.write_text(tmp_path / "file" / "note", "text")


def test_a_file_does_not_exist_before_it_is_complete(tmp_path):
    files.write(tmp_path / "a" / "note", lambda file: not (tmp_path / "a" / "note").exists() or 1 / 0)
    assert (tmp_path / "a" / "note").exists()


def test_a_name_that_the_locale_cannot_decode_is_written_as_it_was_typed(tmp_path):
    files.write_text(tmp_path / "report.md", "größer".encode().decode("ascii", "surrogateescape"))
    assert (tmp_path / "report.md").read_text(encoding="utf-8") == "größer"


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_a_folder_without_write_permission_says_what_to_do(number):
    error = OSError(number, os.strerror(number), ".stele")
    assert files.describe(error) == f".stele: {os.strerror(number)}. Run the command in a folder that you can write to."
