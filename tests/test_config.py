"""The variables that begin with STELE_."""

from pathlib import Path

import platformdirs
import pytest

from stele import config
from stele.__main__ import main
from stele.config import Config

FOLDERS = {"STELE_CACHE": "cache", "STELE_DATA": "data", "STELE_ENVIRONMENTS": "environments",
           "STELE_LOCK_FOLDER": "lock_folder"}  # fmt: skip


def test_without_variables_only_the_cache_folder_of_the_user_is_set():
    assert config.read({}) == Config(cache=platformdirs.user_cache_path("stele", appauthor=False))


@pytest.mark.parametrize("variable", [*FOLDERS, "STELE_INDEX"])
def test_an_empty_variable_is_not_set(variable):
    assert config.read({variable: ""}) == config.read({})


@pytest.mark.parametrize(("variable", "name"), FOLDERS.items())
def test_a_folder_is_absolute(variable, name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert getattr(config.read({variable: "folder"}), name) == Path.cwd() / "folder"


@pytest.mark.parametrize(("value", "offline"), [("1", True), ("yes", True), ("0", False), ("", False)])
def test_downloads_are_off_unless_the_variable_is_empty_or_zero(value, offline):
    assert config.read({"STELE_OFFLINE": value}).offline is offline


def test_an_index_is_an_address_and_no_folder():
    assert config.read({"STELE_INDEX": "https://index/simple"}).index == "https://index/simple"


def test_a_process_keeps_the_variables_with_which_it_started(monkeypatch, tmp_path):
    monkeypatch.setenv("STELE_DATA", str(tmp_path))
    with config.hold():
        monkeypatch.setenv("STELE_DATA", "/elsewhere")
        assert config.current().data == tmp_path
    assert config.current().data == Path("/elsewhere")


def test_a_command_reads_the_variables_once(monkeypatch, capsys):
    count = []
    monkeypatch.setattr(config, "read", lambda: count.append(1) or Config(cache=Path("/cache")))
    assert main(["env", "list"]) == 0
    assert len(count) == 1
