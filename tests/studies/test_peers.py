"""The page that compares recipes with public code, without the frameworks."""

import ast
from pathlib import Path
from types import SimpleNamespace

import pytest

from stele import environments
from stele_suite import tasks
from tests.support import scripts

FOLDER = Path(__file__).parents[2] / "studies" / "peers"


@pytest.fixture(scope="module")
def peers():
    return scripts.load(FOLDER / "__main__.py", "peers___main__")


@pytest.fixture(scope="module")
def loop():
    return scripts.load(FOLDER / "loop.py", "peers_loop")


def test_every_peer_has_an_environment_a_step_and_a_description(peers):
    for peer in peers.PEERS:
        assert peer.environment in environments.names()
        public = ast.parse((FOLDER / "public" / f"{peer.name}.py").read_text())
        [function] = [one for one in public.body if getattr(one, "name", None) == peer.task]
        assert peer.name in peers.NAMES and ast.get_docstring(function) and ast.get_docstring(public)
        assert {"training_step", "inference_step"} <= names_in(public)


def names_in(module):
    """Return the names that a module defines or imports."""
    imported = [one for one in module.body if isinstance(one, ast.ImportFrom)]
    defined = {one.name for one in module.body if isinstance(one, ast.FunctionDef)}
    return defined | {alias.name for one in imported for alias in one.names}


def test_each_phase_has_its_own_step(loop):
    public = SimpleNamespace(
        gru=lambda task: ("net", "optimizer"),
        training_step=lambda net, optimizer: f"train {net} with {optimizer}",
        inference_step=lambda net: f"infer {net}",
    )
    task = tasks.make("gru", "smoke")
    assert loop.make_step(public, task, "train") == "train net with optimizer"
    assert loop.make_step(public, task, "infer") == "infer net"


@pytest.mark.parametrize(("ratios", "slower"), [([1.1] * 6, "the recipe is slower"), ([0.9] * 6, "no"), ([1.1], "no")])
def test_a_recipe_that_is_certainly_slower_is_named(peers, ratios, slower):
    assert peers.row(peers.PEERS[0], ratios)[-1] == slower


def test_what_is_stored_is_read(peers, tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "FILE", tmp_path / "peers.jsonl")
    assert peers.load() == {}
    line = '{"peer": "torch/torch/cnn/train", "ratio": 0.8}\n'
    peers.FILE.write_text(line * 2)
    assert peers.load() == {"torch/torch/cnn/train": [0.8, 0.8]}
    assert "| torch | cnn | train | plain PyTorch, as its tutorials | [? 0.800 ?] | 2 | no |" in peers.markdown(
        peers.load()
    )


@pytest.mark.parametrize(("name", "first"), [("cnn", True), ("cnn", False), ("gru", False), ("encoder", False)])
def test_the_batches_have_the_form_of_the_task(loop, name, first):
    task = tasks.make(name, "smoke")
    rows = loop.batches(task, channels_first=first)
    assert len(rows) == 8 and all(len(array) == task.batch for array in rows[0])
    if name == "cnn":
        assert rows[0][0].shape == (task.batch, *((3, 32, 32) if first else (32, 32, 3)))
