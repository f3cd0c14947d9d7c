"""``stele report`` as a user runs it. tests/browser opens the page."""

import subprocess
import sys

import pytest

from stele import __main__ as entry_point
from tests.support import gate_records
from tests.support.reports import stele


def test_an_empty_folder_says_what_to_measure(folder, capsys):
    assert stele() == 2
    assert "no gate in .stele/gates and no Run in .stele/runs. Measure with:" in capsys.readouterr().err
    assert stele(folder) == 2
    assert f"Nothing to report: no gate, Run or ladder in {folder}." in capsys.readouterr().err


@pytest.mark.slow
def test_a_closed_output_is_one_message(folder):
    path = gate_records.gate(folder / "a.jsonl", verdicts=[REGRESSED])
    command = f"{sys.executable} -m stele report {path} | true"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 2) and "Traceback" not in done.stderr


def test_the_newest_gate_is_shown_if_nothing_is_named(folder, capsys):
    gates = folder / ".stele/gates"
    gates.mkdir(parents=True)
    gate_records.gate(gates / "20260101-000000-a.jsonl", verdicts=[REGRESSED])
    gate_records.gate(gates / "20260102-000000-a.jsonl", verdicts=[gate_records.verdict()])
    assert stele() == 0
    assert capsys.readouterr().out.startswith("PASS: From torch")


def test_a_missing_package_is_named_before_anything_is_read(folder, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    assert stele("missing.json", "--html", "page.html") == 2
    assert "pip install 'pytest-stele[report]'" in capsys.readouterr().err


@pytest.mark.slow
def test_the_report_command_imports_no_package_of_the_page(folder):
    code = "import sys, stele.__main__ as main; main.parser(); print({'jinja2', 'vl_convert'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


REGRESSED = gate_records.verdict(status="REGRESSED", message="30.0 % slower in 8 passes", ratio=(1.25, 1.3, 1.36))


def test_a_step_summary_is_appended_to_the_file_of_github(tmp_path, monkeypatch, capsys):
    path, page = gate_records.gate(tmp_path / "gate.jsonl", verdicts=[REGRESSED]), tmp_path / "summary.md"
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    assert entry_point.main(["report", str(path), "--step-summary"]) == 2
    assert "--step-summary needs the variable GITHUB_STEP_SUMMARY" in capsys.readouterr().err
    page.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    assert entry_point.main(["report", str(path), "--step-summary"]) == 0
    assert page.read_text().startswith("before\n# REGRESSED: ")
