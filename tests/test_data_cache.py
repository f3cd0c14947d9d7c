"""stele.data.cache: whole files only, found again without reading their source."""

import os
import subprocess
import sys

import numpy
import pytest

from stele.data import cache

ARRAYS = {
    "train_x": numpy.arange(6, dtype=numpy.int32).reshape(2, 3),
    "train_y": numpy.zeros(2, "u1"),
}


@pytest.fixture
def source(tmp_path):
    (tmp_path / "source").write_bytes(b"12345")
    return tmp_path / "source"


def test_the_folder_is_the_one_of_the_variable(monkeypatch, tmp_path):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path / "there"))
    assert cache.folder() == tmp_path / "there"


def test_the_folder_is_otherwise_the_users(monkeypatch):
    monkeypatch.delenv("STELE_CACHE", raising=False)
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache.folder().is_relative_to("/home/someone")
    assert cache.folder().name == "stele"


def test_what_was_kept_is_recalled(tmp_path):
    kept = cache.keep(tmp_path, "imdb-1", "official", ARRAYS)
    assert cache.recall(tmp_path, "imdb-1") == kept
    assert kept.origin == "official"
    assert all((numpy.load(kept.files[name]) == array).all() for name, array in ARRAYS.items())


def test_an_archive_holds_every_array(tmp_path):
    kept = cache.keep(tmp_path, "resnet50-1", "pretrained", ARRAYS, archive="weights")
    with numpy.load(kept.files["weights"]) as found:
        assert all((found[name] == array).all() for name, array in ARRAYS.items())


def test_nothing_is_recalled_under_another_key(tmp_path):
    cache.keep(tmp_path, "imdb-1", "official", ARRAYS)
    assert cache.recall(tmp_path, "imdb-2") is None


def test_a_file_that_is_gone_or_cut_is_not_recalled_but_kept_anew(tmp_path):
    kept = cache.keep(tmp_path, "imdb-1", "official", ARRAYS)
    kept.files["train_x"].write_bytes(b"cut")
    assert cache.recall(tmp_path, "imdb-1") is None
    kept.files["train_x"].unlink()
    assert cache.recall(tmp_path, "imdb-1") is None
    assert cache.keep(tmp_path, "imdb-1", "official", ARRAYS) == kept
    assert cache.recall(tmp_path, "imdb-1") == kept


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"files": {"train_x": 1}}'])
def test_a_note_that_makes_no_sense_is_not_recalled(tmp_path, text):
    cache.keep(tmp_path, "imdb-1", "official", ARRAYS)
    (tmp_path / "data" / "imdb-1.json").write_text(text)
    assert cache.recall(tmp_path, "imdb-1") is None


def test_the_stamp_changes_with_size_time_and_place(source):
    stamps = [cache.stamp("imdb", [source])]
    os.utime(source, ns=(1, 1))
    stamps.append(cache.stamp("imdb", [source]))
    source.write_bytes(b"123456")
    os.utime(source, ns=(1, 1))
    stamps.append(cache.stamp("imdb", [source]))
    moved = source.rename(source.with_name("moved"))
    stamps.append(cache.stamp("imdb", [moved]))
    assert len(set(stamps)) == 4
    assert cache.stamp("imdb", [moved]) == stamps[-1]


def test_the_fingerprint_changes_with_a_single_value():
    changed = {**ARRAYS, "train_y": numpy.array([0, 1], "u1")}
    assert cache.fingerprint(ARRAYS) != cache.fingerprint(changed)
    assert cache.fingerprint(ARRAYS) == cache.fingerprint(dict(ARRAYS))


def test_importing_stele_data_stays_quick():
    """No progress bar and no weights' reader until one is needed."""
    code = "import sys, stele.data; print({'rich', 'safetensors', 'platformdirs'} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "set()"
