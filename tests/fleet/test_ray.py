"""A fleet on real Ray. Frameworks are scripted, so a cell takes a moment."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stele import schema
from stele.fleet import guard
from stele.gate import record, replay
from stele.gate.outcome import KEY
from tests.support.processes import wait_until, with_variable

CELLS = ("--framework=steady", "--task=gru", "--phase=train", "--scale=smoke")


@pytest.fixture
def fleet(add_environment, tmp_path):
    """fleet(*words) -> a running ``stele fleet``; at the end, everything that it started is ended."""
    add_environment("steady", seconds=[0.5, *[0.1] * 20], accuracy=0.5)
    started = []

    def fleet(*words, **variables):
        command = [sys.executable, "-m", "stele", "fleet", *words]
        started.append(
            subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
                env={**os.environ, "NAMED": str(tmp_path), **variables},
            )
        )  # fmt: skip
        return started[-1]

    yield fleet
    for process in started:
        process.kill()
        process.communicate()
    end_all(tmp_path)
    shutil.rmtree(short_folder(), ignore_errors=True)


def short_folder():
    """Return a folder with a short path: sockets have at most 107 characters."""
    folder = Path("/tmp") / f"stele-ray-{os.getpid()}"
    folder.mkdir(exist_ok=True)
    return folder


def left(tmp_path):
    """Return what was started and still runs. Ray writes titles over the environment of its processes."""
    return {
        *with_variable("NAMED", str(tmp_path)),
        *(process.pid for process in guard.marked(str(short_folder()))),
    }


def end_all(tmp_path):
    while found := left(tmp_path):
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def runs(tmp_path):
    return sorted((tmp_path / ".stele/runs").glob("*.json"))


@pytest.mark.slow
def test_cells_are_measured_on_this_machine_and_no_process_remains(fleet, tmp_path):
    process = fleet("run", *CELLS, "--launches=3")
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    assert "3 of 3: steady gru train, launch 3: measured on" in output
    assert "| Steady |" in output
    assert len(runs(tmp_path)) == 3
    wait_until(lambda: not left(tmp_path), 20)
    assert ", 3 of 3 measured, 0 failed" in fleet("status").communicate(timeout=60)[0]


@pytest.mark.slow
def test_a_failing_cell_is_named_and_the_others_are_measured(fleet, add_environment, tmp_path):
    add_environment("broken", measure="crash")
    process = fleet("run", "--framework=steady,broken", *CELLS[1:])
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 2, output
    assert "broken gru train, launch 1: FAILED: Worker 'broken'" in output
    assert len(runs(tmp_path)) == 1


@pytest.mark.slow
def test_a_type_that_no_node_has_is_told_at_once(fleet, tmp_path):
    process = fleet("run", *CELLS, "--type=H100")
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "no node has the type H100. The types of the nodes: " in output


@pytest.mark.slow
def test_a_command_that_was_killed_continues(fleet, tmp_path):
    words = ("run", *CELLS, "--launches=6")
    first = fleet(*words)
    wait_until(lambda: len(runs(tmp_path)) >= 2, 60)
    first.kill()
    first.wait()
    wait_until(lambda: not left(tmp_path), 20)
    before = {path: path.read_bytes() for path in runs(tmp_path)}
    assert 2 <= len(before) < 6
    second = fleet(*words)
    output, _ = second.communicate(timeout=120)
    assert second.returncode == 0, output
    assert f"{len(before)} of 6 launches are measured" in output
    assert len(runs(tmp_path)) == 6
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_command_leaves_no_process(fleet, tmp_path, stop):
    process = fleet("run", *CELLS, "--launches=50")
    wait_until(lambda: len(runs(tmp_path)) >= 1, 60)
    process.send_signal(stop)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    wait_until(lambda: not left(tmp_path), 20)


@pytest.mark.slow
def test_a_gate_on_the_fleet_has_the_verdicts_of_a_local_gate(fleet, add_environment, tmp_path):
    add_environment("slower", seconds=[0.5, *[0.2] * 20], accuracy=0.5)
    words = ("steady", "slower", "--task=gru", "--phase=train", "--metric=step", "--budget=60s")
    process = fleet("gate", *words, "--json=gate.json")
    output, _ = process.communicate(timeout=200)
    assert process.returncode == 1, output
    assert "  REGRESSED      train step: " in output
    [path] = (tmp_path / ".stele/gates").glob("*.jsonl")
    on_fleet = schema.to_json(record.read(path).get(*KEY)["verdicts"])
    assert json.loads(Path("gate.json").read_text())["verdicts"] == on_fleet
    # without the line of the verdicts, the local gate judges the same launches
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]))
    local = schema.to_json(replay.load(path).verdicts)
    keys = ("task", "phase", "metric", "status", "passes")
    assert [{key: one[key] for key in keys} for one in local] == [{key: one[key] for key in keys} for one in on_fleet]
    # and so does stele gate --resume, which launches nothing
    process = subprocess.run(
        [sys.executable, "-m", "stele", "gate", *words, f"--resume={path}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 1, process.stderr
    assert schema.to_json(record.read(path).get(*KEY)["verdicts"]) == on_fleet


@pytest.mark.slow
def test_a_gate_whose_node_does_not_fit_the_type_is_told(fleet, tmp_path):
    process = fleet("gate", "steady", "steady", "--task=gru", "--metric=step", "--type=H100")
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "gate on H100: no node has the type H100" in output


@pytest.mark.slow
def test_machines_join_with_one_command(fleet, tmp_path):
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{bound.getsockname()[1]}"
    head = fleet("join", "--head", address, RAY_AUTH_TOKEN="0" * 32, RAY_TMPDIR=str(short_folder()))
    output, _ = head.communicate(timeout=120)
    if head.returncode:
        pytest.fail(output)
    variables = {"RAY_AUTH_TOKEN": "0" * 32, "RAY_AUTH_MODE": "token", "RAY_TMPDIR": str(short_folder())}
    assert "To add a node, run there:" in output
    process = fleet("run", *CELLS, "--launches=2", f"--address={address}", **variables)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    assert len(runs(tmp_path)) == 2


@pytest.mark.slow
def test_an_unknown_cluster_is_one_message(fleet, tmp_path):
    began = time.monotonic()
    process = fleet("run", *CELLS, "--address=127.0.0.1:1")
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "stele: Cannot use the Ray cluster at 127.0.0.1:1: " in output
    assert "Traceback" not in output
    assert time.monotonic() - began < 30
