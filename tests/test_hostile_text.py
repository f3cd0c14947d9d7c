"""Text from outside never controls the terminal; a store, a lock file and a cache that are damaged say what to do."""

import dataclasses
import errno
import json
import os

import pytest

from stele import __main__ as entry_point
from stele import environments, files, text
from stele.environments import builds, description
from stele.environments.description import Environment
from stele.errors import SteleError
from stele.measuring import lock, store

HOSTILE = "a\x1b[31mb\x00c\u202ed\r\ne"


def test_text_without_characters_that_control_a_terminal():
    assert text.printable(HOSTILE) == "a?[31mb?c?d?\ne"
    assert text.printable(HOSTILE, keep="") == "a?[31mb?c?d??e"
    assert text.printable("größer → 12\u00a0%") == "größer → 12\u00a0%"


def test_half_of_a_surrogate_pair_is_replaced_but_not_a_byte_of_a_name():
    assert text.printable("\ud800 gr\udcc3\udcb6") == "? gr\udcc3\udcb6"


def test_a_name_that_the_locale_cannot_decode_is_written_as_it_was_typed(tmp_path):
    files.write_text(tmp_path / "report.md", "größer".encode().decode("ascii", "surrogateescape"))
    assert (tmp_path / "report.md").read_text(encoding="utf-8") == "größer"


def test_a_version_has_one_line():
    assert text.versions({"a\nb": "1\x1b[0m"}) == "a?b 1?[0m"


def test_a_stored_run_is_shown_without_control_characters(run, tmp_path):
    path = store.save(dataclasses.replace(run, label=HOSTILE), tmp_path)
    assert store.load(path).label == "a?[31mb?c?d??e"


@pytest.mark.parametrize("facts", [{"label": "Toy\x1b[31m"}, {"label": "two\nlines"}])
def test_a_description_with_control_characters_is_refused(tmp_path, facts):
    path = tmp_path / "toy.toml"
    path.write_text(
        "".join(f"{key} = {json.dumps(value)}\n" for key, value in facts.items()) + 'framework = "a"\n'
    )
    with pytest.raises(SteleError, match=r"toy\.toml .*label .*control characters"):
        description.read(path)


def test_a_description_whose_file_name_has_control_characters_is_refused(tmp_path):
    path = tmp_path / "toy\x1b[31m.toml"
    path.write_text('label = "Toy"\nframework = "a"\n')
    with pytest.raises(SteleError, match="name .*control characters"):
        description.read(path)


def test_an_error_quotes_a_value_without_its_control_characters(capsys):
    assert entry_point.main(["gate", "a\x1b[31m==1", "b"]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_many_runs_are_read_one_at_a_time(run, tmp_path):
    for number in range(3):
        store.save(dataclasses.replace(run, environment=f"torch-{number}"), tmp_path)
    runs = store.load_each(tmp_path)
    assert next(runs).environment == "torch-0"
    for path in tmp_path.iterdir():
        path.unlink()
    with pytest.raises(SteleError):  # it has not read the second file yet
        next(runs)


def test_a_cache_folder_that_cannot_be_created_names_the_variable_that_moves_it(monkeypatch):
    monkeypatch.setenv("STELE_CACHE", "/proc/none/stele")
    with (
        pytest.raises(SteleError, match="/proc/none/stele cannot be used: .*Set STELE_CACHE to a folder"),
        lock.machine("a test", wait=False, say=print),
    ):
        pass


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_a_folder_without_write_permission_says_what_to_do(number):
    error = OSError(number, os.strerror(number), ".stele")
    assert (
        files.describe(error)
        == f".stele: {os.strerror(number)}. Run the command in a folder that you can write to."
    )


def locked_environment(folder, content):
    path = folder / "toy.lock"
    path.write_text(content)
    return Environment("toy", "Toy", "toy", imports=("toy",), python=">=3.10", lock=path)


def test_an_empty_lock_file_is_not_a_lock_of_an_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path))
    toy = locked_environment(tmp_path, "\n")
    toy = dataclasses.replace(toy, requirements={"toy==1.0": "the release"})
    with pytest.raises(SteleError, match=r"toy\.lock contains no packages.*stele env lock toy"):
        builds.make(toy)


def test_the_error_of_a_damaged_lock_file_names_the_file(monkeypatch, tmp_path):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path))
    monkeypatch.setenv("UV_OFFLINE", "1")
    with pytest.raises(SteleError, match=r"Installing 'toy' from .*toy\.lock: "):
        builds.make(locked_environment(tmp_path, "toy==1.0 \\\n    --hash=sha256:12\n"))


def test_a_lock_file_that_is_not_text_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path))
    toy = locked_environment(tmp_path, "toy==1.0\n")
    toy.lock.write_bytes(b"toy==1.0 \xff\n")
    with pytest.raises(SteleError, match=r"toy\.lock"):
        builds.make(toy)


def test_a_build_that_is_a_link_is_removed_without_its_target(monkeypatch, tmp_path):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path))
    toy = locked_environment(tmp_path, "toy==1.0\n")
    outside = tmp_path / "outside"
    (outside / "bin").mkdir(parents=True)
    builds.root_folder().mkdir()
    builds.folder(toy).symlink_to(outside)
    assert builds.remove(toy)
    assert not builds.folder(toy).exists()
    assert (outside / "bin").is_dir()
    environments.described.cache_clear()
