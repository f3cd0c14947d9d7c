"""What a node checks before it does work."""

from pathlib import Path

import pytest

import stele
import stele_suite
import stele_worker
from stele.errors import SteleError
from stele.fleet import node
from stele.fleet.work import (
    NodeLacks,
    NodeUnfit,
)
from stele.measuring import content
from stele.measuring.run import Origin
from stele.measuring.settings import Settings

# ---- nodes


def test_a_node_with_other_code_is_unfit():
    with pytest.raises(NodeUnfit, match="another version of Stele"):
        node.check("0" * 16)


@pytest.mark.parametrize("package", [stele, stele_suite, stele_worker])
def test_the_code_of_a_node_is_that_of_measuring_and_that_of_the_worker(package, monkeypatch):
    before, of_package = node.code(), content.of_package
    monkeypatch.setattr(content, "of_package", lambda one: "0" if one is package else of_package(one))
    assert node.code() != before


def test_a_full_disk_makes_a_node_unfit(monkeypatch):
    monkeypatch.setattr(node.shutil, "disk_usage", lambda folder: Full())
    with pytest.raises(NodeUnfit, match=r"its disk has 0.2 GiB left in .* Free 1 GiB"):
        node.check(node.code())


class Full:
    free = 2**30 // 5


def test_a_node_with_other_data_lacks_the_task(monkeypatch):
    here = {"data": None, "data_origin": Origin(origin="synthetic", fingerprint="0f")}
    monkeypatch.setattr(node.measure, "inputs", lambda task: (here, "synthetic data"))
    assert node.inputs("gru", "0f") == here
    with pytest.raises(NodeLacks, match=r"its data of gru \(synthetic\) is not that of .* Set STELE_DATA on this node"):
        node.inputs("gru", "1e")


def test_a_node_with_fewer_processors_than_threads_lacks_them(monkeypatch):
    monkeypatch.setattr(node.processors, "count", lambda: 2)
    node.check_threads(Settings(threads=2))
    node.check_threads(Settings(device="cuda", threads=8))
    with pytest.raises(NodeLacks, match="--threads 3 needs as many processors, and a launch has 2 here"):
        node.check_threads(Settings(threads=3))


def test_a_node_that_cannot_read_its_data_lacks_the_task(monkeypatch):
    def fail(task):
        raise SteleError("train.npy is damaged")

    monkeypatch.setattr(node.measure, "inputs", fail)
    with pytest.raises(NodeLacks, match="it cannot read the data of gru: train.npy is damaged"):
        node.inputs("gru", "0f")


def test_works_with_one_name_have_different_folders_at_the_same_time(tmp_path):
    with node.working_in(str(tmp_path), "gate"):
        with node.working_in(str(tmp_path), "gate"):
            assert Path.cwd() == tmp_path / "gate-2"
        assert Path.cwd() == tmp_path / "gate"
    with node.working_in(str(tmp_path), "gate"):
        assert Path.cwd() == tmp_path / "gate"


def test_works_with_different_names_have_folders_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path / "cache"))
    found = []
    for folder, name in ((None, "torch-gru-train"), (None, "torch-gru-infer"), (str(tmp_path), "gate")):
        with node.working_in(folder, name):
            found.append(Path.cwd())
    assert found == [
        *(tmp_path / "cache/fleet" / f"torch-gru-{phase}" for phase in ("train", "infer")),
        tmp_path / "gate",
    ]
