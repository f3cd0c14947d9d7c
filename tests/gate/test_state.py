"""The results of a trial so far, and the launches that it needs."""

from stele.gate.metrics import (
    BLOCKS,
    LATENCY,
    LOADER,
    LONG,
    METRICS,
    PROFILED,
    SHORT,
    SIZES,
    WARM,
)
from stele.gate.state import State, probes_of
from stele.subjects import Cell
from tests.support.gates import BY_NAME, CELL, trial_with


def test_each_metric_selects_the_launches_that_measure_it():
    assert [probe.kind for probe in probes_of(CELL, METRICS)] == [LONG, SHORT]
    assert [probe.kind for probe in probes_of(CELL, [BY_NAME["first-step"]])] == [SHORT]
    selected = ("latency", "latency-p99", "dispatch", "first-step-cached", "overhead", "idle", "fed-step")
    kinds = [probe.kind for probe in probes_of(CELL, [BY_NAME[name] for name in selected])]
    assert kinds == [LATENCY, BLOCKS, WARM, SIZES, PROFILED, LOADER]


def test_the_latency_is_judged_in_inference_only():
    cells = Cell("gru", "train"), Cell("gru", "infer")
    state = State(cells, trial_with(["latency", "throughput"]).metrics)
    assert {str(probe.cell): probe.kind for probe in state.results if probe.kind == LATENCY} == {"gru infer": LATENCY}
    assert [metric.name for metric in state.metrics_of(cells[0])] == ["throughput"]
