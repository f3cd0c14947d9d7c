"""stele.data.cache: complete files, found again without reading their source."""

import os
import subprocess
import sys

import numpy
import pytest

from stele import config, data
from stele.data import cache

ARRAYS = {
    "train_x": numpy.arange(6, dtype=numpy.int32).reshape(2, 3),
    "train_y": numpy.zeros(2, "u1"),
}


@pytest.fixture
def source(tmp_path):
    (tmp_path / "source").write_bytes(b"12345")
    return tmp_path / "source"


def test_stele_cache_sets_the_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path / "there"))
    assert cache.folder() == tmp_path / "there"


def test_the_default_folder_is_in_the_home_folder_of_the_user(monkeypatch):
    monkeypatch.delenv("STELE_CACHE", raising=False)
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache.folder().is_relative_to("/home/someone")
    assert cache.folder().name == "stele"


def test_stored_arrays_are_found_by_their_key(tmp_path):
    entry = cache.store(tmp_path, "imdb-1", "official", ARRAYS)
    assert cache.look_up(tmp_path, "imdb-1") == entry
    assert entry.origin == "official"
    assert all((numpy.load(entry.files[name]) == array).all() for name, array in ARRAYS.items())


def test_an_archive_contains_every_array(tmp_path):
    entry = cache.store(tmp_path, "resnet50-1", "pretrained", ARRAYS, archive="weights")
    with numpy.load(entry.files["weights"]) as arrays:
        assert all((arrays[name] == array).all() for name, array in ARRAYS.items())


def test_another_key_finds_nothing(tmp_path):
    cache.store(tmp_path, "imdb-1", "official", ARRAYS)
    assert cache.look_up(tmp_path, "imdb-2") is None


def test_a_missing_or_truncated_file_is_not_found_and_stored_again(tmp_path):
    entry = cache.store(tmp_path, "imdb-1", "official", ARRAYS)
    entry.files["train_x"].write_bytes(b"short")
    assert cache.look_up(tmp_path, "imdb-1") is None
    entry.files["train_x"].unlink()
    assert cache.look_up(tmp_path, "imdb-1") is None
    assert cache.store(tmp_path, "imdb-1", "official", ARRAYS) == entry
    assert cache.look_up(tmp_path, "imdb-1") == entry


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"files": {"train_x": 1}}'])
def test_an_invalid_index_entry_is_not_found(tmp_path, text):
    cache.store(tmp_path, "imdb-1", "official", ARRAYS)
    (tmp_path / "data" / "imdb-1.json").write_text(text)
    assert cache.look_up(tmp_path, "imdb-1") is None


def test_the_key_changes_with_size_time_and_path(source):
    keys = [cache.source_key("imdb", [source])]
    os.utime(source, ns=(1, 1))
    keys.append(cache.source_key("imdb", [source]))
    source.write_bytes(b"123456")
    os.utime(source, ns=(1, 1))
    keys.append(cache.source_key("imdb", [source]))
    moved = source.rename(source.with_name("moved"))
    keys.append(cache.source_key("imdb", [moved]))
    assert len(set(keys)) == 4
    assert cache.source_key("imdb", [moved]) == keys[-1]


def test_the_fingerprint_changes_with_a_single_value():
    changed = {**ARRAYS, "train_y": numpy.array([0, 1], "u1")}
    assert cache.fingerprint(ARRAYS) != cache.fingerprint(changed)
    assert cache.fingerprint(ARRAYS) == cache.fingerprint(dict(ARRAYS))


def test_importing_stele_data_is_fast():
    """The progress bar and the reader of weights are imported when they are needed."""
    code = "import sys, stele.data; print({'rich', 'safetensors', 'platformdirs'} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "set()"


def test_relative_folders_become_absolute(tmp_path, monkeypatch):
    """A worker gets paths in both, and it starts in another folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("STELE_CACHE", "cache")
    monkeypatch.setenv("STELE_DATA", "data")
    assert (cache.folder(), data.data_folder(config.read())) == (tmp_path / "cache", tmp_path / "data")
