"""What a machine is said to see: drawn launches with a known noise, and conditions with a known fault."""

import numpy
import pytest

from stele import __main__ as door
from stele.gate import calibration
from stele.gate.advice import advice
from stele.gate.conditions import Conditions
from stele.measuring import measure
from stele.measuring.settings import Settings

QUIET = Conditions(seconds=3.0, steal=0.0, foreign=0.0, gpu=None)
FACTS = {"processors": 2, "governor": "performance", "huge_pages": "always [madvise] never"}
STEADY = Settings(device="cpu", threads=1, malloc="steady")


@pytest.fixture(autouse=True)
def fewer_trials(monkeypatch):
    monkeypatch.setattr(calibration, "TRIALS", 20)


def sight(spread, seconds=3.0, count=60):
    differences = spread * numpy.random.RandomState(0).standard_normal(count)
    return calibration.sight(list(differences), [0.02] * count, seconds=seconds, minutes=5)


def test_a_quiet_machine_sees_two_per_cent():
    found = sight(0.01)
    assert found.spread == pytest.approx(0.01, rel=0.3)
    assert found.smallest <= 0.02
    assert found.alarms <= 0.01


def test_a_noisy_machine_sees_no_such_thing():
    found = sight(0.3)
    assert found.smallest is None or found.smallest >= 0.2
    assert found.alarms <= 0.02


def test_launches_too_long_for_the_time_are_said_so():
    found = sight(0.01, seconds=40)
    assert found.smallest is None
    assert "takes 16 minutes to confirm" in calibration.messages("cnn train", found, minutes=5)[1]


@pytest.mark.parametrize(
    "condition, facts, settings, message",
    [
        (QUIET._replace(foreign=0.5), {}, STEADY, "Other processes took 50% of the processors"),
        (QUIET._replace(steal=0.1), {}, STEADY, "The hypervisor gave 10.0%"),
        (QUIET, {"governor": "powersave"}, STEADY, "The frequency governor is powersave"),
        (QUIET, {"huge_pages": "always madvise [never]"}, STEADY, "Transparent huge pages are off"),
        (QUIET, {"processors": 1}, STEADY, "One processor has to do"),
        (QUIET, {}, Settings(device="cpu", threads=2, malloc="steady"), "--threads 1 is steadier"),
        (QUIET, {}, Settings(device="cpu", threads=1), "--malloc steady takes that noise away"),
        (QUIET._replace(gpu={"clocks_throttle_reasons.active": "0x40"}), {}, STEADY, "The GPU was throttled"),
    ],
)
def test_what_could_be_better_is_advised(condition, facts, settings, message, monkeypatch):
    monkeypatch.setattr("stele.measuring.machine.text", lambda path: None)
    [said] = advice({**FACTS, **facts}, [condition], settings)
    assert message in said


def test_where_all_is_well_nothing_is_advised(monkeypatch):
    monkeypatch.setattr("stele.measuring.machine.text", lambda path: None)
    assert list(advice(FACTS, [QUIET], STEADY)) == []


@pytest.mark.parametrize(
    "path, value, message",
    [
        ("/sys/devices/system/cpu/cpufreq/boost", "1", "Turbo is on"),
        ("/sys/devices/system/cpu/intel_pstate/no_turbo", "0", "Turbo is on"),
        ("/sys/devices/system/cpu/smt/active", "1", "Two threads share a core"),
    ],
)
def test_what_the_kernel_says_is_advised(monkeypatch, path, value, message):
    monkeypatch.setattr("stele.measuring.machine.text", lambda asked: value if asked == path else None)
    [said] = advice(FACTS, [QUIET], STEADY)
    assert message in said


def test_a_release_is_launched_and_the_machine_described(row, monkeypatch, tmp_path, capsys):
    given = {"data": None, "data_origin": {"origin": "official", "fingerprint": "0"}}
    monkeypatch.setattr(measure, "inputs", lambda task: (given, None))
    row("steady", seconds=[0.5, *[0.01] * 30])
    options = ["--framework=steady", "--task=gru", "--budget=0s", f"--json={tmp_path / 'seen.json'}"]
    assert door.main(["calibrate", *options]) == 0
    out = capsys.readouterr().out
    assert "gru train: the two of a pair differ by 0.0%, steps within a launch by 0.0% (6 pairs" in out
    assert "In 5 minutes a slow-down of 1.5% is found nine times in ten, judged alone." in out
    assert (tmp_path / "seen.json").exists()
