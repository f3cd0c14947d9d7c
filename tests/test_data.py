"""stele.data: where a set is found, what is said of it, and what happens without it."""

import dataclasses
import hashlib
import threading

import numpy
import pytest
import safetensors.numpy

from datafiles import CIFAR10, IMDB, Evil, archive, batches, npz, reviews, unpack
from stele import data
from stele.data import cifar10, download, imdb, synthetic, weights
from stele.errors import SteleError


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    """Small sets, no network and none of the user's folders."""
    monkeypatch.setenv("STELE_OFFLINE", "1")
    monkeypatch.delenv("STELE_DATA", raising=False)
    monkeypatch.delenv("STELE_CACHE", raising=False)
    monkeypatch.setattr(cifar10, "SOURCE", CIFAR10)
    monkeypatch.setattr(imdb, "SOURCE", IMDB)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "sets").mkdir()
    return tmp_path / "sets"


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache"


def publish(monkeypatch, module, path):
    """Make this file the published one."""
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setattr(module, "SOURCE", dataclasses.replace(module.SOURCE, sha256=sha256))


def arrays(dataset):
    return {name: numpy.load(path, allow_pickle=False) for name, path in dataset.paths.items()}


def test_the_published_addresses_hashes_and_sizes_stand():
    """As keras.datasets has them."""
    from stele.data.source import Source

    assert Source("", "https://example.org/a/b.npz", "", 1, 1).file == "b.npz"
    assert CIFAR10.url == "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"
    assert CIFAR10.sha256 == "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce"
    assert IMDB.url.endswith("/tensorflow/tf-keras-datasets/imdb.npz")
    assert IMDB.sha256 == "69664113be75683a8fe16e3ed0ab59fda8886cb3cd7ada244f7d9544e4676b9f"


def test_a_worker_gets_four_plain_files(folder, cache):
    npz(folder / "imdb.npz")
    found = data.load("imdb", folder=folder, cache=cache)
    assert list(found.paths) == ["train_x", "train_y", "test_x", "test_y"]
    assert arrays(found)["test_y"].tolist() == [0, 1, 1]
    assert all(cache in path.parents for path in found.paths.values())
    assert found.notice is None


def test_the_variable_names_the_folder(folder, cache, monkeypatch):
    npz(folder / "imdb.npz")
    monkeypatch.setenv("STELE_DATA", str(folder))
    monkeypatch.setenv("STELE_CACHE", str(cache))
    assert data.load("imdb").origin == "from STELE_DATA"
    assert data.load("imdb") == data.load("imdb", folder=folder, cache=cache)


def test_a_variable_that_names_no_folder_is_an_error(cache, monkeypatch):
    monkeypatch.setenv("STELE_DATA", "/nowhere/at all")
    with pytest.raises(SteleError, match="STELE_DATA=/nowhere/at all is not a folder"):
        data.load("imdb", cache=cache)


def test_a_file_with_the_published_hash_is_official(folder, cache, monkeypatch):
    publish(monkeypatch, imdb, npz(folder / "imdb.npz"))
    assert data.load("imdb", folder=folder, cache=cache).origin == "official"


def test_an_archive_with_the_published_hash_is_official(folder, cache, monkeypatch):
    path = archive(folder / "cifar-10-python.tar.gz", batches())
    assert data.load("cifar10", folder=folder, cache=cache).origin == "from STELE_DATA"
    publish(monkeypatch, cifar10, path)
    path.touch()
    assert data.load("cifar10", folder=folder, cache=cache).origin == "official"


def test_extracted_batches_with_the_published_hashes_are_official(folder, cache, monkeypatch):
    files = unpack(folder, batches())
    assert data.load("cifar10", folder=folder, cache=cache).origin == "from STELE_DATA"
    hashes = {path: hashlib.md5(raw).hexdigest() for path, raw in batches().items()}
    monkeypatch.setattr(cifar10, "SOURCE", dataclasses.replace(CIFAR10, unpacked=hashes))
    files[0].touch()
    assert data.load("cifar10", folder=folder, cache=cache).origin == "official"


def test_the_fingerprint_is_of_the_arrays_and_not_of_their_packing(tmp_path, folder, cache):
    unpack(folder, batches())
    (tmp_path / "other").mkdir()
    archive(tmp_path / "other" / "cifar-10-python.tar.gz", batches())
    extracted = data.load("cifar10", folder=folder, cache=cache)
    archived = data.load("cifar10", folder=tmp_path / "other", cache=cache)
    assert extracted.fingerprint == archived.fingerprint
    assert len(extracted.fingerprint) == 16
    unpack(folder, batches(labels=[1] * 10))
    assert data.load("cifar10", folder=folder, cache=cache).fingerprint != archived.fingerprint


def test_a_second_call_reads_nothing(folder, cache, monkeypatch):
    npz(folder / "imdb.npz")
    first = data.load("imdb", folder=folder, cache=cache)
    monkeypatch.setattr(imdb, "read", None)
    monkeypatch.setattr(download, "sha256_of", None)
    assert data.load("imdb", folder=folder, cache=cache) == first


def test_a_changed_file_is_read_again(folder, cache):
    npz(folder / "imdb.npz")
    first = data.load("imdb", folder=folder, cache=cache)
    npz(folder / "imdb.npz", y_test=numpy.array([1, 1, 1]))
    second = data.load("imdb", folder=folder, cache=cache)
    assert arrays(second)["test_y"].tolist() == [1, 1, 1]
    assert arrays(first)["test_y"].tolist() == [0, 1, 1]


def test_calls_at_once_agree(folder, cache):
    unpack(folder, batches())
    found = []

    def load():
        found.append(data.load("cifar10", folder=folder, cache=cache))

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [found[0]] * 4
    assert arrays(found[0])["train_x"].shape == (50, 32, 32, 3)
    assert not list(cache.rglob("*.tmp"))


def test_a_missing_batch_is_named(folder, cache):
    unpack(folder, batches())[2].unlink()
    with pytest.raises(SteleError, match=r"data_batch_3 is missing. Unpack all of https://"):
        data.load("cifar10", folder=folder, cache=cache)


def test_a_hostile_file_is_refused_with_what_to_do_next(folder, cache, tmp_path):
    npz(folder / "imdb.npz", x_test=reviews([1], [2], Evil(tmp_path / "mark")))
    with pytest.raises(SteleError, match=r"asks for.*Get the genuine file from https://.*imdb.npz"):
        data.load("imdb", folder=folder, cache=cache)
    assert not (tmp_path / "mark").exists()
    assert not cache.exists()


def test_a_file_in_the_cache_is_found_without_a_network(cache, monkeypatch):
    (cache / "downloads").mkdir(parents=True)
    publish(monkeypatch, imdb, npz(cache / "downloads" / "imdb.npz"))
    assert data.load("imdb", cache=cache).origin == "official"


def test_a_damaged_file_in_the_cache_is_not_passed_off_as_official(cache):
    (cache / "downloads").mkdir(parents=True)
    npz(cache / "downloads" / "imdb.npz")
    with pytest.raises(SteleError, match=r"imdb.npz is not the published file. Delete it"):
        data.load("imdb", cache=cache)


def test_what_is_in_neither_folder_is_downloaded(cache, tmp_path, monkeypatch):
    path = npz(tmp_path / "imdb.npz")
    publish(monkeypatch, imdb, path)

    def fetch(url, sha256, target):
        assert (url, sha256) == (imdb.SOURCE.url, imdb.SOURCE.sha256)
        target.parent.mkdir(parents=True)
        return path.rename(target)

    monkeypatch.setattr(download, "fetch", fetch)
    assert data.load("imdb", cache=cache).origin == "official"


@pytest.mark.parametrize("name", ["cifar10", "imdb"])
def test_without_data_and_network_the_set_is_synthetic_and_says_so(name, cache):
    found = data.load(name, cache=cache)
    assert found.origin == "synthetic"
    assert found.notice.startswith(f"{name} is synthetic: STELE_OFFLINE is set")
    assert "set STELE_DATA to a folder that holds" in found.notice
    assert "\n" not in found.notice
    assert len(arrays(found)["test_x"]) == data.SETS[name].SOURCE.test


def test_a_synthetic_set_is_made_once(cache, monkeypatch):
    first = data.load("imdb", cache=cache)
    monkeypatch.setattr(synthetic, "MAKERS", {})
    assert data.load("imdb", cache=cache) == first


def test_an_unknown_set_is_an_error_that_names_the_known(cache):
    with pytest.raises(SteleError, match="No data set 'mnist'; there are cifar10 and imdb"):
        data.load("mnist", cache=cache)


def test_a_cache_that_cannot_be_written_is_an_error_with_a_way_out(folder, tmp_path):
    npz(folder / "imdb.npz")
    (tmp_path / "file").write_text("")
    with pytest.raises(SteleError, match=r"Data could not be laid out in .*set STELE_CACHE"):
        data.load("imdb", folder=folder, cache=tmp_path / "file")


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(weights.resnet50, "weights", lambda seed: {"fc.bias": numpy.zeros(3, "f4")})


def test_pretrained_weights_become_a_plain_archive(folder, cache, small):
    bias = numpy.array([1, 2, 3], "f2")
    safetensors.numpy.save_file({"fc.bias": bias}, folder / "resnet50.safetensors")
    found = data.pretrained(folder=folder, cache=cache)
    assert found.origin == "pretrained"
    assert len(found.fingerprint) == 16
    with numpy.load(found.path, allow_pickle=False) as arrays:
        assert arrays["fc.bias"].tolist() == [1, 2, 3]
        assert arrays["fc.bias"].dtype == numpy.float32


def test_pretrained_weights_are_read_once(folder, cache, small, monkeypatch):
    safetensors.numpy.save_file({"fc.bias": numpy.zeros(3)}, folder / "resnet50.safetensors")
    first = data.pretrained(folder=folder, cache=cache)
    monkeypatch.setattr(weights, "read", None)
    assert data.pretrained(folder=folder, cache=cache) == first


def test_without_a_file_nothing_is_pretrained(folder, cache):
    assert data.pretrained(folder=folder, cache=cache) is None
    assert data.pretrained(cache=cache) is None


def test_the_names_and_shapes_are_those_of_the_task(folder, cache, monkeypatch):
    from stele_worker.tasks import resnet50

    monkeypatch.setattr(resnet50, "he_normal", lambda _, shape: numpy.ones(shape, numpy.float32))  # at once
    weights = resnet50.weights(3)
    safetensors.numpy.save_file(dict(weights), folder / "resnet50.safetensors")
    found = data.pretrained(folder=folder, cache=cache)
    with numpy.load(found.path) as arrays:
        assert list(arrays) == list(weights)
