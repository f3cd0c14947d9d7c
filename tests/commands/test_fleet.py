"""``stele fleet``: messages before anything is measured."""

import sys

import pytest

from stele import __main__ as entry_point


def test_no_command_of_a_fleet_is_one_message(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert entry_point.main(["fleet", "status"]) == 2
    assert "Start one with: stele fleet run" in capsys.readouterr().err


# ---- bad input


def test_no_ray_is_one_message(monkeypatch, capsys, tmp_path, add_environment):
    add_environment("steady", seconds=[0.5, 0.1])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "ray", None)
    assert entry_point.main(["fleet", "run", "--framework=steady", "--task=gru", "--scale=smoke"]) == 2
    assert capsys.readouterr().err.endswith("Ray is not installed. Run: pip install 'pytest-stele[fleet]'\n")


def test_no_slurm_is_one_message(monkeypatch, capsys, tmp_path, add_environment):
    add_environment("steady", seconds=[0.5, 0.1])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert entry_point.main(["fleet", "run", "--framework=steady", "--task=gru", "--scale=smoke", "--slurm"]) == 2
    assert "Slurm is not installed on this machine" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["10.0.0.5:6379", "--head", "10.0.0.5"]])
def test_join_needs_one_address(words, capsys):
    assert entry_point.main(["fleet", "join", *words]) == 2
    assert "Name the address of the first node" in capsys.readouterr().err


def test_joining_needs_the_token(monkeypatch, capsys):
    monkeypatch.delenv("RAY_AUTH_TOKEN", raising=False)
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    assert entry_point.main(["fleet", "join", "10.0.0.5:6379"]) == 2
    assert "RAY_AUTH_TOKEN is not set" in capsys.readouterr().err
