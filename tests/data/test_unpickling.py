"""stele.data.unpickling: only arrays and plain data."""

import collections
import pickle
import tracemalloc

import numpy
import pytest

from stele.data import unpickling
from stele.errors import DataError
from tests.support.data_files import Malicious

# {"data": uint8 [[1, 2], [3, 4]]} pickled with NumPy 1 and Python 2, as the published batches are
PYTHON_2 = (
    b"\x80\x02}U\x04datacnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
    b"(K\x01K\x02K\x02\x86cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xff"
    b"J\xff\xff\xff\xffK\x00tb\x89U\x04\x01\x02\x03\x04tbs."
)


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
def test_an_array_is_unchanged_by_a_round_trip(protocol):
    array = numpy.arange(6, dtype=numpy.uint8).reshape(2, 3)
    loaded = unpickling.load(pickle.dumps(array, protocol=protocol), "here")
    assert unpickling.uint8_matrix(loaded, (2, 3), "here").tolist() == array.tolist()


def test_an_array_in_fortran_order_keeps_its_rows():
    array = numpy.asfortranarray(numpy.arange(6, dtype=numpy.uint8).reshape(2, 3))
    loaded = unpickling.load(pickle.dumps(array, protocol=4), "here")
    assert unpickling.uint8_matrix(loaded, (2, 3), "here").tolist() == array.tolist()


def test_an_array_from_python_2_is_read():
    loaded = unpickling.load(PYTHON_2, "here")
    assert unpickling.uint8_matrix(loaded[b"data"], (2, 2), "here").tolist() == [[1, 2], [3, 4]]


def test_an_array_of_lists_gives_its_lists():
    array = numpy.empty(2, object)
    array[:] = [[1, 2], [3]]
    loaded = unpickling.load(pickle.dumps(array), "here")
    assert unpickling.object_list(loaded, 2, "here") == [[1, 2], [3]]


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_pickle_that_calls_a_program_is_rejected_with_the_name_and_not_executed(tmp_path, protocol):
    raw = pickle.dumps([Malicious(tmp_path / "mark")], protocol=protocol)
    with pytest.raises(DataError, match=r"here is a pickle that uses '(posix|nt).system'"):
        unpickling.load(raw, "here")
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize("thing", [collections.OrderedDict(a=1), print, numpy.float64(1.0), numpy.load])
def test_objects_that_are_not_arrays_are_rejected(thing):
    with pytest.raises(DataError, match="here is a pickle that uses"):
        unpickling.load(pickle.dumps(thing), "here")


def test_bytes_with_the_type_of_objects_are_rejected():
    """With the matching flags, __setstate__ of NumPy would use these bytes as pointers."""
    raw = pickle.dumps(numpy.zeros(1, "u1"), protocol=2).replace(b"u1", b"O8")
    with pytest.raises(DataError, match="here contains 'O8'"):
        unpickling.uint8_matrix(unpickling.load(raw, "here"), (1,), "here")
    with pytest.raises(DataError, match="the wrong number of"):
        unpickling.object_list(unpickling.load(raw, "here"), 1, "here")


def test_an_array_without_content_is_rejected():
    bare = unpickling.load(b"cnumpy.core.multiarray\n_reconstruct\n)R.", "here")
    with pytest.raises(DataError, match="here contains '' of shape ()"):
        unpickling.uint8_matrix(bare, (1, 1), "here")


def test_too_few_bytes_for_the_shape_are_an_error():
    raw = pickle.dumps(numpy.zeros((2, 2), "u1"), protocol=2).replace(b"K\x02K\x02", b"K\x02K\x09")
    with pytest.raises(DataError, match="the wrong number of"):
        unpickling.uint8_matrix(unpickling.load(raw, "here"), (2, 9), "here")


@pytest.mark.parametrize("end", [0, 1, 40, -1])
def test_a_truncated_pickle_is_an_error(end):
    raw = pickle.dumps({"data": list(range(100))}, protocol=2)
    with pytest.raises(DataError, match=r"here is not a complete pickle \(\w+\)"):
        unpickling.load(raw[:end], "here")


@pytest.mark.parametrize(
    "raw",
    [
        b"hello",
        b"\x80\x63.",
        b"R.",
        b"cnumpy\nndarray\n(K\x01tR.",  # calls ndarray itself
        b"cnumpy\ndtype\n}U\x01aK\x01sb.",  # sets an attribute of a replacement class
        b"c_codecs\nencode\n}U\x01aK\x01sb.",
        b"cnumpy.core.multiarray\n_reconstruct\n)RK\x01b.",
    ],
)
def test_an_invalid_pickle_is_an_error(raw):
    with pytest.raises(DataError, match="here is not a complete pickle"):
        unpickling.load(raw, "here")


def test_a_small_pickle_cannot_allocate_much_memory():
    """The C unpickler allocates memory for every memo number up to the largest one."""
    tracemalloc.start()
    try:
        assert unpickling.load(b"\x80\x02]r\x00\x00\xff\x00.", "here") == []
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
