import dataclasses
import hashlib
import threading

import numpy
import pytest
import safetensors.numpy

from stele import config, data
from stele.data import cifar10, download, imdb, synthetic, weights
from stele.errors import SteleError
from tests.support.data_files import CIFAR10, IMDB, Malicious, archive, batches, npz, reviews, unpack


def where(**changes):
    """Return the configuration of this machine with these folders."""
    return dataclasses.replace(config.read(), **changes)


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    """Use small data sets, no network and no folder of the user."""
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
    """Make the hash of this file the published one."""
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setattr(module, "SOURCE", dataclasses.replace(module.SOURCE, sha256=sha256))


def arrays(dataset):
    return {name: numpy.load(path, allow_pickle=False) for name, path in dataset.paths.items()}


def test_a_data_set_is_four_plain_files(folder, cache):
    npz(folder / "imdb.npz")
    dataset = data.load("imdb", where(data=folder, cache=cache))
    assert list(dataset.paths) == ["train_x", "train_y", "test_x", "test_y"]
    assert arrays(dataset)["test_y"].tolist() == [0, 1, 1]
    assert all(cache in path.parents for path in dataset.paths.values())
    assert dataset.notice is None


def test_stele_data_sets_the_folder(folder, cache, monkeypatch):
    npz(folder / "imdb.npz")
    monkeypatch.setenv("STELE_DATA", str(folder))
    monkeypatch.setenv("STELE_CACHE", str(cache))
    assert data.load("imdb").origin == "from STELE_DATA"
    assert data.load("imdb") == data.load("imdb", where(data=folder, cache=cache))


def test_stele_data_without_a_folder_is_an_error(cache, monkeypatch):
    monkeypatch.setenv("STELE_DATA", "/nowhere/at all")
    with pytest.raises(SteleError, match="STELE_DATA=/nowhere/at all is not a folder"):
        data.load("imdb", where(cache=cache))


def test_a_file_with_the_published_hash_is_official(folder, cache, monkeypatch):
    publish(monkeypatch, imdb, npz(folder / "imdb.npz"))
    assert data.load("imdb", where(data=folder, cache=cache)).origin == "official"


def test_an_archive_with_the_published_hash_is_official(folder, cache, monkeypatch):
    path = archive(folder / "cifar-10-python.tar.gz", batches())
    assert data.load("cifar10", where(data=folder, cache=cache)).origin == "from STELE_DATA"
    publish(monkeypatch, cifar10, path)
    path.touch()
    assert data.load("cifar10", where(data=folder, cache=cache)).origin == "official"


def test_extracted_batches_with_the_published_hashes_are_official(folder, cache, monkeypatch):
    files = unpack(folder, batches())
    assert data.load("cifar10", where(data=folder, cache=cache)).origin == "from STELE_DATA"
    hashes = {path: hashlib.md5(raw).hexdigest() for path, raw in batches().items()}
    monkeypatch.setattr(cifar10, "SOURCE", dataclasses.replace(CIFAR10, unpacked=hashes))
    files[0].touch()
    assert data.load("cifar10", where(data=folder, cache=cache)).origin == "official"


def test_the_fingerprint_depends_on_the_arrays_and_not_on_the_archive(tmp_path, folder, cache):
    unpack(folder, batches())
    (tmp_path / "other").mkdir()
    archive(tmp_path / "other" / "cifar-10-python.tar.gz", batches())
    extracted = data.load("cifar10", where(data=folder, cache=cache))
    archived = data.load("cifar10", where(data=tmp_path / "other", cache=cache))
    assert extracted.fingerprint == archived.fingerprint
    assert len(extracted.fingerprint) == 16
    unpack(folder, batches(labels=[1] * 10))
    assert data.load("cifar10", where(data=folder, cache=cache)).fingerprint != archived.fingerprint


def test_a_second_call_reads_no_source_file(folder, cache, monkeypatch):
    npz(folder / "imdb.npz")
    first = data.load("imdb", where(data=folder, cache=cache))
    monkeypatch.setattr(imdb, "read", None)
    monkeypatch.setattr(download, "sha256_of", None)
    assert data.load("imdb", where(data=folder, cache=cache)) == first


def test_a_changed_file_is_read_again(folder, cache):
    npz(folder / "imdb.npz")
    first = data.load("imdb", where(data=folder, cache=cache))
    npz(folder / "imdb.npz", y_test=numpy.array([1, 1, 1]))
    second = data.load("imdb", where(data=folder, cache=cache))
    assert arrays(second)["test_y"].tolist() == [1, 1, 1]
    assert arrays(first)["test_y"].tolist() == [0, 1, 1]


def test_concurrent_calls_return_the_same(folder, cache):
    unpack(folder, batches())
    datasets = []

    def load():
        datasets.append(data.load("cifar10", where(data=folder, cache=cache)))

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert datasets == [datasets[0]] * 4
    assert arrays(datasets[0])["train_x"].shape == (50, 32, 32, 3)
    assert not list(cache.rglob("*.tmp"))


def test_a_missing_batch_is_named(folder, cache):
    unpack(folder, batches())[2].unlink()
    with pytest.raises(SteleError, match=r"data_batch_3 is missing. Extract all files of https://"):
        data.load("cifar10", where(data=folder, cache=cache))


def test_a_malicious_file_is_rejected_with_what_to_do_next(folder, cache, tmp_path):
    npz(folder / "imdb.npz", x_test=reviews([1], [2], Malicious(tmp_path / "mark")))
    with pytest.raises(SteleError, match=r"is a pickle that uses.*Get the published file from https://.*imdb.npz"):
        data.load("imdb", where(data=folder, cache=cache))
    assert not (tmp_path / "mark").exists()
    assert not [*cache.rglob("*")]


def test_a_file_in_the_cache_is_used_without_a_network(cache, monkeypatch):
    (cache / "downloads").mkdir(parents=True)
    publish(monkeypatch, imdb, npz(cache / "downloads" / "imdb.npz"))
    assert data.load("imdb", where(cache=cache)).origin == "official"


def test_a_damaged_file_in_the_cache_is_an_error(cache):
    (cache / "downloads").mkdir(parents=True)
    npz(cache / "downloads" / "imdb.npz")
    with pytest.raises(SteleError, match=r"imdb.npz is not the published file. Delete it"):
        data.load("imdb", where(cache=cache))


def test_a_file_in_no_folder_is_downloaded(cache, tmp_path, monkeypatch):
    path = npz(tmp_path / "imdb.npz")
    publish(monkeypatch, imdb, path)

    def fetch(url, sha256, target):
        assert (url, sha256) == (imdb.SOURCE.url, imdb.SOURCE.sha256)
        target.parent.mkdir(parents=True)
        return path.rename(target)

    monkeypatch.setattr(download, "fetch", fetch)
    assert data.load("imdb", where(cache=cache, offline=False)).origin == "official"


@pytest.mark.parametrize("name", ["cifar10", "imdb"])
def test_without_data_and_network_the_data_is_synthetic_with_a_notice(name, cache):
    dataset = data.load(name, where(cache=cache))
    assert dataset.origin == "synthetic"
    assert dataset.notice.startswith(f"{name} is synthetic: STELE_OFFLINE is set")
    assert "set STELE_DATA to a folder that contains" in dataset.notice
    assert "\n" not in dataset.notice
    assert len(arrays(dataset)["test_x"]) == data.SETS[name].SOURCE.test


def test_a_synthetic_data_set_is_generated_once(cache, monkeypatch):
    first = data.load("imdb", where(cache=cache))
    monkeypatch.setattr(synthetic, "GENERATORS", {})
    assert data.load("imdb", where(cache=cache)) == first


def test_an_unknown_data_set_is_an_error_that_lists_the_known_ones(cache):
    with pytest.raises(SteleError, match=r"Unknown data set 'mnist'\. Known: cifar10, imdb\."):
        data.load("mnist", where(cache=cache))


def test_a_cache_that_cannot_be_written_is_an_error_with_what_to_do_next(folder, tmp_path):
    npz(folder / "imdb.npz")
    (tmp_path / "file").write_text("")
    with pytest.raises(SteleError, match=r"Cannot write data to .*set STELE_CACHE"):
        data.load("imdb", where(data=folder, cache=tmp_path / "file"))


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(weights.resnet50, "weights", lambda task: {"fc.bias": numpy.zeros(3, "f4")})


def test_pretrained_weights_are_stored_as_a_plain_archive(folder, cache, small):
    bias = numpy.array([1, 2, 3], "f2")
    safetensors.numpy.save_file({"fc.bias": bias}, folder / "resnet50.safetensors")
    pretrained = data.load_pretrained(where(data=folder, cache=cache))
    assert pretrained.origin == "pretrained"
    assert len(pretrained.fingerprint) == 16
    with numpy.load(pretrained.path, allow_pickle=False) as arrays:
        assert arrays["fc.bias"].tolist() == [1, 2, 3]
        assert arrays["fc.bias"].dtype == numpy.float32


def test_pretrained_weights_are_read_once(folder, cache, small, monkeypatch):
    safetensors.numpy.save_file({"fc.bias": numpy.zeros(3)}, folder / "resnet50.safetensors")
    first = data.load_pretrained(where(data=folder, cache=cache))
    monkeypatch.setattr(weights, "read", None)
    assert data.load_pretrained(where(data=folder, cache=cache)) == first


def test_without_a_file_there_are_no_pretrained_weights(folder, cache):
    assert data.load_pretrained(where(data=folder, cache=cache)) is None
    assert data.load_pretrained(where(cache=cache)) is None


@pytest.mark.slow
def test_pretrained_weights_have_the_names_of_the_task(folder, cache, monkeypatch):
    from stele_suite.tasks import resnet50

    monkeypatch.setattr(resnet50, "he_normal", lambda _, shape, groups=1: numpy.ones(shape, numpy.float32))  # fast
    weights = resnet50.weights(resnet50.Task(seed=3))
    safetensors.numpy.save_file(dict(weights), folder / "resnet50.safetensors")
    pretrained = data.load_pretrained(where(data=folder, cache=cache))
    with numpy.load(pretrained.path) as arrays:
        assert list(arrays) == list(weights)
