"""stele.data.cifar10: read images and labels from six pickles, extracted or in their archive."""

import pickle
import tarfile
import tracemalloc

import numpy
import pytest

from stele.data import cifar10
from stele.errors import DataError
from tests.support.data_files import CIFAR10, Malicious, archive, batch, batches, unpack

FIRST, *_, TEST = cifar10.BATCHES


@pytest.fixture
def read(tmp_path):
    """read(contents) -> the arrays of these six extracted files."""
    return lambda contents: cifar10.read(unpack(tmp_path, contents), CIFAR10)


def test_images_are_rows_of_rgb_pixels(read):
    arrays = read(batches())
    planes = pickle.loads(batch(0))[b"data"][7].reshape(3, 32, 32)
    assert arrays["train_x"].shape == (50, 32, 32, 3)
    assert arrays["train_x"].dtype == numpy.uint8
    assert arrays["train_x"][7, 2, 5].tolist() == planes[:, 2, 5].tolist()


def test_labels_and_batches_keep_their_order(read):
    arrays = read(batches(labels=[9] * 10))
    assert arrays["train_y"].tolist() == [9] * 10 + [*range(10)] * 4
    assert arrays["train_y"].dtype == numpy.int32
    assert arrays["test_y"].tolist() == [*range(10)]
    last = pickle.loads(batch(4))[b"data"][9].reshape(3, 32, 32)
    assert (arrays["train_x"][49].transpose(2, 0, 1) == last).all()
    test = pickle.loads(batch(5))[b"data"][0].reshape(3, 32, 32)
    assert (arrays["test_x"][0].transpose(2, 0, 1) == test).all()


def test_the_archive_and_the_extracted_files_give_the_same_arrays(tmp_path, read):
    extracted = read(batches())
    reordered = dict(reversed(batches().items()))
    path = archive(tmp_path / "c.tar.gz", {"cifar-10-batches-py/readme.html": b"<p>", **reordered})
    archived = cifar10.read([path], CIFAR10)
    assert all((archived[name] == array).all() for name, array in extracted.items())


@pytest.mark.parametrize("packed", [False, True])
def test_a_batch_that_calls_a_program_is_rejected_and_not_executed(tmp_path, packed):
    contents = batches(filenames=Malicious(tmp_path / "mark"))
    path = archive(tmp_path / "c.tar.gz", contents)
    with pytest.raises(DataError, match=r"data_batch_1.* uses '(posix|nt).system'"):
        cifar10.read([path] if packed else unpack(tmp_path, contents), CIFAR10)
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data": numpy.zeros((9, 3072), "u1")}, r"'u1' of shape \(9, 3072\)"),
        ({"data": numpy.zeros((10, 1024), "u1")}, r"'u1' of shape \(10, 1024\)"),
        ({"data": numpy.zeros((10, 3072), "f4")}, r"'f4' of shape \(10, 3072\)"),
        ({"data": [0] * 10}, "contains a list, expected uint8"),
        ({"labels": [*range(9)]}, "does not contain a list of 10 labels"),
        ({"labels": [*range(1, 11)]}, "not an integer from 0 to 9"),
        ({"labels": [-1] * 10}, "not an integer from 0 to 9"),
        ({"labels": [0.5] * 10}, "not an integer from 0 to 9"),
        ({"labels": None}, "does not contain a list of 10 labels"),
    ],
)
def test_wrong_content_is_an_error_with_the_file_and_its_content(read, changes, message):
    with pytest.raises(DataError, match=f"data_batch_1.*{message}"):
        read(batches(**changes))


def test_a_pickle_without_a_dict_is_an_error(read):
    with pytest.raises(DataError, match="data_batch_1 contains a list, expected a dict"):
        read({**batches(), FIRST: pickle.dumps([1, 2])})


def test_a_file_too_large_for_a_batch_is_not_read(read, monkeypatch):
    monkeypatch.setattr(cifar10, "LARGEST", 1000)
    with pytest.raises(DataError, match="data_batch_1 is larger than any CIFAR-10 batch"):
        read(batches())


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE])
def test_a_batch_that_is_not_a_regular_file_is_an_error(tmp_path, kind):
    path = archive(tmp_path / "c.tar.gz", {**batches(), FIRST: b""}, data_batch_1=kind)
    with pytest.raises(DataError, match="data_batch_1 is not a regular file"):
        cifar10.read([path], CIFAR10)


def test_members_with_other_paths_are_ignored_and_nothing_is_extracted(tmp_path):
    others = {"../mark": b"x", "/tmp/stele-mark": b"x", "cifar-10-batches-py/../../mark": b"x"}
    (tmp_path / "a").mkdir()
    path = archive(tmp_path / "a" / "c.tar.gz", {**others, **batches()})
    cifar10.read([path], CIFAR10)
    assert sorted(file.name for file in tmp_path.rglob("*")) == ["a", "c.tar.gz"]


def test_a_member_in_another_folder_is_not_used_as_a_batch(tmp_path):
    contents = {f"../{path}": raw for path, raw in batches().items()}
    with pytest.raises(DataError, match="does not contain cifar-10-batches-py/data_batch_1"):
        cifar10.read([archive(tmp_path / "c.tar.gz", contents)], CIFAR10)


def test_a_missing_batch_in_an_archive_is_named(tmp_path):
    contents = batches()
    del contents[TEST]
    with pytest.raises(DataError, match=r"c.tar.gz does not contain cifar-10-batches-py/test_batch"):
        cifar10.read([archive(tmp_path / "c.tar.gz", contents)], CIFAR10)


def test_a_truncated_archive_is_an_error(tmp_path):
    path = archive(tmp_path / "c.tar.gz", batches())
    path.write_bytes(path.read_bytes()[:-30000])
    with pytest.raises(DataError, match="c.tar.gz is not a complete tar.gz archive"):
        cifar10.read([path], CIFAR10)


def test_a_text_file_is_an_error(tmp_path):
    (tmp_path / "c.tar.gz").write_text("<html>Sign in to the network</html>")
    with pytest.raises(DataError, match="c.tar.gz is not a complete tar.gz archive"):
        cifar10.read([tmp_path / "c.tar.gz"], CIFAR10)


def test_reading_a_decompression_bomb_stops_early(tmp_path, monkeypatch):
    monkeypatch.setattr(cifar10, "LARGEST", 100_000)
    path = archive(tmp_path / "c.tar.gz", {"zeros": bytes(50_000_000), **batches()})
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="its uncompressed size is larger than CIFAR-10"):
            cifar10.read([path], CIFAR10)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_a_member_too_large_for_a_batch_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(cifar10, "LARGEST", 30_000)
    with pytest.raises(DataError, match="data_batch_1 is not a regular file of the size of a batch"):
        cifar10.read([archive(tmp_path / "c.tar.gz", batches())], CIFAR10)
