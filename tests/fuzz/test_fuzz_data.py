"""Arbitrary and mutated data files give arrays or a DataError, and nothing in them is executed."""

import contextlib
import io
import pickle
import sys
import zipfile

import numpy
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stele.data import cifar10, imdb, unpickling, weights
from stele.errors import DataError
from stele.subjects.model import recipes
from tests.fuzz.hostile import changed_bytes, changed_text
from tests.support.data_files import CIFAR10, IMDB, Malicious, archive, batch, batches, npz, reviews, unpack

EXECUTION = {"os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "subprocess.Popen"}
watched = []  # while it has an item, an audit hook of Python refuses to execute anything


def refuse_execution(event, arguments):
    if watched and event in EXECUTION:
        raise AssertionError(f"a data file executed {event} {arguments!r:.80}")


sys.addaudithook(refuse_execution)


def read(function, *arguments):
    """Return what the reader returns, or None if it raises DataError. Nothing may be executed meanwhile."""
    watched.append(function)
    try:
        with contextlib.suppress(DataError):
            return function(*arguments)
    finally:
        watched.clear()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


MALICIOUS = [pickle.dumps(Malicious("/nowhere/mark"), protocol=protocol) for protocol in range(5)]
ARRAY = pickle.dumps({b"data": numpy.zeros((2, 3), "u1"), b"labels": [1, 2]}, protocol=2)
OPCODES = st.lists(st.sampled_from([bytes([code]) for code in range(256)] + [b"\x00\x00\x00\x01", b"numpy\n"]))


@given(raw=changed_bytes(ARRAY) | OPCODES.map(b"".join) | st.sampled_from(MALICIOUS).flatmap(changed_bytes))
@example(raw=MALICIOUS[0])
@example(raw=b"(" * 10_000 + b".")
@example(raw=b"]" + b"\x85" * 5_000 + b".")
@example(raw=b"I" + b"9" * 5000 + b"\n.")
def test_a_pickle_gives_plain_data_or_is_refused(raw):
    loaded = read(unpickling.load, raw, "here")
    read(unpickling.uint8_matrix, loaded, (2, 3), "here")
    read(unpickling.object_list, loaded, 2, "here")


def test_the_check_detects_a_pickle_that_is_executed(tmp_path):
    with pytest.raises(AssertionError, match="executed os.system"):
        read(pickle.loads, pickle.dumps(Malicious(tmp_path / "mark")))
    assert not (tmp_path / "mark").exists()


def assert_complete(arrays, source):
    assert arrays is None or len(arrays["train_x"]) == len(arrays["train_y"]) == source.train


@given(raw=changed_bytes(batch(0)) | st.sampled_from(MALICIOUS))
def test_extracted_batches_are_read_or_refused(folder, raw):
    contents = {**batches(), next(iter(cifar10.BATCHES)): raw}
    assert_complete(read(cifar10.read, unpack(folder, contents), CIFAR10), CIFAR10)


@pytest.fixture(scope="module")
def packed(folder):
    return archive(folder / "cifar.tar.gz", batches()).read_bytes()


@given(data=st.data())
def test_an_archive_of_batches_is_read_or_refused(folder, packed, data):
    (folder / "changed.tar.gz").write_bytes(data.draw(changed_bytes(packed) | st.binary(max_size=100)))
    assert_complete(read(cifar10.read, [folder / "changed.tar.gz"], CIFAR10), CIFAR10)


@pytest.fixture(scope="module")
def stored(folder):
    return npz(folder / "imdb.npz").read_bytes()


@given(data=st.data())
def test_an_archive_of_reviews_is_read_or_refused(folder, stored, data):
    (folder / "changed.npz").write_bytes(data.draw(changed_bytes(stored) | st.binary(max_size=100)))
    assert_complete(read(imdb.read, [folder / "changed.npz"], IMDB), IMDB)


MEMBERS = ("x_train.npy", "y_train.npy", "x_test.npy", "y_test.npy")
MEMBER = io.BytesIO()
numpy.save(MEMBER, reviews([5, 6], [], [1], [2]), allow_pickle=True)


# the checksum of an archive refuses most changes, so that only a change inside of it reaches the reader of a member
@given(raw=changed_bytes(MEMBER.getvalue()), name=st.sampled_from(MEMBERS))
@example(raw=MEMBER.getvalue()[:80] + MALICIOUS[2], name=MEMBERS[0])
def test_a_member_of_an_archive_of_reviews_is_read_or_refused(folder, stored, raw, name):
    with zipfile.ZipFile(io.BytesIO(stored)) as before, zipfile.ZipFile(folder / "x.npz", "w") as after:
        for each in MEMBERS:
            after.writestr(each, raw if each == name else before.read(each))
    assert_complete(read(imdb.read, [folder / "x.npz"], IMDB), IMDB)


TENSORS = b'{"conv1.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}'
WEIGHTS = len(TENSORS).to_bytes(8, "little") + TENSORS + bytes(16)


@given(raw=changed_bytes(WEIGHTS) | changed_bytes(TENSORS).map(lambda head: len(head).to_bytes(8, "little") + head))
def test_weights_are_refused_unless_they_are_those_of_the_network(folder, monkeypatch, raw):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(weights.resnet50, "weights", lambda seed: {"conv1.weight": numpy.zeros((2, 2), "f4")})
        (folder / "weights.safetensors").write_bytes(raw)
        arrays = read(weights.read, folder / "weights.safetensors")
    assert arrays is None or arrays["conv1.weight"].shape == (2, 2)


RECIPE = "import torch\n\ndef network(task):\n    return torch.nn.Linear(3, 10)\n"


@given(text=changed_text(RECIPE) | st.text())
@example(text="(" * 5000)
@example(text="-" * 10_000 + "1")
@example(text="x = " + "9" * 5000)
@example(text="x = 1\0")
def test_a_recipe_file_is_read_and_not_executed(folder, text):
    path = folder / "recipes" / "mine" / "torch.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    reason = recipes.why_unusable(path)
    assert reason is None or reason.endswith(".")
