import json
import re
import shlex
from xml.etree import ElementTree

import pytest

from stele import __main__ as entry_point
from stele.gate.entries import Verdict
from stele.report import build, gate, sources
from stele.report import gate as pages
from stele.statistics import Estimate
from tests.support import gate_records
from tests.support.gates import printed, slower
from tests.support.reports import PARITY


def test_a_gate_without_a_budget_is_inconclusive_and_names_the_command_that_continues(gate, capsys):
    assert gate("--budget=0.001s") == 3
    out = printed(capsys)
    assert "step    Nothing was measured before the budget ran out." in re.sub("  +", "    ", out)
    words = "gate old new --metric=step --task=gru --phase=infer"
    assert out.endswith(f"continue with: stele {words} --resume --budget 2m\n")
    assert entry_point.main([*words.split(), "--resume", "--budget", "1m"]) == 0


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


def test_the_verdicts_are_printed_the_worst_first_and_the_status_last(gate, capsys):
    assert gate(new={"host_memory": 2**21}, metric="step,host-memory") == 1
    lines = capsys.readouterr().out.splitlines()
    statuses = [line.split()[0] for line in lines if re.match(r"[A-Z]+  .*gru", line)]
    assert statuses == ["REGRESSED", "PASS", "PASS"]  # memory, the step, the control
    assert any(line.startswith("REGRESSED: old to new.") for line in lines[len(statuses) :])


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
    assert gate("--budget=0.001s", f"--junit={tmp_path / 'report.xml'}") == 3
    suite = ElementTree.parse(tmp_path / "report.xml").getroot()
    assert (suite.get("tests"), suite.get("errors")) == ("1", "1")


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
