import dataclasses
import json
import re
import shlex
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from stele import __main__ as entry_point
from stele.commands.gate import options_of
from stele.commands.options import flat
from stele.gate.entries import Verdict
from stele.report import build, gate, sources
from stele.report import gate as pages
from stele.statistics import Estimate
from stele.subjects import Cell
from tests.support import gate_records
from tests.support.gates import make_trial, printed, slower
from tests.support.reports import PARITY
from tests.support.scripted_environments import correct_numbers

CORRECT = {"numbers": correct_numbers("gru")}
WITH_PARITY = {"metric": "parity,step", "old": CORRECT, "new": CORRECT}  # which uses a small budget


def test_a_gate_without_a_budget_is_inconclusive_and_names_the_command_that_continues(gate, capsys):
    assert gate("--budget=0.001s", **WITH_PARITY) == 3
    out = printed(capsys)
    assert "INCONCLUSIVE  infer step: Nothing was measured before the budget ran out." in out
    words = "gate old new --metric=parity,step --task=gru --phase=infer"
    assert out.endswith(f"  continue with  stele {words} --resume --budget 2m\n")


@pytest.mark.parametrize(
    ("typed", "continued"),
    [
        ("gate a b", "gate a b --resume --budget 4m"),
        ("gate a b --budget 2m --phase infer", "gate a b --phase infer --resume --budget 4m"),
        ("gate a b --budget=2m --explain", "gate a b --explain --resume --budget 4m"),
        ("gate --bud 2m a b", "gate a b --resume --budget 4m"),
        ("gate --changed main --model m.py:f", "gate --changed main --model m.py:f --resume --budget 4m"),
        ("gate a b --resume --budget 2m", "gate a b --resume --budget 4m"),
        ("gate a b --resume=x.jsonl", "gate a b --resume=x.jsonl --budget 4m"),
        ("gate a b --res x.jsonl", "gate a b --res x.jsonl --budget 4m"),
        (
            "gate 'torch==2.12 a>1' b --with \"numpy<2\" --input ids=int:2x3:9 --metric parity,step --python 3 --x ''",
            "gate 'torch==2.12 a>1' b --with 'numpy<2' --input ids=int:2x3:9 --metric parity,step --python 3 --x '' "
            "--resume --budget 4m",
        ),
    ],
)
def test_the_command_that_continues_has_every_option_of_the_first_one(typed, continued):
    assert pages.continuation(shlex.split(typed), "4m") == f"stele {continued}"


def test_a_gate_without_a_verdict_prints_a_command_that_continues_it_with_all_options(gate, capsys):
    words = ["--seed=7", "--margin", "step=9%", "--markdown", "a page.md", "--worker-timeout", "60"]
    assert gate("--budget=0.001s", *words, **WITH_PARITY) == 3
    command = shlex.split(capsys.readouterr().out.splitlines()[-1].partition("continue with")[2])
    assert command[0] == "stele"
    first = [
        "gate",
        "old",
        "new",
        "--metric=parity,step",
        "--task=gru",
        "--phase=infer",
        *words,
        "--budget=2m",
        "--resume",
    ]
    now, before = flat(options_of(command[1:])), flat(options_of(first))
    assert now == before and now["markdown"] == Path("a page.md")
    assert entry_point.main(command[1:]) == 0


def test_a_password_is_not_printed_in_the_command_that_continues():
    typed = ("gate", "a", "b", "--with", "x @ https://ada:secret@example.org/x.whl")
    trial = dataclasses.replace(make_trial(), typed=typed)
    assert "ada:***@example.org" in pages.resume_command(trial) and "secret" not in pages.resume_command(trial)


@pytest.mark.slow
def test_a_gate_is_told_in_80_columns(gate, monkeypatch, capsys):
    numbers = {"numbers": correct_numbers("gru")}
    gate(old=numbers)  # after it, durations are known
    capsys.readouterr()
    monkeypatch.setenv("COLUMNS", "80")
    scripts = {"old": numbers, "new": {**numbers, "host_memory": 2**21}}
    assert gate(f"--json={'r' * 80}.json", metric="parity,step,host-memory", **scripts) == 1
    output = capsys.readouterr()
    lines = [*output.err.splitlines(), *output.out.splitlines()]
    assert not [line for line in lines if len(line) > 80 and not line.startswith(("  details ", "  continue with "))]
    assert lines[0] == "stele gate  old → new  on gru"
    labels = [line[2:16].strip() for line in output.err.splitlines()[1:] if line.startswith("  ") and line[2] != " "]
    assert list(dict.fromkeys(labels)) == ["environments", "conditions", "parity", "time, memory"]


def test_what_has_the_same_message_is_one_line():
    subject = make_trial()
    verdicts = [Verdict("gru", "infer", metric, "INCONCLUSIVE", "Nothing.") for metric in ("step", "import")]
    verdicts += [Verdict("gru", "infer", "control", "PASS", "equal"), Verdict("gru", "all", "all", "MISSING", "absent")]
    assert list(pages.verdict_rows(subject, verdicts)) == [
        ("MISSING", "gru: absent"),
        ("INCONCLUSIVE", "infer step, infer import: Nothing."),
    ]


@pytest.mark.parametrize(
    ("old", "new", "title"),
    [
        ("torch==2.12.0", "torch==2.13.0", "torch 2.12.0 → 2.13.0"),
        ("jax==1 numpy==2", "jax==3 numpy==2", "jax 1 → 3, numpy 2"),
        ("jax==1", "jax==1", "jax==1 → jax==1"),
        ("jax==1", "jax>=1", "jax==1 → jax>=1"),
        ("jax==1", "jax==1 numpy==2", "jax==1 → jax==1 numpy==2"),
        ("uv.lock@main", "uv.lock", "uv.lock@main → uv.lock"),
    ],
)
def test_the_title_names_a_package_once(old, new, title):
    assert pages.title(old, new) == title


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, ["accuracy"]),
        ({"subject": SimpleNamespace(has_accuracy=lambda task: False)}, ["accuracy (no data)"]),
    ],
)
def test_a_verdict_says_that_the_accuracy_was_not_judged(facts, expected):
    trial = dataclasses.replace(make_trial(**facts), cells=(Cell("gru", "train"),))
    header = {"cells": [("gru", "train")], "parity": True, "metrics": {"step": 0.05, "host-memory": 0.03}}
    assert pages.not_judged(trial, SimpleNamespace(header=header), []) == expected
    judged = [Verdict("gru", "train", "accuracy", "PASS", "")]
    assert pages.not_judged(trial, SimpleNamespace(header=header), judged) == []


def test_the_status_is_printed_first_and_then_the_verdicts_the_worst_first(gate, capsys):
    assert gate(new={"host_memory": 2**21}, metric="step,host-memory") == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "REGRESSED  old → new. At least one metric regressed."
    assert lines[1].startswith("  REGRESSED      infer host-memory: ")
    assert lines[2].startswith("  infer step     the same; ")


# reports


def test_a_report_shows_the_versions_of_the_packages_that_old_and_new_name(gate, monkeypatch, tmp_path):
    def installed(environment):
        return {"old": "3.1" if environment.name == "old" else "3.2", "numpy": "2.0"}

    monkeypatch.setattr("stele.gate.preparation.packages.of_environment", installed)
    page = tmp_path / "page.md"
    assert gate(f"--markdown={page}") == 0
    text = page.read_text()
    assert "OLD and NEW differ in old 3.1 → 3.2." in text
    assert "| package | old | 3.1 | 3.2 | yes |" in text and "| reported version | scripted | 1.0 | 1.0 | no |" in text


def test_all_reports_contain_the_same_verdicts(gate, tmp_path):
    files = {kind: tmp_path / f"report.{kind}" for kind in ("json", "markdown", "junit")}
    assert gate(*(f"--{kind}={path}" for kind, path in files.items()), new={"seconds": slower(1.05)}) == 1
    facts = json.loads(files["json"].read_text())
    assert (facts["status"], facts["old"], facts["launches"]) == ("REGRESSED", "old", 16)
    assert facts["verdicts"][0]["ratio"]["middle"] == pytest.approx(1.05)
    assert facts["versions"] == {"old": {"scripted": "1.0"}, "new": {"scripted": "1.0"}}
    page = files["markdown"].read_text()
    assert page.startswith("# REGRESSED: old to new\n")
    assert page.split("\n\n")[1].startswith("Do not upgrade yet: with new, a step of gru inference takes 5.0 % longer")
    assert "| REGRESSED | gru infer | step |" in page and "5.0 % slower in 4 passes, p 0.0012 |" in page
    case, control = ElementTree.parse(files["junit"]).getroot()
    assert (case.get("classname"), case.get("name")) == ("gru.infer", "step")
    assert case.find("failure").get("type") == "REGRESSED"
    assert (control.get("name"), list(control)) == ("control", [])


def test_an_inconclusive_verdict_is_an_error_in_junit(gate, tmp_path):
    assert gate("--budget=0.001s", f"--junit={tmp_path / 'report.xml'}", **WITH_PARITY) == 3
    suite = ElementTree.parse(tmp_path / "report.xml").getroot()
    assert (suite.get("tests"), suite.get("errors")) == ("2", "1")


@pytest.mark.slow
def test_an_error_message_is_escaped_in_reports(gate, tmp_path):
    files = [f"--markdown={tmp_path / 'page.md'}", f"--junit={tmp_path / 'page.xml'}"]
    assert gate(*files, new={"infer": "hostile_error"}) == 1
    page = (tmp_path / "page.md").read_text()
    assert "<script>" not in page and "\\<script\\>" in page
    ElementTree.parse(tmp_path / "page.xml")


@pytest.mark.parametrize(
    ("launches", "seconds", "text"),
    [
        (0, 0.0, "Nothing was measured on "),
        (0, 1.2, "No launch was timed. Parity took 1 second on "),
        (0, 300.0, "No launch was timed. Parity took 5 minutes on "),
        (1, 89.0, "1 launch in 89 seconds on "),
        (154, 1860.0, "154 launches in 31 minutes on "),
    ],
)
def test_what_was_measured_is_counted(launches, seconds, text):
    header = gate_records.header()
    gate = type("Gate", (), {"header": header, "launches": launches, "seconds": seconds, "passes": ()})
    assert build.gate_facts(gate).startswith(text)


def test_several_checks_in_one_launch_are_counted(tmp_path):
    path = gate_records.gate(tmp_path / "a.jsonl", passes=1, verdicts=[PARITY, PARITY])
    assert re.fullmatch(
        r"All 2 checks passed, in \d+ launches of fresh processes\.",
        build.report(sources.read([path])).headline.causes[0],
    )


@pytest.mark.parametrize(("low", "high"), [(None, None), (None, 1.2), (0.9, None)])
def test_a_ratio_without_an_interval_says_so(low, high):
    verdict = Verdict("m.py:model", "train", "step", "INCONCLUSIVE", "", Estimate(low, 1.0, high))
    assert gate.ratio(verdict) == "1.000, interval not yet known"
