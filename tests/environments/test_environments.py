"""Environments: descriptions, pins, and whether each can be used."""

import pytest

from stele import environments
from stele.environments import builds
from stele.errors import SteleError

MAINTAINED = (
    "jax", "tensorflow", "torch", "keras-jax", "keras-tensorflow", "keras-torch",
)  # fmt: skip
ROSETTA = (
    "caffe2", "chainer", "cntk", "keras2-cntk", "keras2-tensorflow", "keras2-theano", "knet", "lasagne",
    "mxnet-gluon", "mxnet-module", "onnxruntime", "openvino", "paddle", "paddle1", "r-keras", "tensorflow1",
)  # fmt: skip


def test_the_maintained_frameworks_come_first():
    assert environments.first_modes()[: len(MAINTAINED)] == MAINTAINED


def test_every_framework_of_the_rosetta_stone_has_an_environment():
    assert set(ROSETTA) <= set(environments.names())


@pytest.mark.parametrize("name", [name for name in environments.names() if environments.load(name).lock])
def test_every_lock_file_pins_the_requirements_with_hashes(name):
    environment = environments.load(name)
    lock = environment.lock.read_text()
    for requirement in environment.requirements:
        distribution, _, release = requirement.partition("==")
        package = distribution.partition("[")[0].lower()
        assert f"\n{package}=={release}" in "\n" + lock.lower(), requirement
    pins = [line for line in lock.splitlines() if "==" in line]
    assert len(pins) <= lock.count("--hash=sha256:")
    assert "://" not in lock


def test_an_unknown_name_suggests_the_most_similar_one():
    with pytest.raises(SteleError, match=r"Unknown framework 'pytorch'. Did you mean 'torch'\?"):
        environments.load("pytorch")


def test_an_unknown_name_without_a_similar_one_lists_all():
    with pytest.raises(SteleError, match=r"Unknown framework '[^']*'. List all with: stele env list"):
        environments.load("abacus")


def test_the_user_can_add_an_environment(tmp_path, monkeypatch):
    (tmp_path / "mine.toml").write_text('label = "Mine"\nframework = "mine"\ncommand = ["run", "me"]\n')
    monkeypatch.setenv("STELE_ENVIRONMENTS", str(tmp_path))
    assert builds.command(environments.load("mine")) == ("run", "me")


def test_a_relative_folder_of_descriptions_becomes_absolute(tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/one.toml").write_text(
        'label = "One"\nframework = "one"\npython = "==3.8.*"\n[requirements]\n"one==1.0" = "a test"\n'
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STELE_ENVIRONMENTS", "mine")
    assert environments.load("one").lock == tmp_path / "mine/one.lock"


@pytest.mark.parametrize("name", ["lasagne", "keras2-theano"])
def test_theano_keeps_what_it_compiled_with_its_build(name):
    assert environments.load(name).variables["THEANO_FLAGS"] == "base_compiledir={folder}/theano"
