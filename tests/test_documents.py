"""docs/schemas.md describes the JSON documents as they are written."""

import argparse
import dataclasses
import json
from pathlib import Path

import jsonschema
import pytest

from stele import __main__ as entry_point
from stele import documents, environments, schema
from stele.commands import bisect, calibrate, capabilities, parity, releases
from stele.environments.packages import Difference
from stele.gate import baseline, calibration, correctness, model_parity, outcome, record, trial
from stele.gate.entries import Verdict
from stele.gate.gate import Gate
from stele.measuring import lock, store
from stele.measuring.content import NOTHING
from stele.measuring.settings import Settings
from stele.parity import accuracy, defaults
from stele.parity.capabilities import CapabilityStatus
from stele.parity.ladder import Finding, LadderResult
from stele.releases import frameworks, ledger, trend
from stele.releases.bisection import CandidateStatus
from stele.report import gate as gate_report
from stele.report import published, time_to_accuracy
from stele.report import releases as release_pages
from stele.statistics import Estimate
from stele.subjects import Cell, Comparison, Tasks
from stele.subjects.model import spec
from stele.subjects.model.inputs import Input
from stele.time_to_accuracy.prices import Price
from stele.time_to_accuracy.summary import summarise
from tests.support.documents import PAGE, assert_described, rows, validate
from tests.support.gates import answer, make_trial
from tests.support.pages import ROOT
from tests.support.runs import to_training

SETTINGS = Settings(device="cpu", threads=1)


def load(path):
    return json.loads(Path(path).read_text(encoding="utf-8"))


def test_the_page_is_that_of_the_code():
    assert documents.page() == PAGE


@pytest.mark.slow
def test_a_line_of_a_record_is_one_of_its_entries():
    accept = {"key": ["verdicts"], "verdicts": [], "named": [], "differences": [], "took": 0.0}
    validate(accept, "Gate record")
    with pytest.raises(jsonschema.ValidationError):
        validate({**accept, "took": "0"}, "Gate record")


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Work in an empty folder; return the path for --json."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STELE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "written.json"


def make_model(folder):
    (folder / "net.py").write_text("")
    return spec.parse("net.py:net", folder, inputs=(Input("ids", "int", (4, 16), 100),))


def say(line):
    pass


def test_the_list_of_environments_is_described(add_environment, capsys):
    add_environment("fake")
    assert entry_point.main(["env", "list", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert_described(content, "stele env list --json")
    assert_described(content["environments"][0], "stele env list --json", "Listed")


@pytest.mark.slow
@pytest.mark.parametrize("with_model", [False, True])
def test_the_report_of_a_gate_is_described(written, tmp_path, with_model):
    model = make_model(tmp_path) if with_model else None
    subject = make_trial(subject=model or Tasks(), differences=(Difference("numpy", "1.26.4", None),))
    log = record.create(tmp_path / "record.jsonl", trial.header(subject))
    verdict = Verdict("gru", "infer", "step", "PASS", "the same", Estimate(0.99, 1.0, 1.01), 6, 0.5)
    content = json.loads(gate_report.to_json(subject, log, [verdict]))
    assert_described(content, "stele gate --json", only=["model"] if with_model else [])
    assert_described(content["verdicts"][0], "Verdict")
    assert_described(content["differences"][0], "Difference")
    assert list(content["verdicts"][0]["ratio"]) == ["low", "middle", "high"]
    assert_described(content["settings"], "Settings")
    assert_described(content["content"], "Content")
    assert_described(content["machine"], "Machine")


@pytest.mark.parametrize("path", sorted((ROOT / "docs/results/gates").glob("*.json")), ids=lambda path: path.stem)
def test_a_committed_report_of_a_gate_is_described(path):
    content = load(path)
    assert_described(content, "stele gate --json")
    for verdict in content["verdicts"]:
        assert_described(verdict, "Verdict")


@pytest.mark.parametrize("only", [(), ("target",)])
def test_a_model_is_described(tmp_path, only):
    request = dataclasses.replace(make_model(tmp_path), inspected=bool(only)).as_request()
    assert_described(request, "Model", only=only)
    assert_described(request["inputs"][0], "Model", "InputFacts")


@pytest.mark.slow
@pytest.mark.parametrize("only", [(), ("model",)])
def test_the_header_of_a_record_is_described(written, tmp_path, only):
    subject = make_trial(subject=make_model(tmp_path) if only else Tasks())
    record.create(written, trial.header(subject))
    assert_described(load(written), "Gate record", only=only)


def test_the_last_line_of_a_record_is_described():
    verdict = Verdict("gru", "infer", "step", "PASS", "the same", Estimate(0.99, 1.0, 1.01), 6, 0.5)
    subject = make_trial(differences=(Difference("numpy", "1", None),), named=(Difference("jax", "1", "2"),))
    content = {"key": list(outcome.KEY), **schema.to_json(outcome.entry(subject, [verdict]))}
    assert_described(content, "Gate record", "LastEntry")
    assert_described(content["verdicts"][0], "Verdict")
    for part in ("named", "differences"):
        assert_described(content[part][0], "Difference")


def entry_of(path):
    return json.loads(path.read_text().splitlines()[-1])


@pytest.fixture
def log(written):
    return record.create(written, trial.header(make_trial()))


@pytest.mark.slow
def test_the_launches_of_a_record_are_described(written, log, run, monkeypatch):
    answer(monkeypatch, lambda sides, *_: dict.fromkeys(sides, run))
    correctness.train_arms(Gate(make_trial(), log), Cell("gru", "train"), 3)
    entry = entry_of(written)
    assert_described(entry, "Gate record", "LaunchEntry")
    assert entry["key"] == ["accuracy", "gru", 3] and list(entry["runs"]) == ["old", "new"]
    assert_described(entry["runs"]["old"], "Run", "Run")
    assert_described(entry["conditions"], "Conditions")


@pytest.mark.slow
def test_the_parity_of_a_record_is_described(written, log, monkeypatch):
    result = LadderResult([Finding(1, "agrees")], {}, "2026-11-22")
    monkeypatch.setattr(correctness.examination, "run_ladder", lambda *_, **__: result)
    correctness.parity_entry(Gate(make_trial(), log), "gru", "old")
    entry = entry_of(written)
    assert_described(entry, "Gate record", "ParityEntry")
    assert set(entry["findings"][0]) | {"title"} == set(rows("stele parity --json", "NamedFinding"))


@pytest.mark.slow
def test_the_parity_of_a_model_in_a_record_is_described(written, log, monkeypatch, tmp_path):
    entry = {"numbers": {}, "failure": None, "reads": NOTHING, "memory": 2**30}
    monkeypatch.setattr(model_parity, "entry_of", lambda *_: dict(entry))
    gate = Gate(make_trial(subject=make_model(tmp_path)), log)
    launches = model_parity.Launches(gate, model_parity.files_of(gate.trial, log))
    launches.entry("old")
    assert_described(entry_of(written), "Gate record", "ModelParityEntry", only=["memory"])
    launches.entry("defaults")
    assert_described(entry_of(written), "Gate record", "ModelParityEntry")


@pytest.mark.slow
def test_what_the_arms_say_about_a_model_is_described(written, log, tmp_path):
    trial = make_trial(subject=make_model(tmp_path), compared=Comparison(("ids is missing in NEW",)))
    model_parity.verdict(Gate(trial, log))
    assert_described(entry_of(written), "Gate record", "InspectionEntry")


def test_a_run_is_described(run, tmp_path):
    content = load(store.save(run, tmp_path))
    assert_described(content, "Run")
    assert_described(content["run"], "Run", "Run")


def test_the_results_of_time_to_accuracy_are_described(run):
    runs = [to_training(run)] * 2
    content = json.loads(time_to_accuracy.to_json([summarise(runs, 0.3, price=Price("x", 3.6))]))
    document = "stele time-to-accuracy --json"
    assert_described(content, document)
    [result] = content["results"]
    assert_described(result, document, "Result")
    for of_clock in result["times"].values():
        assert_described(of_clock, document, "Times")
    assert set(result["price"]) == {"name", "per_hour", "day", "gpu"}


def test_a_baseline_is_described(run, tmp_path):
    content = load(baseline.save([run], tmp_path))
    assert_described(content, "Baseline")
    assert_described(content["launches"][0], "Baseline", "LaunchSummary")
    assert_described(content["machine"], "Machine")


def test_the_report_of_a_bisection_is_described(written):
    bisect.report(written, [CandidateStatus("1.2", "bad", "5 % slower", 1.05)], ["1.2"])
    content = load(written)
    assert_described(content, "stele bisect --json")
    assert_described(content["steps"][0], "stele bisect --json", "CandidateStatus")


def test_the_report_of_a_night_is_described():
    rise = trend.Rise("track_step gru train tuned, jax", "jax-0.10.1", 1.0, 1.2, "abacus")
    content = json.loads(release_pages.to_json([rise], ["jax-0.10.1"]))
    assert_described(content, "stele nightly --json")
    assert_described(content["rises"][0], "stele nightly --json", "RiseEntry")


def test_the_report_of_a_calibration_is_described(tmp_path):
    log = record.create(tmp_path / "record.jsonl", trial.header(make_trial()))
    estimate = calibration.Sensitivity(6, 0.01, 0.02, 3.0, 0.0, None)
    content = json.loads(calibrate.to_json(log, {"gru infer": estimate}, []))
    assert_described(content, "stele calibrate --json")
    assert_described(content["cells"]["gru infer"], "stele calibrate --json", "Sensitivity")


def test_the_report_of_the_ladder_is_described():
    result = LadderResult([Finding(1, "agrees")], {}, "2026-11-22")
    written = parity.facts({(environments.ORACLE, "gru"): result}, SETTINGS)
    for content in (schema.parse(schema.document(written)), load(ROOT / "baselines/ladder.json")):
        assert_described(content, "stele parity --json")
        assert_described(content["recipes"][0], "stele parity --json", "RecipeResult")
        assert_described(content["recipes"][0]["rungs"][0], "stele parity --json", "NamedFinding")
        assert_described(content["settings"], "Settings")


def test_accuracy_bands_are_described(run, tmp_path):
    accuracy.add(run, [0.3] * 5, "5 seeds", tmp_path / "accuracy.json")
    for path in (tmp_path / "accuracy.json", accuracy.FILE):
        content = load(path)
        assert_described(content, "Accuracy bands")
        for of_task in content["bands"].values():
            for of_scale in of_task.values():
                for entry in of_scale.values():
                    assert_described(entry, "Accuracy bands", "BandEntry")


@pytest.mark.parametrize("path", sorted(defaults.FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_recorded_defaults_are_described(path):
    assert_described(load(path), "Recorded defaults")


def test_new_defaults_are_described(tmp_path, monkeypatch):
    monkeypatch.setattr(defaults, "ask", lambda environment: {"epsilon": 1e-7})
    _, path = defaults.record(environments.ORACLE, tmp_path)
    assert_described(load(path), "Recorded defaults")


def test_the_report_of_capabilities_is_described(written, monkeypatch):
    monkeypatch.setattr(capabilities.environments, "load_ready", lambda names: [environments.ORACLE])
    monkeypatch.setattr(
        capabilities.capabilities, "answers", lambda *_, **__: {"hooks": CapabilityStatus("no", "none")}
    )
    capabilities.check(capabilities.CapabilitiesOptions(json=written))
    content = load(written)
    assert_described(content, "stele capabilities --json")
    assert_described(content["environments"]["numpy"]["hooks"], "stele capabilities --json", "CapabilityStatus")


def test_the_numbers_of_a_release_are_described(monkeypatch, capsys):
    monkeypatch.setattr(ledger, "tag_of", lambda release: "abacus-1.1")
    monkeypatch.setattr(frameworks, "asv_environment", lambda tag, python: environments.ORACLE)
    monkeypatch.setattr(releases, "request_from", lambda *_: argparse.Namespace(cells=()))
    assert releases.measure_installed(releases.InstalledOptions(release="abacus-1.1", python=Path("python"))) == 2
    assert_described(json.loads(capsys.readouterr().out), "stele releases measure")


def test_published_results_are_described():
    content = load(published.FILE)
    assert_described(content, "Published results")
    for task in published.TITLES:
        for entry in content[task].values():
            assert_described(entry, "Published results", "Published")


def test_the_lock_of_the_machine_is_described(written):
    with lock.machine("a test", wait=True, say=say):
        content = load(lock.cache.folder() / lock.file_name())
    assert_described(content, "Lock of the machine")
