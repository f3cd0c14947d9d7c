"""docs/schemas.md describes the JSON documents as they are written; links and paths in the documentation exist."""

import argparse
import configparser
import dataclasses
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

import scripts
from pytest_stele.options import OPTIONS
from stele import __main__ as entry_point
from stele import documents, environments
from stele.commands import bisect, calibrate, capabilities, examples, parity, releases
from stele.environments.packages import Difference
from stele.gate import baseline, calibration, correctness, model_parity, outcome, record, trial
from stele.gate.metrics import METRICS
from stele.gate.trial import Cell, Trial
from stele.gate.verdict import Verdict
from stele.measuring import lock, store
from stele.measuring.content import NOTHING
from stele.measuring.settings import Settings
from stele.models import spec
from stele.models.comparison import Comparison
from stele.models.inputs import Input
from stele.parity import accuracy, defaults
from stele.parity.capabilities import Answer
from stele.parity.ladder import Finding, LadderResult
from stele.releases import frameworks, ledger, trend
from stele.releases.bisection import Answer as Candidate
from stele.report import gate as gate_report
from stele.report import published, time_to_accuracy
from stele.report import releases as release_pages
from stele.statistics import Estimate
from stele.time_to_accuracy.prices import Price
from stele.time_to_accuracy.summary import summarise

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/schemas.md").read_text(encoding="utf-8")
SETTINGS = Settings(device="cpu", threads=1)


# the page


def rows(document, part=None):
    """Return {key: meaning} of the table of a document, or of the table below the heading ``part`` in it."""
    section = re.split(rf"^## {re.escape(document)}\n", PAGE, flags=re.M)[1].split("\n## ")[0]
    if part is not None:
        section = re.split(rf"^### {re.escape(part)}\n", section, flags=re.M)[1]
    section = section.split("\n### ")[0]
    lines = [line.split("|")[1:-1] for line in section.splitlines() if line.startswith("| `")]
    pairs = [(key, meaning) for keys, _, _, meaning in lines for key in re.findall(r"`([^`]+)`", keys)]
    assert len(dict(pairs)) == len(pairs), f"a key is listed twice in {document}"
    return {key: meaning.strip() for key, meaning in pairs}


def assert_described(content, document, part=None, *, only=()):
    """Assert that the keys are those of the table. Keys that it calls optional have to be in ``only`` if present."""
    table = rows(document, part)
    optional = {key for key, meaning in table.items() if meaning.startswith("Only ")}
    assert set(only) <= optional
    assert set(content) == (set(table) - optional) | set(only)
    validate(content, document, part)


def validate(content, document, part=None):
    """Assert that the values have the types that ``stele schema`` prints."""
    [name] = [name for name, one in documents.documents().items() if one.first.title == document]
    schema = documents.json_schema(name)
    if part is not None:
        schema = {**schema["$defs"][part], "$defs": schema["$defs"]}
    jsonschema.validate(content, schema)


def load(path):
    return json.loads(Path(path).read_text(encoding="utf-8"))


def test_the_page_is_that_of_the_code():
    assert documents.page() == PAGE


@pytest.mark.parametrize("name", documents.documents())
def test_each_schema_is_valid(name, capsys):
    assert entry_point.main(["schema", name]) == 0
    jsonschema.Draft202012Validator.check_schema(json.loads(capsys.readouterr().out))


def test_the_documents_are_listed(capsys):
    assert entry_point.main(["schema"]) == 0
    assert re.search(r"^gate +stele gate --json$", capsys.readouterr().out, re.M)


def test_an_unknown_document_is_an_error(capsys):
    assert entry_point.main(["schema", "gat"]) == 2
    assert "Unknown document 'gat'" in capsys.readouterr().err


def test_a_line_of_a_record_is_one_of_its_entries():
    accept = {"key": ["verdicts"], "verdicts": [], "named": [], "differences": [], "took": 0.0}
    validate(accept, "Gate record")
    with pytest.raises(jsonschema.ValidationError):
        validate({**accept, "took": "0"}, "Gate record")


# what is written


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Work in an empty folder; return the path for --json."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STELE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "written.json"


def make_trial(model=None, **facts):
    return Trial(
        old=environments.ORACLE,
        new=environments.ORACLE,
        cells=(Cell("gru", "infer"),),
        metrics=METRICS,
        settings=SETTINGS,
        seed=0,
        budget=60,
        model=model,
        **facts,
    )


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
    assert_described(content["environments"][0], "stele env list --json", "environments")


@pytest.mark.parametrize("with_model", [False, True])
def test_the_report_of_a_gate_is_described(written, tmp_path, with_model):
    model = make_model(tmp_path) if with_model else None
    subject = make_trial(model, differences=(Difference("numpy", "1.26.4", None),))
    log = record.create(tmp_path / "record.jsonl", trial.header(subject))
    verdict = Verdict("gru", "infer", "step", "PASS", "the same", Estimate(0.99, 1.0, 1.01), 6, 0.5)
    content = json.loads(gate_report.to_json(subject, log, [verdict]))
    only = {"differences", "tolerances", "content", *(["model"] if with_model else [])}
    assert_described(content, "stele gate --json", only=only)
    assert_described(content["verdicts"][0], "stele gate --json", "verdicts", only=("passes", "needs"))
    assert_described(content["differences"][0], "stele gate --json", "differences")
    assert list(content["verdicts"][0]["ratio"]) == ["low", "middle", "high"]
    assert_described(content["settings"], "Settings", only=("seed",))
    assert_described(content["content"], "Content")
    assert_described(content["machine"], "Machine", only=("name", "load"))


@pytest.mark.parametrize(
    "path", sorted((ROOT / "docs/results/gates").glob("*.json")), ids=lambda path: path.stem
)
def test_a_committed_report_of_a_gate_is_described(path):
    content = load(path)
    newer = {"differences", "tolerances", "code"} & set(content)  # older ones have none
    assert_described(content, "stele gate --json", only=newer)
    for verdict in content["verdicts"]:
        verdict.pop("pairs", None)
        assert_described(verdict, "stele gate --json", "verdicts", only={"passes", "needs"} & set(verdict))


@pytest.mark.parametrize("only", [(), ("target",)])
def test_a_model_is_described(tmp_path, only):
    request = dataclasses.replace(make_model(tmp_path), inspected=bool(only)).as_request()
    assert_described(request, "Model", only=only)
    assert all(f"`{key}`" in rows("Model")["inputs"] for key in request["inputs"][0])


@pytest.mark.parametrize("only", [(), ("model",)])
def test_the_header_of_a_record_is_described(written, tmp_path, only):
    subject = make_trial(make_model(tmp_path) if only else None)
    record.create(written, trial.header(subject))
    assert_described(load(written), "Gate record", only=only)


def test_the_last_line_of_a_record_is_described():
    verdict = Verdict("gru", "infer", "step", "PASS", "the same", Estimate(0.99, 1.0, 1.01), 6, 0.5)
    subject = make_trial(differences=(Difference("numpy", "1", None),), named=(Difference("jax", "1", "2"),))
    content = {"key": list(outcome.KEY), **json.loads(json.dumps(outcome.entry(subject, [verdict])))}
    assert_described(content, "Gate record", "last")
    assert_described(content["verdicts"][0], "stele gate --json", "verdicts", only=("passes", "needs"))
    for part in ("named", "differences"):
        assert_described(content[part][0], "stele gate --json", "differences")


def entry_of(path):
    return json.loads(path.read_text().splitlines()[-1])


@pytest.fixture
def log(written):
    return record.create(written, trial.header(make_trial()))


def test_the_launches_of_a_record_are_described(written, log, run, monkeypatch):
    arms = ("old", "new")
    monkeypatch.setattr("stele.gate.launcher.measure_arms", lambda *_, **__: dict.fromkeys(arms, run))
    correctness.train_arms(make_trial(), log, Cell("gru", "train"), 3, say)
    entry = entry_of(written)
    assert_described(entry, "Gate record", "launch")
    assert entry["key"] == ["accuracy", "gru", 3] and list(entry["runs"]) == ["old", "new"]
    assert_described(entry["runs"]["old"], "Run", "run")
    assert_described(entry["conditions"], "Gate record", "conditions")


def test_the_parity_of_a_record_is_described(written, log, monkeypatch):
    result = LadderResult([Finding(1, "agrees")], {}, "2026-11-22")
    monkeypatch.setattr(correctness.examination, "run_ladder", lambda *_, **__: result)
    correctness.parity_findings(make_trial(), log, "gru", "old", say)
    entry = entry_of(written)
    assert_described(entry, "Gate record", "parity")
    assert set(entry["findings"][0]) | {"title"} == set(rows("stele parity --json", "rungs"))


def test_the_parity_of_a_model_in_a_record_is_described(written, log, monkeypatch):
    monkeypatch.setattr(model_parity, "launch_and_ask", lambda *_: ({}, NOTHING))
    model_parity.entry(make_trial(), log, "old", SETTINGS, lambda live: {}, say)
    assert_described(entry_of(written), "Gate record", "model parity")
    model_parity.random_defaults(make_trial(), log)
    assert_described(entry_of(written), "Gate record", "model parity")


def test_what_the_arms_say_about_a_model_is_described(written, log, tmp_path):
    trial = dataclasses.replace(make_trial(), compared=Comparison(("ids is missing in NEW",)))
    model_parity.asked_verdict(trial, make_model(tmp_path), log)
    assert_described(entry_of(written), "Gate record", "model inspection")


def test_a_run_is_described(run, tmp_path):
    content = load(store.save(run, tmp_path))
    assert_described(content, "Run")
    assert_described(content["run"], "Run", "run")


def test_the_results_of_time_to_accuracy_are_described(run):
    training = {"accuracies": (0.6,), "evaluation_seconds": (1.0,), "compile_seconds": 0.0, "losses": (1.0,)}
    times = {"data_seconds": 0.5, "elapsed": 4.0, "phase": "time-to-accuracy", "seconds": (2.0,)}
    runs = [dataclasses.replace(run, **training, **times)] * 2
    content = json.loads(time_to_accuracy.to_json([summarise(runs, 0.3, price=Price("x", 3.6))]))
    document = "stele time-to-accuracy --json"
    assert_described(content, document)
    [result] = content["results"]
    assert_described(result, document, "results")
    for of_clock in result["times"].values():
        assert_described(of_clock, document, "times")
    assert set(result["price"]) == {"name", "per_hour", "day", "gpu"}


def test_a_baseline_is_described(run, tmp_path):
    content = load(baseline.save([run], tmp_path))
    assert_described(content, "Baseline")
    assert_described(content["launches"][0], "Baseline", "launches")
    assert_described(content["machine"], "Machine")


def test_the_report_of_a_bisection_is_described(written):
    bisect.report(argparse.Namespace(json=written), [Candidate("1.2", "bad", "5 % slower", 1.05)], ["1.2"])
    content = load(written)
    assert_described(content, "stele bisect --json")
    assert_described(content["steps"][0], "stele bisect --json", "steps")


def test_the_report_of_a_night_is_described():
    rise = trend.Rise("track_step gru train tuned, jax", "jax-0.10.1", 1.0, 1.2, "abacus")
    content = json.loads(release_pages.to_json([rise], ["jax-0.10.1"]))
    assert_described(content, "stele nightly --json")
    assert_described(content["rises"][0], "stele nightly --json", "rises")


def test_the_report_of_a_calibration_is_described(tmp_path):
    log = record.create(tmp_path / "record.jsonl", trial.header(make_trial()))
    estimate = calibration.Sensitivity(6, 0.01, 0.02, 3.0, 0.0, None)
    content = json.loads(calibrate.to_json(log, {"gru infer": estimate}, []))
    assert_described(content, "stele calibrate --json")
    assert_described(content["cells"]["gru infer"], "stele calibrate --json", "cells")


def test_the_report_of_the_ladder_is_described():
    result = LadderResult([Finding(1, "agrees")], {}, "2026-11-22")
    written = parity.facts({(environments.ORACLE, "gru"): result}, SETTINGS)
    for content in (written, load(ROOT / "baselines/ladder.json")):
        assert_described(content, "stele parity --json")
        assert_described(content["recipes"][0], "stele parity --json", "recipes")
        assert_described(content["recipes"][0]["rungs"][0], "stele parity --json", "rungs")
        assert_described(content["settings"], "Settings", only=("seed",))


def test_accuracy_bands_are_described(run, tmp_path):
    accuracy.add(run, [0.3] * 5, "5 seeds", tmp_path / "accuracy.json")
    for path in (tmp_path / "accuracy.json", accuracy.FILE):
        content = load(path)
        assert_described(content, "Accuracy bands")
        for of_task in content["bands"].values():
            for of_scale in of_task.values():
                for entry in of_scale.values():
                    assert_described(entry, "Accuracy bands", "bands")


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
        capabilities.capabilities, "answers", lambda *_, **__: {"hooks": Answer("no", "none")}
    )
    capabilities.check(argparse.Namespace(framework=None, json=written, write=None))
    content = load(written)
    assert_described(content, "stele capabilities --json")
    assert_described(content["environments"]["numpy"]["hooks"], "stele capabilities --json", "answer")


def test_the_numbers_of_a_release_are_described(monkeypatch, capsys):
    monkeypatch.setattr(ledger, "tag_of", lambda release: "abacus-1.1")
    monkeypatch.setattr(frameworks, "asv_environment", lambda tag, python: environments.ORACLE)
    monkeypatch.setattr(releases, "request_from", lambda arguments: argparse.Namespace(cells=()))
    assert releases.measure_installed(argparse.Namespace(release="abacus-1.1", python=Path("python"))) == 2
    assert_described(json.loads(capsys.readouterr().out), "stele releases measure")


def test_published_results_are_described():
    content = load(published.FILE)
    assert_described(content, "Published results")
    for task in published.TITLES:
        for entry in content[task].values():
            assert_described(entry, "Published results", "published")


def test_the_lock_of_the_machine_is_described(written):
    with lock.machine("a test", wait=True, say=say):
        content = load(lock.cache.folder() / lock.FILE)
    assert_described(content, "Lock of the machine")


# links and paths

DOCS = sorted([*(ROOT / "docs").glob("*.md"), *(ROOT / "docs/results").glob("*.md")])
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS]
FOLDERS = ("src", "docs", "tests", "perf_tests", "checks", "studies", "baselines", "fixtures")


def prose(page):
    """Return the text of a page without blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def paths(text):
    """Return the paths in backticks; those with braces, as in src/{a,b}.py, once for each name."""
    for path in re.findall(rf"`((?:{'|'.join(FOLDERS)})/[^`\s]*)`", text):
        before, brace, rest = path.partition("{")
        names, _, after = rest.partition("}")
        yield from (before + name + after for name in names.split(",")) if brace else (path,)


def exists(path):
    """Return whether a path in the checkout exists; <name> stands for any name."""
    return any(ROOT.glob(re.sub("<[^>]+>", "*", path).rstrip("/")))


def test_the_page_of_commands_names_each_page_that_was_measured():
    named = (ROOT / "docs" / "measurements.md").read_text(encoding="utf-8")
    measured = [page.name for page in PAGES if "\n<!-- generated by: " in page.read_text(encoding="utf-8")]
    assert [name for name in measured if name not in named] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_in_the_documentation_exists(page):
    assert [path for path in paths(prose(page)) if not exists(path)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_relative_link_in_the_documentation_leads_to_a_file(page):
    links = re.findall(r"\]\(([^)\s]+)\)", prose(page))
    files = [link.partition("#")[0] for link in links if not re.match(r"[a-z]+:|#", link)]
    assert [file for file in files if not (page.parent / file).exists()] == []


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("`src/stele/text.py`", []),
        ("`src/stele/parity/golden/<task>.npz`", []),
        ("`src/stele/environments/{pins,builds}.py`", []),
        ("`src/stele/house.py` and `docs/`", ["src/stele/house.py"]),
        ("`src/stele/environments/{pins,doors}.py`", ["src/stele/environments/doors.py"]),
        ("`baselines/<nothing>.toml`", ["baselines/<nothing>.toml"]),
    ],
)
def test_a_path_that_does_not_exist_is_found(text, missing):
    assert [path for path in paths(text) if not exists(path)] == missing


# commands


SHOWN = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *DOCS,
]
SHOWN += sorted((ROOT / "examples").glob("*/README.md"))
STANDS_FOR_OTHERS = re.compile(
    r"\.\.\.|…|\||\[|--option|COMMAND"
)  # no command, but a description of commands


def code(page):
    """Yield the joined lines of blocks of code, and the code within sentences; and whether it is a block."""
    text = page.read_text(encoding="utf-8")
    for block in re.findall(r"^```\w*\n(.*?)^```", text, flags=re.M | re.S):
        yield from ((line, True) for line in block.replace("\\\n", " ").splitlines())
    yield from ((text, False) for text in re.findall(r"`([^`]+)`", re.sub(r"\s*\n\s*", " ", prose(page))))


def commands(program):
    """Return the arguments of each command of a program that a page shows, and whether it is in a block of code."""
    found = []
    for page in SHOWN:
        for line, block in code(page):
            for part in re.split(r"&&|\|\||;|\$ ", line.partition("  #")[0]):
                words = rf"^(?:\s*- (?:run: )?|\s*run: |[A-Z_]+=\S+ |\S*/|\s*)*{program} (.*)"
                match = re.match(words, part.strip().removesuffix(" || status=$?"))
                if match and not STANDS_FOR_OTHERS.search(match[1]):
                    found.append(
                        pytest.param(match[1].partition(" > ")[0], block, id=f"{page.name}: {match[1]}"[:90])
                    )
    return found


@pytest.mark.parametrize("arguments, block", commands("stele"))
def test_every_command_that_is_shown_is_accepted(arguments, block, capsys):
    """A sentence may name an option without its value, such as `stele nightly --json`; a block may not."""
    words = shlex.split(arguments)
    if not block and " ".join(words) in dict(examples.parsers(entry_point.parser())):
        return
    try:
        entry_point.parser().parse_args(words)
    except SystemExit as error:
        missing = r"arguments are required|expected (one|at least one) argument"
        assert error.code == 0 or (not block and re.search(missing, capsys.readouterr().err))


@pytest.fixture(scope="module")
def options_of_pytest():
    """The options that pytest has in this repository."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--help"], cwd=ROOT, capture_output=True, text=True
    )
    return set(re.findall(r"--[a-z][\w-]*", done.stdout))


@pytest.mark.parametrize("arguments, block", commands("pytest"))
def test_every_option_of_pytest_that_is_shown_exists(arguments, block, options_of_pytest):
    typed = {word.partition("=")[0] for word in shlex.split(arguments) if word.startswith("--")}
    assert typed <= options_of_pytest


COLLECTED = [
    one
    for one in commands("pytest")
    if one.values[1] and one.values[0] != "tests" and not one.values[0].startswith("recipes")
]


@pytest.mark.parametrize("arguments, _", COLLECTED)
def test_every_command_of_pytest_that_is_shown_collects_its_tests(arguments, _, tmp_path):
    """What they run is the suite itself; test_your_recipe.py runs those of docs/your-recipe.md."""
    command = [sys.executable, "-m", "pytest", *shlex.split(arguments), "--collect-only", "-q"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", "-n", "0"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("arguments, block", commands("tox"))
def test_every_environment_of_tox_that_is_shown_exists(arguments, block):
    tox = configparser.ConfigParser()
    tox.read(ROOT / "tox.ini")
    words = shlex.split(arguments)
    assert f"testenv:{words[words.index('-e') + 1]}" in tox


def test_the_pages_show_commands_of_each_kind():
    assert len(commands("stele")) > 100 and len(commands("pytest")) > 10 and len(commands("tox")) > 5


def test_the_generated_reference_has_every_option_and_every_exit_code():
    reference = scripts.load(ROOT / "docs/reference.py", "reference")
    assert all(f"`{option.flag}" in reference.options() for option in OPTIONS)
    codes = reference.exit_codes()
    general = codes.split("\n## ")[0]
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", general, re.M)] == [0, 1, 2, 3, 4, 130]
    assert "## stele gate\n" in codes and "| 3 | the budget ran out |" in codes.split("## stele nightly")[1]


def test_every_page_is_in_the_site():
    listed = set(re.findall(r"^([\w/-]+)$", (ROOT / "docs/index.md").read_text(), re.M))
    assert {str(page.relative_to(ROOT / "docs").with_suffix("")) for page in DOCS} - {"index"} <= listed
