"""Advice on a machine, on conditions with a known fault."""

import pytest
from msgspec.structs import replace

from stele.gate.advice import advise
from stele.measuring.conditions import Conditions
from stele.measuring.machine import Machine
from stele.measuring.settings import Settings

QUIET = Conditions(seconds=3.0, steal=0.0, foreign=0.0, gpu=None)
FACTS = Machine(processors=2, governor="performance", huge_pages="always [madvise] never")
STEADY = Settings(device="cpu", threads=1, malloc="steady")


@pytest.mark.parametrize(
    "condition, facts, settings, message",
    [
        (replace(QUIET, foreign=0.5), {}, STEADY, "Other processes used 50% of the processors"),
        (replace(QUIET, steal=0.1), {}, STEADY, "The hypervisor gave 10.0%"),
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
        (replace(QUIET, gpu={"clocks_throttle_reasons.active": "0x40"}), {}, STEADY, "The GPU was throttled"),
    ],
)
def test_each_problem_gives_one_piece_of_advice(condition, facts, settings, message, monkeypatch):
    monkeypatch.setattr("stele.measuring.machine.read_text", lambda path: None)
    [advice] = advise(replace(FACTS, **facts), [condition], settings)
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
