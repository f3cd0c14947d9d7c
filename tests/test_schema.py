"""Files that are older than the schema number still load: one test for each kind of file."""

import dataclasses
import json
from importlib import metadata
from pathlib import Path

import pytest

from stele import __main__ as entry_point
from stele import environments, schema
from stele.gate import baseline, record
from stele.measuring import store
from stele.parity import accuracy, defaults, golden_numbers

FINDING = {"rung": 6, "word": "breaks", "sentence": "far", "error": 0.3, "limit": 1e-4, "where": "w"}


def test_a_run_of_format_1_loads(run, tmp_path):
    (tmp_path / "run.json").write_text(json.dumps({"format": 1, "run": run.to_dict()}))
    assert store.load(tmp_path / "run.json") == run


def test_a_run_is_written_with_its_schema(run, tmp_path):
    assert json.loads(store.save(run, tmp_path).read_text())["schema"] == 1


def test_a_run_without_conditions_loads(run, tmp_path):
    values = {key: value for key, value in run.to_dict().items() if key != "conditions"}
    (tmp_path / "run.json").write_text(json.dumps({"schema": 1, "run": values}))
    assert store.load(tmp_path / "run.json") == run


def test_a_run_with_a_version_that_is_no_text_loads(run, tmp_path):
    values = {**run.to_dict(), "versions": {"mxnet": "1.9.1", "onednn": True, "cudnn": 91002, "cuda": None}}
    (tmp_path / "run.json").write_text(json.dumps({"schema": 1, "run": values}))
    versions = {"mxnet": "1.9.1", "onednn": "True", "cudnn": "91002", "cuda": None}
    assert store.load(tmp_path / "run.json").versions == versions


def test_the_recorded_ladder_loads():
    path = Path(__file__).parents[1] / "baselines" / "ladder.json"
    assert schema.convert_ladder_file(schema.read(path))["recipes"]


def test_a_record_of_format_2_loads_with_its_control(run, tmp_path):
    path = tmp_path / "record.jsonl"
    launch = {
        "key": ["long", "gru infer", 0],
        "runs": {"old": run.to_dict(), "again": run.to_dict()},
        "failures": {"again": []},
        "took": 1,
    }
    parity = {"key": ["parity", "gru", "new"], "findings": [FINDING], "took": 1}
    lines = [{"format": 2, "machine": {}, "old": "a"}, launch, parity]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    entries = record.resume(path)
    assert entries.header == {"machine": {}, "old": "a"}
    assert set(entries.get("long", "gru infer", 0)["runs"]) == {"old", "control"}
    [finding] = entries.get("parity", "gru", "new")["findings"]
    assert (finding["status"], finding["message"]) == ("differs", "far")


def test_a_baseline_of_format_1_loads(run, tmp_path):
    path = tmp_path / "baseline.json"
    path.write_text(json.dumps({"format": 1, "launches": [{}]}))
    assert baseline.read(path) == {"launches": [{}]}


def test_golden_numbers_without_a_schema_load(tmp_path):
    (tmp_path / "gru.json").write_text(json.dumps({"task": "0f", "moves": {"1": {}}}))
    numbers = golden_numbers.load("gru", folder=tmp_path)
    assert (numbers["task"], numbers["updates"]) == ("0f", {"1": {}})


def test_bands_without_a_schema_load(run, tmp_path):
    path = tmp_path / "accuracy.json"
    path.write_text(
        json.dumps({"cnn": {"quick": {run.data["fingerprint"]: {"accuracies": [0.3] * 5, "source": ""}}}})
    )
    assert accuracy.reference_accuracies(run, path) == [0.3] * 5
    accuracy.add(dataclasses.replace(run, scale="smoke"), [0.1] * 5, "5 seeds", path)
    assert set(json.loads(path.read_text())["bands"]["cnn"]) == {"quick", "smoke"}


def test_defaults_without_a_schema_load(tmp_path):
    numpy = dataclasses.replace(environments.ORACLE, requirements={"numpy": "its release is then known"})
    defaults.record_path(numpy, metadata.version("numpy"), tmp_path).write_text(json.dumps({"epsilon": 1e-7}))
    assert defaults.load(numpy, tmp_path) == {"epsilon": 1e-7}


def test_a_ladder_file_without_a_schema_is_merged(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    settings = {"device": "cpu", "precision": "fp32", "threads": 1, "deterministic": False, "seed": 0}
    rung = {**FINDING, "title": "moves"}
    recipe = {"framework": "torch", "versions": {}, "day": "2026-11-22", "task": "gru", "rungs": [rung]}
    (tmp_path / "old.json").write_text(
        json.dumps({"settings": settings, "epsilon": 1e-7, "recipes": [recipe]})
    )
    assert entry_point.main(["parity", "--merge", "old.json", "--json", "new.json"]) == 1
    content = json.loads((tmp_path / "new.json").read_text())
    [written] = content["recipes"][0]["rungs"]
    assert content["schema"] == 1
    assert (written["status"], written["title"], written["message"]) == ("differs", "updates", "far")


@pytest.mark.parametrize("content", [{"schema": 2}, {"format": 3}, [], 3, None, {"schema": "1"}])
def test_another_schema_is_an_error(content):
    with pytest.raises(ValueError, match="schema|format|JSON object"):
        schema.unwrap(content, formats=(1,))
