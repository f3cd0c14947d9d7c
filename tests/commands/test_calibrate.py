"""``stele calibrate`` as a user runs it."""

import pytest

from stele import __main__ as entry_point
from stele.gate import calibration
from stele.measuring import measure
from stele.measuring.run import Origin


@pytest.mark.slow
def test_the_command_measures_a_release_and_prints_the_estimate(add_environment, monkeypatch, tmp_path, capsys):
    inputs = {"data": None, "data_origin": Origin(origin="official", fingerprint="0")}
    monkeypatch.setattr(measure, "inputs", lambda task: (inputs, None))
    monkeypatch.setattr(calibration, "TRIALS", 20)  # in which a steady machine shows what it shows in 200
    add_environment("steady", seconds=[0.5, *[0.01] * 30])
    options = [
        "--framework=steady",
        "--task=gru",
        "--budget=0.001s",
        "--parallel=1",
        f"--json={tmp_path / 'estimate.json'}",
    ]
    assert entry_point.main(["calibrate", *options]) == 0
    out = capsys.readouterr().out
    assert "gru train: the ratio of a pass varies by 0.0%, steps within a launch by 0.0% (5 passes" in out
    assert "In 5 minutes the gate detects a slow-down of 1.5% in nine of ten cases" in out
    assert (tmp_path / "estimate.json").exists()
