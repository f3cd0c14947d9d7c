"""The study of the gate's verdicts, checks/study: its decision rules, its windows and its planted faults."""

import sys
from pathlib import Path

import numpy
import pytest
import scipy.stats

from stele.environments import Environment
from stele.gate.judgement import MAX_PASSES
from stele.gate.state import Result
from stele.gate.trial import ARMS
from stele.measuring import measure
from stele.measuring.conditions import Conditions
from stele.measuring.settings import Settings
from stele_suite import tasks

STUDY = Path(__file__).parents[2] / "checks" / "study"
NOISES = ("normal", "t, 2 degrees of freedom", "two modes", "drift", "one outlier in ten")


@pytest.fixture
def study(monkeypatch):
    """study(name) -> a module of the study."""
    monkeypatch.syspath_prepend(str(STUDY))
    before = set(sys.modules)
    yield lambda name: __import__(name)
    for name in set(sys.modules) - before:
        if str(STUDY) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def pairs(slowdown, count=34):
    return list(numpy.random.default_rng(0).normal(numpy.log1p(slowdown), 0.01, count))


def test_the_previous_rule_passes_without_a_change_after_six_pairs(study):
    result = study("previous").judge({"step": pairs(0.0)}, {"step": 0.05})["step"]
    assert (result.status, result.pairs, result.open) == ("PASS", 6, False)


def test_the_previous_rule_finds_a_slow_down_of_ten_per_cent_after_ten_fresh_pairs(study):
    series, margins = {"step": pairs(0.1), "other": pairs(0.0)}, {"step": 0.05, "other": 0.05}
    result = study("previous").judge(series, margins)["step"]
    assert (result.status, result.pairs) == ("REGRESSED", 16)


def test_the_previous_rule_needs_more_pairs_than_six_for_a_slow_down(study):
    result = study("previous").judge({"step": pairs(0.1, 6)}, {"step": 0.05})["step"]
    assert (result.status, result.open) == ("INCONCLUSIVE", True)


@pytest.mark.parametrize("seed", range(5))
def test_the_signed_rank_test_is_that_of_scipy(study, seed):
    values = numpy.random.default_rng(seed).normal(0.5, 1, 10)
    expected = scipy.stats.wilcoxon(values, alternative="greater", method="exact").pvalue
    assert study("previous").signed_rank_p(list(values)) == pytest.approx(expected)


def test_the_least_p_value_of_contrasts_is_one_of_all_choices_of_the_new_arm(study):
    rows = numpy.array([[0.0, 0.001 * number, 1.0] for number in range(1, 6)])
    assert study("rules").contrast_p(rows) == pytest.approx(3.0**-5)
    assert study("rules").contrast_p(-rows) == pytest.approx(1.0)


@pytest.mark.parametrize("noise", NOISES)
def test_no_rule_calls_equal_launches_slower_and_each_finds_ten_per_cent(study, noise):
    simulate = study("simulate")
    assert tuple(simulate.NOISES) == NOISES
    for rule in study("rules").RULES:
        result = simulate.simulate(noise, 0.008, rule, trials=5)
        assert (result.regressed[0], result.regressed[-1]) == (0.0, 1.0), rule


def test_a_window_shuffles_the_launches_of_each_pass_and_slows_new(study):
    values = {"step": numpy.arange(20.0).reshape(5, 4), "import": numpy.zeros((5, 4))}
    window = study("replay").window(values, numpy.random.default_rng(0), 0.1)
    steps = window["step"] - [0.0, 0.0, *2 * [numpy.log1p(0.1)]]
    first = numpy.round(steps.min(1)) / 4
    assert list(numpy.diff(first) % 5) == [1.0] * (MAX_PASSES - 1)  # it continues at the beginning of the pool
    assert numpy.sort(steps, axis=1) == pytest.approx(4 * first[:, None] + numpy.arange(4))
    assert len(numpy.unique(steps.argsort(1), axis=0)) > 1
    assert not window["import"].any()


@pytest.mark.parametrize(
    ("results", "expected"),
    [([], True), ([("REGRESSED", 1.9, 8)], True), ([("REGRESSED", 2.1, 8)], False),
     ([("REGRESSED", 1.9, 9)], False), ([("INCONCLUSIVE", 1.9, 8)], False)],
)  # fmt: skip
def test_a_target_holds_if_the_status_the_time_and_the_passes_do(study, results, expected):
    target = study("targets").TARGETS["10-gru-infer"]
    runs = [dict(zip(("status", "minutes", "passes"), result, strict=True)) for result in results]
    assert study("live_table").holds(target, runs) is expected


def test_a_target_of_less_power_holds_if_a_run_in_five_fails(study):
    target = study("targets").TARGETS["3-cnn-train"]
    runs = [{"status": "REGRESSED", "minutes": 5.0, "passes": 6}] * 4
    late = [{"status": "INCONCLUSIVE", "minutes": 7.0, "passes": 9}]
    assert study("live_table").holds(target, runs + late)
    assert not study("live_table").holds(target, runs + 2 * late)


@pytest.mark.slow
def test_pytest_benchmark_reports_the_slower_of_two_launches(study):
    launches = [([0.01] * 20, [0.01] * 20), ([0.01] * 20, [0.013] * 20)]
    assert study("tools").pytest_benchmark(launches, "median:10%") == [False, True]


@pytest.mark.slow
def test_a_worker_that_loses_accuracy_reports_three_points_less(start, tmp_path):
    accuracies = [accuracy(start, tmp_path, fault) for fault in ("none", "forget")]
    assert accuracies[0] - accuracies[1] == pytest.approx(0.03)


def accuracy(start, folder, fault):
    """Return the accuracy that the oracle with this fault reports on a little data."""
    task, arrays = tasks.make("gru", "smoke"), {}
    for part, size in (("train", task.train), ("test", task.test)):
        arrays[f"{part}_x"] = numpy.full((size, 5), 7, numpy.int32)
        arrays[f"{part}_y"] = numpy.zeros(size, numpy.int32)
    paths = {key: str(folder / f"{key}.npy") for key in arrays}
    for key, array in arrays.items():
        numpy.save(paths[key], array)
    command = (sys.executable, str(STUDY / "faulty.py"), fault)
    worker = start(Environment(name="numpy", label="NumPy", framework="numpy", command=command))
    plan = measure.Plan(task="gru", phase="train", scale="smoke", data=paths, data_origin={"origin": "x"})
    return measure.measure(worker, plan, Settings(device="cpu", threads=1)).learning.accuracy


def test_recorded_passes_outlast_the_folder(study, tmp_path):
    archive, folder = study("archive"), tmp_path / "study"
    (folder / "quiet").mkdir(parents=True)
    for name in ("a", "b"):
        (folder / f"quiet/{name}.jsonl").write_text(name)
    archive.pack(folder, tmp_path / "passes.tar.xz")
    before = (tmp_path / "passes.tar.xz").read_bytes()
    (folder / "quiet/a.jsonl").unlink()
    (folder / "quiet/b.jsonl").write_text("longer")
    archive.unpack(folder, tmp_path / "passes.tar.xz")
    assert (folder / "quiet/a.jsonl").read_text() == "a"
    assert (folder / "quiet/b.jsonl").read_text() == "longer"
    (folder / "quiet/b.jsonl").write_text("b")
    archive.pack(folder, tmp_path / "passes.tar.xz")
    assert (tmp_path / "passes.tar.xz").read_bytes() == before


def test_bursts_add_their_share_to_the_launch_whose_turn_it_is(study):
    seconds = numpy.full((4, 500), 0.01)
    hit = study("steal").with_bursts(seconds, 0.2, 0.005, numpy.random.default_rng(0))
    assert (hit >= seconds).all()
    assert 1 - seconds.sum() / hit.sum() == pytest.approx(0.2, abs=0.03)
    assert (study("steal").with_bursts(seconds, 0.0, 0.005, numpy.random.default_rng(0)) == seconds).all()


def test_a_pass_that_is_left_out_costs_time(study):
    steal = study("steal")
    rows = [((0.001, -0.001), (0.0005, -0.0005))] * 40
    assert steal.outcome(rows, range(40)) == ("PASS", 3)
    assert steal.outcome(rows, range(1, 40, 2)) == ("PASS", 6)
    assert steal.outcome(rows, []) == ("INCONCLUSIVE", 40)


def test_the_study_names_the_machines_of_its_launches(study, run):
    result = Result(dict.fromkeys(ARMS, run), [], Conditions(seconds=60.0, steal=0.0, foreign=0.0, gpu=None), 30.0)
    line = study("rule_tables").conditions_line({"quiet": {"cell": [result]}})
    assert line.startswith("1 passes of four launches, 0 minutes, on ") and str(run.machine.processors) in line
