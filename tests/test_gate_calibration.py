"""Calibration on simulated launches with known noise, and advice on conditions with a known fault."""

import numpy
import pytest

from stele import __main__ as entry_point
from stele.gate import calibration
from stele.gate.advice import advise
from stele.measuring import measure
from stele.measuring.conditions import Conditions
from stele.measuring.settings import Settings

QUIET = Conditions(seconds=3.0, steal=0.0, foreign=0.0, gpu=None)
FACTS = {"processors": 2, "governor": "performance", "huge_pages": "always [madvise] never"}
STEADY = Settings(device="cpu", threads=1, malloc="steady")


@pytest.fixture(autouse=True)
def fewer_trials(monkeypatch):
    monkeypatch.setattr(calibration, "TRIALS", 20)


def estimate(spread, seconds=6.0, count=60):
    values = spread * numpy.random.RandomState(0).standard_normal((count, 4))
    passes = [(tuple(row[:2]), tuple(row[2:])) for row in values]
    return calibration.estimate_sensitivity(passes, [0.02] * count, seconds=seconds, minutes=5)


def test_a_slow_down_of_two_per_cent_is_detected_on_a_quiet_machine():
    sensitivity = estimate(0.01)
    assert sensitivity.spread == pytest.approx(0.01, rel=0.3)
    assert sensitivity.smallest <= 0.02
    assert sensitivity.alarms <= 0.01


def test_only_large_slow_downs_are_detected_on_a_noisy_machine():
    sensitivity = estimate(0.3)
    assert sensitivity.smallest is None or sensitivity.smallest >= 0.2
    assert sensitivity.alarms <= 0.02


def test_launches_that_are_too_long_for_the_budget_are_reported():
    sensitivity = estimate(0.01, seconds=100)
    assert sensitivity.smallest is None
    assert "needs 7 minutes to confirm" in calibration.messages("cnn train", sensitivity, minutes=5)[1]


@pytest.mark.parametrize(
    "condition, facts, settings, message",
    [
        (QUIET._replace(foreign=0.5), {}, STEADY, "Other processes used 50% of the processors"),
        (QUIET._replace(steal=0.1), {}, STEADY, "The hypervisor gave 10.0%"),
        (QUIET, {"governor": "powersave"}, STEADY, "The frequency governor is powersave"),
        (QUIET, {"huge_pages": "always madvise [never]"}, STEADY, "Transparent huge pages are off"),
        (QUIET, {"processors": 1}, STEADY, "One processor runs the measurement"),
        (QUIET, {}, Settings(device="cpu", threads=2, malloc="steady"), "Use --threads 1: it varies less"),
        (
            QUIET,
            {},
            Settings(device="cpu", threads=1),
            "--malloc steady avoids this noise, but may hide a change",
        ),
        (QUIET._replace(gpu={"clocks_throttle_reasons.active": "0x40"}), {}, STEADY, "The GPU was throttled"),
    ],
)
def test_each_problem_gives_one_piece_of_advice(condition, facts, settings, message, monkeypatch):
    monkeypatch.setattr("stele.measuring.machine.read_text", lambda path: None)
    [advice] = advise({**FACTS, **facts}, [condition], settings)
    assert message in advice


def test_a_quiet_machine_gets_no_advice(monkeypatch):
    monkeypatch.setattr("stele.measuring.machine.read_text", lambda path: None)
    assert list(advise(FACTS, [QUIET], STEADY)) == []


@pytest.mark.parametrize(
    "path, value, message",
    [
        ("/sys/devices/system/cpu/cpufreq/boost", "1", "Turbo is on"),
        ("/sys/devices/system/cpu/intel_pstate/no_turbo", "0", "Turbo is on"),
        ("/sys/devices/system/cpu/smt/active", "1", "Two hardware threads share each core"),
    ],
)
def test_kernel_settings_give_advice(monkeypatch, path, value, message):
    monkeypatch.setattr("stele.measuring.machine.read_text", lambda name: value if name == path else None)
    [advice] = advise(FACTS, [QUIET], STEADY)
    assert message in advice


def test_the_command_measures_a_release_and_prints_the_estimate(
    add_environment, monkeypatch, tmp_path, capsys
):
    inputs = {"data": None, "data_origin": {"origin": "official", "fingerprint": "0"}}
    monkeypatch.setattr(measure, "inputs", lambda task: (inputs, None))
    add_environment("steady", seconds=[0.5, *[0.01] * 30])
    options = [
        "--framework=steady",
        "--task=gru",
        "--budget=0s",
        "--at-once=1",
        f"--json={tmp_path / 'estimate.json'}",
    ]
    assert entry_point.main(["calibrate", *options]) == 0
    out = capsys.readouterr().out
    assert "gru train: the ratio of a pass varies by 0.0%, steps within a launch by 0.0% (5 passes" in out
    assert "In 5 minutes the gate detects a slow-down of 1.5% in nine of ten cases" in out
    assert (tmp_path / "estimate.json").exists()
