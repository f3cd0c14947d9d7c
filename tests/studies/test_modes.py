"""The page that compares the modes of a framework (studies/modes)."""

import importlib
import re
import sys
from pathlib import Path

import pytest

from stele import environments
from tests.support.gates import INPUTS
from tests.support.runs import changed

FOLDER = Path(__file__).parents[2] / "studies/modes"


@pytest.fixture
def modes(monkeypatch):
    """modes(name) -> a module of studies/modes, imported as its command does."""
    monkeypatch.syspath_prepend(str(FOLDER))
    yield importlib.import_module
    for name in ("record", "table", "plot"):
        sys.modules.pop(name, None)


@pytest.fixture
def make_pass(modes, run):
    """Return make_pass({environment: seconds of a step}, failed)."""

    def make_pass(seconds, failed=None):
        runs = {name: of_mode(run, name, value) for name, value in seconds.items()}
        return modes("record").Pass(runs, failed or {})

    return make_pass


def of_mode(run, name, seconds):
    steps = (10 * seconds, *[seconds] * 9)
    return changed(run, environment=name, in_force={"graph_breaks": 2}, steps={"seconds": steps, "warmup": 1})


def test_the_memory_of_the_device_is_shown_where_it_is_known(modes, run):
    table = modes("table")
    host = changed(run, memory={"host": 600 * 2**20, "device": None})
    assert table.memory([host]) == "600"
    assert table.memory([changed(host, memory={"device": 3 * 2**30})]) == "600, device 3,072"
    assert table.memory([changed(host, memory={"host": None})]) == "unknown"


def test_a_row_compares_a_mode_with_the_first_mode_of_the_same_pass(modes, make_pass):
    passes = [
        make_pass({"torch": 0.1, "torch-compile": 0.08}),
        make_pass({"torch": 0.2, "torch-compile": 0.18}),
    ]
    first, second = modes("table").rows_of(passes)
    assert first[:4] == ["torch", "eager", "150", "1"]
    assert second[:5] == ["torch-compile", "torch.compile", "130", "0.85 (0.80 to 0.90)", "1.30"]
    assert second[6] == "2 graph breaks"


def test_a_mode_that_failed_has_its_reason_in_place_of_numbers(modes, make_pass):
    passes = [make_pass({"torch": 0.1}, {"torch-compile": "Worker 'torch-compile' ended"})]
    _, failed = modes("table").rows_of(passes)
    assert failed[2] == "failed" and failed[6] == "Worker 'torch-compile' ended"


def test_the_costs_of_a_mode_are_its_overhead_and_its_first_steps(modes, make_pass):
    record, table = modes("record"), modes("table")
    results = {
        record.Cell("torch", "gru", "train"): [make_pass({"torch": 0.1, "torch-compile": 0.05})],
        record.Cell("torch", "cnn", "train"): [make_pass({"torch": 0.3})],
        record.Cell("torch", "gru", "infer"): [make_pass({"torch": 0.02}, {"torch-compile": "no g++"})],
    }
    _, _, first, second = table.costs(results, {"torch": "2.00"}).splitlines()
    assert first == "| torch | eager | 2.00 | 1.00 to 3.00 | 0.20 |"
    assert second == "| torch-compile | torch.compile |  | 0.50 |  |"


def test_a_task_has_a_table_for_each_phase_and_a_line_on_how_it_was_measured(modes, make_pass):
    record, table = modes("record"), modes("table")
    results = {
        record.Cell("torch", "gru", "infer"): [make_pass({"torch": 0.1})],
        record.Cell("torch", "gru", "train"): [make_pass({"torch": 0.2})],
        record.Cell("torch", "cnn", "train"): [make_pass({"torch": 0.3})],
    }
    lines = table.of_task("gru", results).splitlines()
    assert [line for line in lines if line.startswith("#")] == ["### gru, training", "### gru, inference"]
    assert [line.split(" | ")[2] for line in lines if line.startswith("| torch")] == ["200", "100"]
    assert lines[-1].startswith("Measured ")


def test_the_overhead_of_a_mode_is_read_from_what_is_stored(modes, tmp_path, monkeypatch):
    record = modes("record")
    monkeypatch.setattr(record, "OPERATORS", tmp_path / "operators.jsonl")
    assert record.overheads() == {}
    record.OPERATORS.write_text('{"environment": "torch", "result": {"row": ["torch", "eager", "2.00", "2.00"]}}\n')
    assert record.overheads() == {"torch": "2.00"}
    monkeypatch.setattr(record, "device", "cuda")
    assert record.overheads() == {}


def test_the_picture_shows_eager_time_over_graph_time(modes, make_pass, tmp_path):
    record, plot = modes("record"), modes("plot")
    results = {
        record.Cell("torch", "gru", "train"): [make_pass({"torch": 0.1, "torch-compile": 0.05})],
        record.Cell("jax", "gru", "train"): [make_pass({"jax": 0.1, "jax-op-by-op": 0.4})],
        record.Cell("torch", "gru", "infer"): [make_pass({"torch": 0.1}, {"torch-compile": "no g++"})],
    }
    text = modes("table").of_task("gru", results)
    assert list(plot.speedups(text, "train")) == [("jax", "gru", 4), ("torch", "gru", 2)]
    assert list(plot.speedups(text, "infer")) == []
    pytest.importorskip("vl_convert", reason="Install it with: pip install 'pytest-stele[report]'")
    plot.draw(text, tmp_path / "modes.svg")
    assert {">jax</text>", ">torch</text>", ">4</text>", ">2</text>"} <= set(
        re.findall(r">\w+</text>", (tmp_path / "modes.svg").read_text())
    )


def test_a_mode_may_be_eager_in_one_task_only(modes):
    pair = modes("plot").pair
    measured = {"paddle", "paddle-as-shipped", "paddle-to-static"}  # not the mode cinn, which sorts first
    assert pair("paddle", "gru", "infer", measured) == ("paddle-as-shipped", "paddle")
    assert pair("paddle", "generation", "infer", measured) == ("paddle", "paddle-to-static")
    assert pair("paddle", "gru", "train", {"paddle"}) == ("paddle", None)


def test_a_pass_is_read_as_it_was_stored(modes, make_pass, tmp_path, monkeypatch):
    record = modes("record")
    monkeypatch.setitem(record.FOLDERS, "cpu", tmp_path)
    cell, written = (
        record.Cell("torch", "gru", "train"),
        make_pass({"torch": 0.1}, {"torch-compile": "no g++"}),
    )
    monkeypatch.setattr(record, "measure_pass", lambda cell, seed: written)
    record.measure([cell], passes=2)
    record.measure([cell], passes=2)  # continues, and has nothing to do
    assert record.load(cell) == [written, written]
    assert record.load_all() == {cell: [written, written]}


def test_a_mode_that_fails_is_left_out_and_the_others_are_measured(modes, run, monkeypatch):
    record = modes("record")

    def side_by_side(sides, *arguments, **options):
        if "jax-op-by-op" in sides:
            raise record.measuring.SideFailed("jax-op-by-op", ValueError("out of memory\nmore"))
        return {name: of_mode(run, name, 0.1) for name in sides}

    monkeypatch.setattr(record.measuring, "side_by_side", side_by_side)
    monkeypatch.setattr(
        record.measuring,
        "inputs",
        lambda task: (INPUTS, None),
    )
    monkeypatch.setattr(record, "modes", lambda *_: [environments.load(name) for name in ("jax", "jax-op-by-op")])
    result = record.measure_pass(record.Cell("jax", "gru", "train"), seed=0)
    assert list(result.runs) == ["jax"]
    assert result.failed == {"jax-op-by-op": "out of memory"}


def test_each_framework_with_modes_says_which_are_eager():
    for name, environment in environments.described().items():
        if environment.mode in ("eager", "imperative", "op-by-op", "define-by-run"):
            assert environment.eager, f"the description of {name} does not say that it is eager"


def test_ideep_is_compared_with_the_modes_of_chainer(modes, monkeypatch):
    record = modes("record")
    ready = [environments.load(name) for name in ("chainer", "chainer-static-graph", "chainer-ideep", "torch")]
    monkeypatch.setattr(record, "environments_with", lambda *_: ready)
    found = record.modes(record.Cell("chainer", "cnn", "train"), record.settings())
    assert [one.name for one in found] == ["chainer", "chainer-static-graph", "chainer-ideep"]
