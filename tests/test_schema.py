"""Every kind of file has a schema number, and only the current one is read."""

import json
from pathlib import Path
from typing import TypedDict

import numpy
import pytest

from stele import schema
from stele.errors import SteleError
from stele.gate import baseline, record
from stele.measuring import store
from stele.parity import accuracy, defaults
from stele.parity.ladder import LadderFile

LADDER = Path(__file__).parents[1] / "baselines" / "ladder.json"


def test_a_run_is_written_with_its_schema(run, tmp_path):
    path = store.save(run, tmp_path)
    assert json.loads(path.read_text())["schema"] == 1
    assert store.load(path) == run


def test_a_run_without_conditions_loads(run, tmp_path):
    values = {key: value for key, value in schema.to_json(run).items() if key != "conditions"}
    (tmp_path / "run.json").write_text(json.dumps({"schema": 1, "run": values}))
    assert store.load(tmp_path / "run.json") == run


def test_the_recorded_ladder_loads():
    assert schema.of_document(schema.read(LADDER), LadderFile).recipes


READERS = {
    "run": lambda run, path: store.load(path),
    "record": lambda run, path: record.resume(path),
    "baseline": lambda run, path: baseline.read(path),
    "bands": lambda run, path: accuracy.reference_accuracies(run, path),
    "defaults": lambda run, path: defaults.read(path, "numpy"),
}
CONTENT = {"run": {}, "machine": {}, "launches": [], "bands": {}, "defaults": {}}


@pytest.mark.parametrize("number", [{"schema": 2}, {"format": 1}, {}])
@pytest.mark.parametrize("kind", READERS)
def test_a_file_of_another_schema_is_refused(run, tmp_path, kind, number):
    path = tmp_path / "file.json"
    path.write_text(json.dumps({**number, **CONTENT}))
    with pytest.raises(SteleError, match=r"file\.json.*this version reads schema 1"):
        READERS[kind](run, path)


@pytest.mark.parametrize("content", [{"schema": 2}, {"format": 1}, [], 3, None, {"schema": "1"}])
def test_another_schema_is_an_error(content):
    with pytest.raises(ValueError, match="schema|JSON object"):
        schema.unwrap(content)


class Named(TypedDict, total=False):
    name: str
    seconds: list[float | None]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"name": 3}, "name: Expected `str`, got `int`"),
        ({"seconds": [1, {}]}, r"seconds: Expected `float \| null`, got `object` - at `\$\[1\]`"),
    ],
)
def test_a_key_of_another_type_is_named(values, message):
    with pytest.raises(ValueError, match=message):
        schema.check_keys(values, Named)


def test_keys_may_be_missing_and_unknown():
    schema.check_keys({"seconds": [1, None, 0.5], "more": object()}, Named)


def test_json_that_is_nested_too_deeply_is_refused():
    with pytest.raises(ValueError, match="it is nested too deeply"):
        schema.parse("[" * 100_000)


def test_numbers_of_numpy_are_written_as_numbers():
    assert schema.encode({"step": numpy.float64(0.5), "steps": numpy.int64(3)}) == '{"step":0.5,"steps":3}'


def test_a_number_that_is_not_finite_is_written_as_null_and_not_read():
    assert schema.encode({"loss": float("nan")}) == '{"loss":null}'
    with pytest.raises(ValueError, match="malformed"):
        schema.parse("NaN")
