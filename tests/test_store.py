import dataclasses

import pytest

from stele.errors import SteleError
from stele.measuring import store


def test_a_run_is_unchanged_by_saving_and_loading(run, tmp_path):
    path = store.save(run, tmp_path / "new" / "folder")
    assert store.load(path) == run


def test_runs_are_loaded_oldest_first(run, tmp_path):
    later = dataclasses.replace(run, when="2026-01-03T00:00:00.000+00:00")
    store.save(later, tmp_path)
    store.save(run, tmp_path)
    assert store.load_all(tmp_path) == [run, later]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"schema": 99, "run": {}}',
        '{"format": 99, "run": {}}',
        '{"schema": 1, "run": {"a": 1}}',
    ],
)
def test_a_damaged_file_is_named(tmp_path, content):
    path = tmp_path / "damaged.json"
    path.write_text(content)
    with pytest.raises(SteleError, match=r"damaged\.json"):
        store.load(path)
