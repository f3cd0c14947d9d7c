"""What a report reads, and what it says of files that it cannot read."""

import json
import re

import pytest

from stele.gate import replay
from stele.measuring import store
from tests.support import gate_records
from tests.support.reports import EXPLANATION, REGRESSED, report, stele


@pytest.mark.parametrize(
    "change, message",
    [
        ({"cells": 3}, "a.json is not an explanation: Expected `object`, got `int` - at `$.cells`"),
        ({"cells": {"cnn train": {}}}, "missing required field `old` - at `$.cells[...]`"),
        ({"differs": [1]}, "Expected `str`, got `int`"),
        ({"schema": 2}, "schema 2 is not supported"),
        ({"cells": {"x": {**EXPLANATION["cells"]["cnn train"], "old": 0}}}, "a step takes no time"),
    ],
)
def test_an_explanation_that_is_none_is_an_error(folder, capsys, change, message):
    (folder / "a.json").write_text(json.dumps({**EXPLANATION, **change}))
    assert stele(folder / "a.json") == 2
    assert message in capsys.readouterr().err


def test_a_damaged_site_is_a_note(folder, run):
    (folder / "html/graphs").mkdir(parents=True)
    (folder / "html/index.json").write_text("[]")
    store.save(run, folder)
    assert "html is left out: it is not a complete site of releases" in report(folder).notes[0]


@pytest.mark.parametrize(
    "name, content, message",
    [
        (
            "a.json",
            "{}",
            "a.json is not a document that Stele reports. A report shows gates, explanations, Runs",
        ),
        ("a.json", "{", "a.json cannot be read"),
        ("a.json", "[" * 100_000, "a.json cannot be read: it is nested too deeply"),
        (
            "a.json",
            '{"schema": 2, "run": {}}',
            "schema 2 is not supported; this version reads schema 1. Update pytest-stele",
        ),
        ("a.json", '{"schema": 2, "verdicts": []}', "schema 2 is not supported"),
        ("a.json", '{"schema": 1, "verdicts": []}', "a.json is not a gate: Object missing required field `old`"),
        ("a.json", '{"schema": 1, "recipes": 3}', "a.json cannot be read"),
        ("a.jsonl", "", "a.jsonl is not a record of a gate"),
        ("a.jsonl", '{"level": "info"}\n', "a.jsonl is not a record of a gate"),
        ("a.jsonl", '{"schema": 2, "cells": [], "machine": {}}\n', "schema 2 is not supported"),
        (
            "a.jsonl",
            '{"schema": 1, "cells": [], "machine": {}}\n',
            "a.jsonl is not a gate: Object missing required field",
        ),
        ("a.jsonl", '{"runs": {"a": {}}, "failed": {}}\n', "missing required field `steps`"),
    ],
)
def test_a_file_that_cannot_be_shown_is_named(folder, capsys, name, content, message):
    (folder / name).write_text(content)
    assert stele(folder / name) == 2
    err = capsys.readouterr().err
    assert message in err and "Traceback" not in err


@pytest.mark.parametrize("name", ["missing.json", "missing.jsonl"])
def test_a_file_that_does_not_exist_is_named(folder, capsys, name):
    assert stele(name) == 2
    assert f"{name} does not exist. Name a record" in capsys.readouterr().err


def test_a_foreign_file_in_a_folder_is_ignored_and_a_damaged_one_is_a_note(folder, run, capsys):
    store.save(run, folder)
    (folder / "package.json").write_text("{}")
    (folder / "broken.json").write_text('{"schema": 1, "run": {}}')
    assert stele(folder) == 0
    err = capsys.readouterr().err
    assert "Left out: " in err and "broken.json" in err and "package.json" not in err


def test_a_damaged_file_that_is_named_is_an_error_beside_others_that_are_not(folder, run, capsys):
    store.save(run, folder / "runs")
    (folder / "broken.json").write_text('{"schema": 1, "run": {}}')
    assert stele(folder / "runs", folder / "broken.json") == 2
    assert "broken.json cannot be read: Object missing required field" in capsys.readouterr().err


def test_an_incomplete_last_line_is_left_out_and_stays_in_the_file(folder, capsys):
    path = gate_records.gate(folder / "a.jsonl")
    whole = path.read_text()
    path.write_text(whole[:-100])
    assert stele(path) == 0
    assert path.read_text() == whole[:-100]


def test_a_damaged_line_of_a_record_is_named(folder, capsys):
    path = gate_records.gate(folder / "a.jsonl", passes=1)
    lines = path.read_text().splitlines()
    lines[-1] = lines[-1].replace('"seconds": [', '"seconds": ["x", ')
    path.write_text("\n".join(lines) + "\n")
    assert stele(path) == 2
    assert "a.jsonl, line 9, is not a launch: Expected `float`, got `str`" in capsys.readouterr().err


def test_a_verdict_of_a_newer_version_is_shown_without_its_new_keys(folder):
    path = gate_records.gate(folder / "a.jsonl", verdicts=[{**REGRESSED, "energy": 3}])
    assert replay.load(path).verdicts[0].status == "REGRESSED"


@pytest.mark.parametrize("change", [{"ratio": 3}, {"status": None}, {"ratio": {"low": 1}}, {"passes": "x"}])
def test_a_verdict_that_is_none_is_an_error(folder, capsys, change):
    path = gate_records.gate(folder / "a.jsonl", verdicts=[{**REGRESSED, **change}])
    assert stele(path) == 2
    assert re.search(r"a.jsonl, line 22, is not a launch: .* - at `\$.verdicts\[0\]", capsys.readouterr().err)


def test_a_status_of_a_newer_version_is_an_error(folder, capsys):
    path = gate_records.gate(folder / "a.jsonl", verdicts=[{**REGRESSED, "status": "DOUBTFUL"}])
    assert stele(path) == 2
    assert "DOUBTFUL" in capsys.readouterr().err
