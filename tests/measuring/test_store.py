import pytest

from stele.errors import SteleError
from stele.measuring import store
from tests.support.runs import changed


def test_a_run_is_unchanged_by_saving_and_loading(run, tmp_path):
    path = store.save(run, tmp_path / "new" / "folder")
    assert store.load(path) == run


def test_runs_are_loaded_oldest_first(run, tmp_path):
    later = changed(run, when="2026-01-03T00:00:00.000+00:00")
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


HOSTILE = "a\x1b[31mb\x00c\u202ed\r\ne"


def test_a_stored_run_is_shown_without_control_characters(run, tmp_path):
    path = store.save(changed(run, label=HOSTILE), tmp_path)
    assert store.load(path).label == "a?[31mb?c?d??e"


def test_many_runs_are_read_one_at_a_time(run, tmp_path):
    for number in range(3):
        store.save(changed(run, environment=f"torch-{number}"), tmp_path)
    runs = store.load_each(tmp_path)
    assert next(runs).environment == "torch-0"
    for path in tmp_path.iterdir():
        path.unlink()
    with pytest.raises(SteleError):  # it has not read the second file yet
        next(runs)
