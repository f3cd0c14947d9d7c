"""The jobs of a fleet on Slurm."""

import os

import pytest

from stele.errors import SteleError
from stele.fleet import slurm
from stele.fleet.work import (
    Work,
)
from tests.support.virtual_fleet import run


@pytest.mark.slow
def test_jobs_of_an_array_are_done_as_processes_of_this_machine(tmp_path):
    """The local executor of submitit."""
    pytest.importorskip("submitit", reason="needs submitit: pip install submitit")

    def measure(request):
        if "fails" in request:
            raise SteleError("the framework fails")
        return {"pid": os.getpid()} if request else os.abort()

    requests = [{"number": 1}, {"number": 2}, {"fails": True}, {}]
    cells = [Work(str(number), f"cell {number}", request) for number, request in enumerate(requests)]
    with slurm.submitted(tmp_path, measure, None, cluster="local") as array:
        outcomes, _ = run(array, cells)
    pids = {outcomes[key].result["pid"] for key in ("0", "1")}
    assert len(pids) == 2 and os.getpid() not in pids
    assert outcomes["2"].failure == "the framework fails"
    assert "its job ended without a result" in outcomes["3"].failure


def test_jobs_that_a_killed_command_left_are_cancelled(tmp_path, monkeypatch):
    for name in ("7_0_submitted.pkl", "7_1_submitted.pkl", "7_0_0_result.pkl"):
        (tmp_path / name).touch()
    asked = []
    monkeypatch.setattr(slurm.subprocess, "run", lambda command, **_: asked.append(command))
    slurm.cancel_earlier(tmp_path)
    slurm.cancel_earlier(tmp_path / "absent")
    assert asked == [["scancel", "7_1"]]
