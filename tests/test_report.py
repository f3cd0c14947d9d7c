"""``stele report``: what it reads, what it says, and what it refuses. tests/browser opens the page."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

import gate_records
from stele import __main__ as entry_point
from stele import schema
from stele.gate import replay
from stele.measuring import store
from stele.report import build, sources, terminal
from stele.report.content import Table, number_columns, shown

ROOT = Path(__file__).parents[1]
HOSTILE = "<script>alert(1)</script>|`\"'\u202e\n=1+1"
REGRESSED = gate_records.verdict(
    status="REGRESSED", message="30.0 % slower in 8 passes", ratio=(1.25, 1.3, 1.36)
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def report(*paths):
    return build.report(sources.read([Path(path) for path in paths]))


def section(whole, anchor):
    return next(one for one in whole.sections if one.anchor == anchor)


# what it says


def test_the_sentence_of_a_regression_needs_no_knowledge_of_stele(folder):
    path = gate_records.gate(folder / "a.jsonl", verdicts=[REGRESSED, gate_records.verdict(metric="control")])
    top = report(path).summary
    assert top.status == "REGRESSED"
    assert top.sentence == (
        "Do not upgrade yet: with torch==2.13.0, a step of cnn training takes 30.0 % longer "
        "(98 % interval 25.0 to 36.0 %) than with torch==2.12.0."
    )
    assert "OLD and NEW differ in torch 2.12.0 → 2.13.0, numpy 2.0.0 → 2.1.0." in top.causes
    commands = [remedy.command for remedy in top.remedies]
    assert "--tolerance step=36% --margin step=36%" in commands
    assert "stele bisect torch 2.12.0 2.13.0 --task cnn --phase train --metric step" in commands


def test_the_release_that_is_worse_is_bisected_between_pinned_releases(folder):
    top = report(ROOT / "docs/results/gates/tensorflow-cpu-2.20.0-2.21.0.json").summary
    command = "stele bisect tensorflow-cpu 2.20.0 2.21.0 --task gru --phase train --metric first-step"
    assert command in [remedy.command for remedy in top.remedies]


def test_the_sentence_names_the_metric_that_grew_most(folder):
    worse = gate_records.verdict("gru", "infer", "host-memory", "REGRESSED", "twice", (1.9, 2.0, 2.1))
    top = report(gate_records.gate(folder / "a.jsonl", verdicts=[REGRESSED, worse])).summary
    assert (
        "gru inference uses 2.0 times as much memory (98 % interval 1.9 to 2.1 times) as with" in top.sentence
    )


@pytest.mark.parametrize(
    "status, beginning",
    [
        ("PASS", "The upgrade from torch==2.12.0 to torch==2.13.0 is safe: nothing"),
        ("IMPROVED", "The upgrade from torch==2.12.0 to torch==2.13.0 is safe: nothing"),
        ("INCONCLUSIVE", "It is not known yet whether the upgrade"),
        (
            "BROKEN",
            "Do not upgrade: torch==2.13.0 fails, or computes something different from torch==2.12.0.",
        ),
        ("MISSING", "Do not upgrade yet: torch==2.13.0 cannot run cnn training, which torch==2.12.0 can."),
    ],
)
def test_each_status_has_a_sentence_and_a_remedy(folder, status, beginning):
    path = gate_records.gate(folder / "a.jsonl", verdicts=[gate_records.verdict(status=status)])
    top = report(path).summary
    assert top.sentence.startswith(beginning)
    assert top.causes and top.remedies


def test_several_gates_have_the_sentence_of_the_worst(folder):
    gate_records.gate(folder / "a.jsonl", verdicts=[gate_records.verdict()])
    gate_records.gate(folder / "b.jsonl", verdicts=[REGRESSED])
    whole = report(folder)
    assert whole.summary.title == "2 gates: 1 REGRESSED, 1 PASS"
    assert whole.summary.sentence.startswith("The worst of 2 gates: Do not upgrade yet")
    names = [figure.table.name for one in whole.sections for figure in one.figures]
    assert len(set(names)) == len(names)


def test_a_report_of_an_interrupted_gate_judges_its_launches(folder):
    ended, cut = folder / "ended.jsonl", folder / "cut.jsonl"
    slow = replay.load(gate_records.gate(cut, passes=6, factor=1.1))
    assert not slow.ended
    statuses = {(one.task, one.metric): one.status for one in slow.verdicts}
    assert statuses["cnn", "step"] == "REGRESSED" and statuses["cnn", "host-memory"] == "PASS"
    assert statuses["cnn", "parity"] == "PASS"
    gate_records.gate(ended, passes=6, verdicts=[gate_records.verdict()])
    assert [one.metric for one in replay.load(ended).verdicts] == ["step"]


def test_launches_after_the_last_verdicts_are_judged_again(folder):
    path = gate_records.gate(folder / "a.jsonl", verdicts=[gate_records.verdict(message="stale")])
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], lines[-1], *lines[1:-1]]))
    assert "stale" not in [one.message for one in replay.load(path).verdicts]


def test_what_was_not_measured_before_the_gate_ended_is_inconclusive(folder):
    path = gate_records.gate(folder / "a.jsonl")
    lines = [
        line for line in path.read_text().splitlines(keepends=True) if '"parity", "gru", "new"' not in line
    ]
    path.write_text("".join(lines))
    statuses = {(one.task, one.metric): one.status for one in replay.load(path).verdicts}
    assert statuses["gru", "parity"] == "INCONCLUSIVE" and statuses["cnn", "parity"] == "PASS"
    assert path.read_text() == "".join(lines)


def test_a_report_shows_everything_that_was_measured(folder, run):
    whole = report(
        gate_records.gate(folder / "a.jsonl", verdicts=[REGRESSED]), ROOT / "baselines/ladder.json"
    )
    anchors = [one.anchor for one in whole.sections]
    assert anchors == ["verdicts", "launches", "warm-up", "parity", "memory", "in-force"]
    launches = section(whole, "launches").figures[0].table
    assert launches.head == ["time", "arm", "pass", "counts", "step, ms", "first-step, s", "import, s"]
    assert {row[1] for row in launches.rows} == {"OLD", "OLD, control", "NEW", "NEW, repeat"}
    assert [row[0] for row in launches.rows] == sorted(row[0] for row in launches.rows)
    for one in whole.sections:
        for figure in one.figures:
            assert all(len(row) == len(figure.table.head) for row in figure.table.rows), figure.table.name


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
    top = report(path).summary
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


def test_warm_up_has_the_percentiles_of_each_step(folder):
    whole = report(gate_records.gate(folder / "a.jsonl", passes=5, verdicts=[REGRESSED]))
    rows = section(whole, "warm-up").figures[0].table.rows
    first, last = rows[0], rows[23]
    assert first[:2] == [1, "OLD"] and first[5] == 5
    assert first[2] <= first[3] <= first[4] and first[3] > 10 * last[3]


def test_a_rung_is_exact_near_its_tolerance_or_different(folder):
    lines = [
        {"rung": rung, "status": status, "message": "why", "error": error, "limit": 1e-5, "where": "conv"}
        for rung, status, error in (
            (1, "agrees", 0.0),
            (2, "agrees", 9e-6),
            (3, "agrees", 1e-7),
            (4, "differs", 1.0),
        )
    ]
    entry = {"key": ["parity", "cnn", "new"], "took": 1.0, "findings": lines}
    path = gate_records.write(
        folder / "a.jsonl", gate_records.header(), [entry, gate_records.last([REGRESSED])]
    )
    rows = section(report(path), "parity").figures[0].table.rows
    assert [row[2] for row in rows] == ["exact", "near the tolerance", "agrees", "differs"]


# Runs, modes and histories


def test_runs_are_shown_the_fastest_environment_first(folder, run):
    store.save(run, folder / "runs")
    store.save(dataclasses.replace(run, environment="jax", seconds=(0.5, *[0.005] * 30)), folder / "runs")
    whole = report(folder / "runs")
    assert (
        whole.summary.status == "" and "2 launches of 1 networks in 2 environments" in whole.summary.sentence
    )
    rows = section(whole, "suite").figures[0].table.rows
    assert [row[0] for row in rows] == ["jax", "torch"]
    assert "launches" not in [one.anchor for one in whole.sections]


def test_repeated_runs_are_shown_in_order_of_time(folder, run):
    for day in ("03", "02"):
        store.save(dataclasses.replace(run, when=f"2026-01-{day}T00:00:00+00:00"), folder)
    rows = section(report(folder), "launches").figures[0].table.rows
    assert [row[0] for row in rows] == ["2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"]


def test_modes_are_relative_to_the_first_one(folder, run):
    compiled = dataclasses.replace(run, environment="torch-compile", seconds=(0.5, *[0.0055] * 30))
    line = {
        "runs": {"torch": run.to_dict(), "torch-compile": compiled.to_dict()},
        "failed": {"torch-frozen": "no"},
    }
    (folder / "torch-cnn-train.jsonl").write_text(json.dumps(line) + "\n")
    rows = section(report(folder), "modes").figures[0].table.rows
    assert [(row[0], row[2], row[8]) for row in rows] == [
        ("torch", 1.0, None), ("torch-compile", 0.5, None), ("torch-frozen", None, "no"),
    ]  # fmt: skip


def test_the_lines_over_releases_are_shown(folder):
    site = folder / "html"
    graph = site / "graphs/branch-jax/recipes.track_step.json"
    graph.parent.mkdir(parents=True)
    graph.write_text(json.dumps([[1, [2.0]], [2, [3.0]]]))
    benchmark = {"name": "recipes.track_step", "params": [["'gru'"]], "unit": "seconds"}
    index = {"tags": {"jax-0.1": 1, "jax-0.2": 2}, "benchmarks": {"recipes.track_step": benchmark}}
    (site / "index.json").write_text(json.dumps(index))
    table = section(report(folder), "history").figures[0].table
    assert table.rows == [["jax-0.1", 2.0], ["jax-0.2", 3.0]]


def training(run, environment, seed, accuracy, **changes):
    """Return a training of two epochs of 2 s, whose evaluations took 1 s."""
    settings, when = {**run.settings, "seed": seed}, f"2026-01-02T03:04:0{seed}.000+00:00"
    times = {
        "when": when,
        "accuracies": (0.3, accuracy),
        "losses": (2.0, 1.0),
        "evaluation_seconds": (0.5, 0.5),
        "compile_seconds": 5.0,
        "data_seconds": 0.5,
        "elapsed": 10.5,
    }
    return dataclasses.replace(
        run, task="cifar-fast", phase="time-to-accuracy", scale="cpu", environment=environment, settings=settings,
        seconds=(2.0, 2.0), warmup=0, accuracy=accuracy, **{**times, **changes},
    )  # fmt: skip


def test_trainings_to_an_accuracy_are_shown_by_environment_and_by_seed(folder, run):
    for seed, accuracy in enumerate([0.59, 0.61, 0.62]):
        store.save(training(run, "torch", seed, accuracy), folder)
    store.save(training(run, "jax", 0, 0.63, continued=True), folder)
    whole = report(folder)
    assert [one.anchor for one in whole.sections] == ["time-to-accuracy", "in-force"]
    summary, seeds = (figure.table for figure in section(whole, "time-to-accuracy").figures)
    assert summary.title == "cifar-fast, scale cpu, closed division, 2 epochs, target 60%"
    columns = dict(zip(summary.head, zip(*summary.rows, strict=True), strict=True))
    assert columns["environment"] == ("jax", "torch")
    assert columns["accuracy, %"] == (pytest.approx(63), pytest.approx(100 * 1.82 / 3))
    assert columns["training, s (DAWNBench)"] == (None, 4.5)
    assert columns["training, s (MLPerf)"] == (None, 5.5)
    assert columns["P(target)"] == (1.0, pytest.approx(2 / 3))
    assert "1 continued" in columns["remarks"][0]
    assert seeds.rows[1] == ["torch", 0, 4.5, pytest.approx(59), 5.5, 2]


EXPLANATION = {
    "schema": 1,
    "old": "torch==2.12.0",
    "new": "torch==2.13.0",
    "cells": {
        "cnn train": {
            "old": 0.010, "new": 0.014, "profiled_old": 0.011, "profiled_new": 0.016,
            "operations": [
                {"name": "aten::mul", "old": 0.001, "new": 0.005, "old_calls": 2.0, "new_calls": 7.0},
                {"name": "gone", "old": 0.0005, "new": 0.0, "old_calls": 1.0, "new_calls": 0.0},
            ],
        },
    },
    "differs": ["flags: threads: 1 → 2"],
}  # fmt: skip


def test_the_explanation_beside_a_gate_names_the_operation_at_the_top(folder):
    record = gate_records.gate(folder / "a.jsonl", verdicts=[REGRESSED])
    (folder / "a.explanation.json").write_text(json.dumps(EXPLANATION))
    whole = report(record)
    assert whole.summary.causes[-1] == (
        "In cnn train, the operation aten::mul changed by +4.00 ms a step: 80% of the change."
    )
    operations, differences = (figure.table for figure in section(whole, "explanation").figures)
    assert operations.title == "cnn train: torch==2.12.0 to torch==2.13.0, 40.0% slower"
    assert operations.rows == [
        ["aten::mul", 1.0, 5.0, 4.0, pytest.approx(80), 2.0, 7.0],
        ["gone", 0.5, None, -0.5, pytest.approx(-10), 1.0, None],
        ["in no operation", None, None, pytest.approx(1.5), pytest.approx(30), None, None],
    ]
    assert differences.rows == [("flags", "threads: 1 → 2")]


def test_an_explanation_alone_is_a_report(folder):
    (folder / "a.json").write_text(json.dumps(EXPLANATION))
    assert [one.anchor for one in report(folder / "a.json").sections] == ["explanation"]


@pytest.mark.parametrize(
    "change, message",
    [
        ({"cells": 3}, "a.json is not an explanation: cells is 3, expected an object"),
        ({"cells": {"cnn train": {}}}, "has no 'old'"),
        ({"differs": [1]}, "expected text"),
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


# bad input


def stele(*arguments):
    return entry_point.main(["report", *map(str, arguments)])


def test_an_empty_folder_says_what_to_measure(folder, capsys):
    assert stele() == 2
    assert "no gate in .stele/gates and no Run in .stele/runs. Measure with:" in capsys.readouterr().err
    assert stele(folder) == 2
    assert f"Nothing to report: no gate, Run or ladder in {folder}." in capsys.readouterr().err


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
        ("a.json", '{"schema": 1, "verdicts": []}', "a.json is not a gate: it has no 'old'"),
        ("a.json", '{"schema": 1, "recipes": 3}', "a.json cannot be read"),
        ("a.jsonl", "", "a.jsonl is not a record of a gate"),
        ("a.jsonl", '{"level": "info"}\n', "a.jsonl is not a record of a gate"),
        ("a.jsonl", '{"schema": 2, "cells": [], "machine": {}}\n', "schema 2 is not supported"),
        ("a.jsonl", '{"schema": 1, "cells": [], "machine": {}}\n', "a.jsonl is not a gate: it has no 'old'"),
        ("a.jsonl", '{"runs": {"a": {}}, "failed": {}}\n', "Not a Run"),
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
    assert f"{name}: No such file or directory" in capsys.readouterr().err


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
    assert "broken.json: Not a Run" in capsys.readouterr().err


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
    assert "a.jsonl: Not a Run: seconds[0] is 'x'" in capsys.readouterr().err


def test_a_verdict_of_a_newer_version_is_shown_without_its_new_keys(folder):
    path = gate_records.gate(folder / "a.jsonl", verdicts=[{**REGRESSED, "energy": 3}])
    assert replay.load(path).verdicts[0].status == "REGRESSED"


@pytest.mark.parametrize("change", [{"ratio": 3}, {"status": None}, {"ratio": {"low": 1}}, {"passes": "x"}])
def test_a_verdict_that_is_none_is_an_error(folder, capsys, change):
    path = gate_records.gate(folder / "a.jsonl", verdicts=[{**REGRESSED, **change}])
    assert stele(path) == 2
    assert "has a verdict that this version cannot read" in capsys.readouterr().err


def test_a_status_of_a_newer_version_is_an_error(folder, capsys):
    path = gate_records.gate(folder / "a.jsonl", verdicts=[{**REGRESSED, "status": "DOUBTFUL"}])
    assert stele(path) == 2
    assert "DOUBTFUL" in capsys.readouterr().err


def test_ten_thousand_runs_are_one_page_of_less_than_two_megabytes(folder, run):
    pytest.importorskip("vl_convert", reason="Install it with: pip install 'pytest-stele[report]'")
    text = json.dumps(schema.wrap({"run": run.to_dict()}))
    for number in range(10_000):
        when = f"2026-01-02T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}+00:00"
        (folder / f"{number:05}.json").write_text(text.replace(run.when, when))
    assert stele(folder, "--html", folder / "page.html") == 0
    assert (folder / "page.html").stat().st_size < 2_000_000


# the terminal


def test_lines_fit_a_terminal_of_forty_columns(folder, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    assert stele(gate_records.gate(folder / "a.jsonl", verdicts=[REGRESSED])) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines and max(map(len, lines)) <= 40


def test_a_wide_terminal_shows_a_table(folder):
    whole = report(gate_records.gate(folder / "a.jsonl", verdicts=[REGRESSED]))
    assert "verdict    cell       metric  NEW / OLD  in words" in list(terminal.lines(whole, 200))


def run_stele(*arguments, **options):
    command = [sys.executable, "-m", "stele", "report", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=False, timeout=60, **options)


def test_a_terminal_without_unicode_and_colour_shows_the_report(folder, monkeypatch):
    for name, value in {
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "NO_COLOR": "1",
    }.items():
        monkeypatch.setenv(name, value)
    done = run_stele(gate_records.gate(folder / "a.jsonl", verdicts=[REGRESSED]))
    assert done.returncode == 0 and b"torch 2.12.0 ? 2.13.0" in done.stdout
    assert b"\x1b" not in done.stdout and done.stdout.isascii()


def test_a_closed_output_is_one_message(folder):
    path = gate_records.gate(folder / "a.jsonl", verdicts=[REGRESSED])
    command = f"{sys.executable} -m stele report {path} | true"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 2) and "Traceback" not in done.stderr


def test_the_newest_gate_is_shown_if_nothing_is_named(folder, capsys):
    gates = folder / ".stele/gates"
    gates.mkdir(parents=True)
    gate_records.gate(gates / "20260101-000000-a.jsonl", verdicts=[REGRESSED])
    gate_records.gate(gates / "20260102-000000-a.jsonl", verdicts=[gate_records.verdict()])
    assert stele() == 0
    assert capsys.readouterr().out.startswith("PASS: The upgrade")


def test_a_missing_package_is_named_before_anything_is_read(folder, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    assert stele("missing.json", "--html", "page.html") == 2
    assert "pip install 'pytest-stele[report]'" in capsys.readouterr().err


def test_the_report_command_imports_no_package_of_the_page(folder):
    code = "import sys, stele.__main__ as main; main.parser(); print({'jinja2', 'vl_convert'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


# cells


def test_numbers_have_five_digits_and_unknown_ones_are_empty():
    values = [None, 3, 1.23456789, 123456.7, float("nan"), 1e-9, "a\x1b\u202e"]
    assert [shown(value) for value in values] == ["", "3", "1.2346", "123457", "", "1e-09", "a??"]


def test_a_column_of_numbers_may_have_unknown_ones_but_no_text():
    rows = [[1, 1, None, "a"], [None, "x", None, "b"]]
    assert number_columns(Table("name", "title", ["a", "b", "c", "d"], rows)) == [True, False, False, False]
    assert number_columns(Table("name", "title", ["a"], [])) == [False]
