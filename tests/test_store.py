import dataclasses

import pytest

from stele import store
from stele.errors import SteleError


def test_a_run_survives_as_a_file(run, tmp_path):
    path = store.save(run, tmp_path / "new" / "folder")
    assert store.load(path) == run


def test_runs_are_loaded_the_oldest_first(run, tmp_path):
    later = dataclasses.replace(run, when="2026-01-03T00:00:00.000+00:00")
    store.save(later, tmp_path)
    store.save(run, tmp_path)
    assert store.load_all(tmp_path) == [run, later]


def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "run.json"
    store.write(path, "old")

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(store.Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.write(path, "new")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("run.json", "old")]


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"format": 99, "run": {}}', '{"format": 1, "run": {"a": 1}}']
)
def test_a_damaged_file_is_named(tmp_path, content):
    path = tmp_path / "damaged.json"
    path.write_text(content)
    with pytest.raises(SteleError, match=r"damaged\.json"):
        store.load(path)
