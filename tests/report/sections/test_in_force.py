"""What was in force in OLD and in NEW."""

from tests.support import gate_records
from tests.support.reports import REGRESSED, report, section


def test_differences_name_packages_libraries_flags_and_versions(folder):
    whole = report(gate_records.gate(folder / "a.jsonl", verdicts=[REGRESSED]))
    differences, everything = (figure.table for figure in section(whole, "in-force").figures)
    assert [row[:4] for row in differences.rows] == [
        ["package", "torch", "2.12.0", "2.13.0"],
        ["package", "numpy", "2.0.0", "2.1.0"],
        ["reported version", "torch", "2.12.0", "2.13.0"],
        ["flag", "cpu_capability", "AVX2", "AVX512"],
    ]
    assert ["library (flag)", "onednn", "true", "true", "no"] in everything.rows


def test_packages_that_are_equal_do_not_differ(folder):
    equal = gate_records.last([REGRESSED], [{"name": "torch", "old": "2.13.0", "new": "2.13.0"}])
    path = gate_records.write(folder / "a.jsonl", gate_records.header(old="torch", new="torch"), [equal])
    top = report(path).headline
    assert "No package differs, as far as recorded." in top.causes
    assert not [one for one in top.remedies if one.command and "bisect" in one.command]


def test_recorded_defaults_that_differ_are_shown(folder, monkeypatch):
    tables = {"2.12.0": {"epsilon": 1e-7, "same": 1}, "2.13.0": {"epsilon": 1e-8, "same": 1}}
    monkeypatch.setattr("stele.parity.defaults.record_path", lambda environment, release: release)
    monkeypatch.setattr("stele.parity.defaults.read", lambda path, environment: tables[path])
    whole = report(gate_records.gate(folder / "a.jsonl", verdicts=[REGRESSED]))
    rows = section(whole, "in-force").figures[0].table.rows
    assert ["default", "epsilon", "1e-07", "1e-08", "yes"] in rows
    assert all(row[1] != "same" for row in rows)
