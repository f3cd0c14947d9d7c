"""A report as Markdown, CSV, JUnit and OpenMetrics: the same content, escaped as each format needs it."""

import csv
import io
import re
from xml.etree import ElementTree

import pytest
from prometheus_client.openmetrics import parser

from stele import __main__ as entry_point
from stele.report import build, exports, sources
from tests.support import gate_records

HOSTILE = "<script>alert(1)</script> |`\"'\\\u202e\n=1+1 [x](javascript:y) &amp;"
REGRESSED = gate_records.verdict(status="REGRESSED", message="30.0 % slower in 8 passes", ratio=(1.25, 1.3, 1.36))


@pytest.fixture
def read(tmp_path):
    """read(verdicts, **facts) -> the sources of the record of a gate."""

    def read(*verdicts, **facts):
        return sources.read([gate_records.gate(tmp_path / "gate.jsonl", verdicts=verdicts, passes=2, **facts)])

    return read


@pytest.fixture
def hostile(read):
    """The record of a gate in which every name has markup, quotes, a newline and a right-to-left mark."""
    verdict = {**REGRESSED, "task": HOSTILE, "metric": HOSTILE, "message": f"={HOSTILE}"}
    return read(verdict, old=HOSTILE, new=f"={HOSTILE}", cells=((HOSTILE, "train"),))


# CSV


def test_each_table_is_a_csv_file_in_full_precision(read, tmp_path):
    whole = build.report(read(REGRESSED))
    files = exports.to_csv(whole)
    tables = {figure.table.name: figure.table for one in whole.sections for figure in one.figures}
    assert set(files) == set(tables)
    rows = list(csv.reader(io.StringIO(files["launches-cnn-train-long"])))
    table = tables["launches-cnn-train-long"]
    assert rows[0] == table.head and len(rows) == 1 + len(table.rows)
    assert [float(row[4]) for row in rows[1:]] == [row[4] for row in table.rows]


def test_csv_has_no_formula_and_no_newline_in_a_cell(hostile):
    for text in exports.to_csv(build.report(hostile)).values():
        for row in csv.reader(io.StringIO(text)):
            for cell in row:
                assert "\n" not in cell and "\u202e" not in cell
                assert re.fullmatch(r"-?[\d.e+-]+", cell) or not cell.startswith(("=", "+", "-", "@"))


# JUnit


def test_junit_has_a_case_for_each_check(read):
    suite = ElementTree.fromstring(exports.to_junit(read(REGRESSED, gate_records.verdict(status="INCONCLUSIVE")).gates))
    assert {name: suite.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "2", "failures": "1", "errors": "1",
    }  # fmt: skip


def test_junit_of_several_gates_has_a_suite_for_each(read):
    gates = read(REGRESSED).gates * 2
    assert [one.tag for one in ElementTree.fromstring(exports.to_junit(gates))] == ["testsuite", "testsuite"]


def test_junit_is_xml_whatever_the_names_are(hostile):
    suite = ElementTree.fromstring(exports.to_junit(hostile.gates))
    assert "<script>" in suite.find("testcase").get("name")


def test_junit_without_a_gate_is_an_error(tmp_path, run, capsys):
    from stele.measuring import store

    store.save(run, tmp_path / "runs")
    assert entry_point.main(["report", str(tmp_path / "runs"), "--junit", str(tmp_path / "a.xml")]) == 2
    assert "--junit needs a gate" in capsys.readouterr().err


# OpenMetrics


def metrics_of(text):
    """Return {name: {labels: value}} of an exposition; every line has to have the form of the format."""
    found = {}
    assert text.endswith("# EOF\n")
    for line in text.splitlines()[:-1]:
        if line.startswith("# "):
            assert re.fullmatch(r"# (TYPE \w+ gauge|HELP \w+ .+)", line)
            continue
        match = re.fullmatch(r'(\w+)\{((?:\w+="(?:[^"\\\n]|\\["\\n])*",?)+)\} ([\d.e+-]+)', line)
        assert match, line
        found.setdefault(match[1], {})[match[2]] = float(match[3])
    return found


def test_openmetrics_has_ratios_and_statuses(read):
    found = metrics_of(exports.to_openmetrics(read(REGRESSED).gates, []))
    labels = 'old="torch==2.12.0",new="torch==2.13.0",task="cnn",phase="train",metric="step"'
    assert found["stele_ratio"] == {
        f'{labels},bound="low"': 1.25, f'{labels},bound="middle"': 1.3, f'{labels},bound="high"': 1.36,
    }  # fmt: skip
    assert found["stele_status"] == {f'{labels},status="REGRESSED"': 1.0}


def test_openmetrics_has_the_steps_of_runs(run):
    found = metrics_of(exports.to_openmetrics([], [run]))
    assert found["stele_step_seconds"] == {'task="cnn",phase="train",environment="torch"': 0.011}


def test_openmetrics_quotes_names(hostile):
    metrics_of(exports.to_openmetrics(hostile.gates, []))


def test_openmetrics_is_what_the_parser_of_prometheus_reads(hostile):
    families = list(parser.text_string_to_metric_families(exports.to_openmetrics(hostile.gates, [])))
    assert [family.name for family in families] == ["stele_ratio", "stele_status"]
