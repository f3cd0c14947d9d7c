"""stele.data.imdb: read imdb.npz as rows of 150 tokens."""

import io
import zipfile

import numpy
import pytest

from stele.data import imdb
from stele.errors import DataError
from tests.support.data_files import IMDB, Malicious, npz, reviews


@pytest.fixture
def read(tmp_path):
    """read(x_train=...) -> the arrays of an imdb.npz with these members changed."""
    return lambda **changes: imdb.read([npz(tmp_path / "imdb.npz", **changes)], IMDB)


@pytest.fixture
def rewrite(tmp_path):
    """rewrite({"x_train.npy": bytes}) -> the path of an imdb.npz with these members replaced."""

    def rewrite(members, compression=zipfile.ZIP_DEFLATED):
        with zipfile.ZipFile(npz(tmp_path / "original.npz")) as original:
            every = {name: original.read(name) for name in original.namelist()}
        with zipfile.ZipFile(tmp_path / "imdb.npz", "w", compression) as archive:
            for name, raw in {**every, **members}.items():
                if raw is not None:
                    archive.writestr(name, raw)
        return tmp_path / "imdb.npz"

    return rewrite


def header(shape, descr="|O"):
    file = io.BytesIO()
    text = {"descr": descr, "fortran_order": False, "shape": shape}
    numpy.lib.format.write_array_header_1_0(file, text)
    return file.getvalue()


def test_a_short_review_has_its_start_token_and_is_padded_at_the_end(read):
    arrays = read()
    assert arrays["train_x"].shape == (4, 150)
    assert arrays["train_x"].dtype == numpy.int32
    assert arrays["train_x"][0].tolist() == [1, 8, 9] + [0] * 147
    assert arrays["train_x"][1].tolist() == [1] + [0] * 149


def test_a_long_review_keeps_its_last_150_tokens(read):
    arrays = read()
    assert arrays["train_x"][2].tolist() == [word + 3 for word in range(50, 200)]
    assert arrays["test_x"][1].tolist() == [1] + [word + 3 for word in range(149)]
    assert arrays["test_x"][2].tolist() == [word + 3 for word in range(150)]


def test_words_from_token_30000_on_become_unknown(read):
    assert read()["train_x"][3, :5].tolist() == [1, 29999, 2, 2, 0]


def test_labels_are_int32_in_the_order_of_the_file(read):
    arrays = read()
    assert arrays["train_y"].tolist() == [1, 0, 1, 0]
    assert arrays["test_y"].tolist() == [0, 1, 1]
    assert arrays["test_y"].dtype == numpy.int32


def test_reviews_that_call_a_program_are_rejected_and_not_executed(tmp_path, read):
    with pytest.raises(DataError, match=r"imdb.npz \(x_train.npy\).*uses '(posix|nt).system'"):
        read(x_train=reviews([1], Malicious(tmp_path / "mark"), [1], [1]))
    assert not (tmp_path / "mark").exists()


def test_labels_that_are_objects_are_rejected_without_unpickling(tmp_path, read):
    with pytest.raises(DataError, match=r"y_test.npy\) is object in"):
        read(y_test=reviews(0, Malicious(tmp_path / "mark"), 1))
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x_train": reviews([1], [1])}, r"declares the shape \(2,\), expected \(4,\)"),
        ({"x_train": numpy.zeros(4)}, "is float64, expected lists of words"),
        ({"x_train": numpy.zeros((4, 150), int)}, r"declares the shape \(4, 150\)"),
        ({"x_train": reviews([1], [1], [1], "text")}, "a str, expected a list of words"),
        ({"x_train": reviews([1], [1], [1], ["a"])}, "not a non-negative integer"),
        ({"x_train": reviews([1], [1], [1], [-1])}, "not a non-negative integer"),
        ({"x_train": reviews([1], [1], [1], [[1]])}, "not a non-negative integer"),
        ({"y_train": numpy.array([0, 1, 2, 0])}, "neither 0 nor 1"),
        ({"y_train": numpy.array([0, 1, -1, 0])}, "neither 0 nor 1"),
        ({"y_train": numpy.zeros(4)}, "is float64 in 32 bytes, expected 4 integers"),
    ],
)
def test_wrong_content_is_an_error_with_the_member_and_its_content(read, changes, message):
    with pytest.raises(DataError, match=rf"imdb.npz \({next(iter(changes))}.npy\).*{message}"):
        read(**changes)


def test_a_header_that_declares_an_enormous_shape_allocates_nothing(rewrite):
    for name, descr in (("x_train.npy", "|O"), ("y_train.npy", "<i8")):
        path = rewrite({name: header((10**15,), descr)})
        with pytest.raises(DataError, match="declares the shape"):
            imdb.read([path], IMDB)


def test_a_member_that_is_larger_than_imdb_is_not_read(rewrite, monkeypatch):
    monkeypatch.setattr(imdb, "LARGEST", 10_000)
    with pytest.raises(DataError, match="x_train.npy.* declares 10,001 bytes, more than IMDB"):
        imdb.read([rewrite({"x_train.npy": bytes(10_001)})], IMDB)


def test_a_compression_that_numpy_does_not_write_is_an_error(rewrite):
    with pytest.raises(DataError, match="has a compression that NumPy does not write"):
        imdb.read([rewrite({}, zipfile.ZIP_BZIP2)], IMDB)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"hello",
        b"\x93NUMPY\x09\x00v\x00",
        b"\x93NUMPY\x01\x00\x10\x00__import__('os')",
        b"\x93NUMPY\x01\x00\x20\x4e" + b"(" * 20000,
    ],
)
def test_a_member_without_a_header_is_an_error(rewrite, raw):
    with pytest.raises(DataError, match="x_train.npy.* has no readable .npy header"):
        imdb.read([rewrite({"x_train.npy": raw})], IMDB)


def test_truncated_labels_are_an_error(rewrite):
    with pytest.raises(DataError, match="int64 in 8 bytes, expected 4 integers"):
        imdb.read([rewrite({"y_train.npy": header((4,), "<i8") + bytes(8)})], IMDB)


def test_truncated_reviews_are_an_error(rewrite):
    with pytest.raises(DataError, match="x_train.npy.* is not a complete pickle"):
        imdb.read([rewrite({"x_train.npy": header((4,)) + b"\x80\x02]"})], IMDB)


def test_a_missing_member_is_named(rewrite):
    with pytest.raises(DataError, match=r"y_test.npy\) is missing"):
        imdb.read([rewrite({"y_test.npy": None})], IMDB)


def test_a_text_file_is_an_error(tmp_path):
    (tmp_path / "imdb.npz").write_text("version https://git-lfs.github.com/spec/v1")
    with pytest.raises(DataError, match="imdb.npz is not a complete npz archive"):
        imdb.read([tmp_path / "imdb.npz"], IMDB)


def test_a_damaged_archive_is_an_error(tmp_path):
    path = npz(tmp_path / "imdb.npz")
    raw = bytearray(path.read_bytes())
    raw[200] ^= 0xFF
    path.write_bytes(raw)
    with pytest.raises(DataError, match="imdb.npz is not a complete npz archive"):
        imdb.read([path], IMDB)
