"""``stele gate``: its options, its messages, its reports, and what an interruption leaves."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from stele import __main__ as entry_point
from stele.gate import preparation
from stele.measuring import processors
from tests.support.gates import SECONDS, answer, entries, measure_arms, measure_with_workers, printed
from tests.support.processes import alive, wait_until


def test_a_release_beside_itself_is_said_to_be_no_upgrade(gate, capsys):
    assert gate() == 0
    capsys.readouterr()
    assert entry_point.main(["gate", "old", "old", "--metric=step", "--task=gru", "--phase=infer"]) == 0
    out = printed(capsys)
    assert out.startswith("PASS  old → old")
    assert "OLD and NEW are the same, so this gate checks the machine and not an upgrade." in out


@pytest.fixture
def delete(monkeypatch):
    """delete(folder) lets somebody delete a folder before the second pass."""

    def delete(folder, measure_arms=measure_arms):
        passes = []

        def measure_and_delete(sides, *about):
            passes.append(sides)
            if len(passes) == 2:
                shutil.rmtree(folder)
            return measure_arms(sides, *about)

        answer(monkeypatch, measure_and_delete)

    return delete


def deleted(folder):
    return f"The folder {folder} was deleted while Stele used it. Create it again, then run the command again."


def test_a_project_that_is_deleted_during_a_gate_is_named(gate, delete, tmp_path, capsys):
    delete(tmp_path)
    assert gate() == 2
    output = capsys.readouterr()
    assert output.err.splitlines()[-1].endswith(deleted(tmp_path)) and "verdict" not in output.out


def test_a_folder_of_records_that_is_deleted_during_a_gate_is_named(gate, delete, tmp_path, capsys):
    delete(tmp_path / ".stele")
    assert gate() == 2
    assert capsys.readouterr().err.splitlines()[-1].endswith(deleted(".stele/gates"))


def test_a_folder_for_temporary_files_that_is_deleted_during_a_gate_is_named(
    gate, delete, tmp_path, monkeypatch, capsys
):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    delete(folder, measure_with_workers)
    assert gate("--budget=60s") == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"stele: {deleted(folder)}"


def test_the_record_has_the_command_and_may_be_resumed_by_another_one(gate, capsys):
    assert gate("--budget=0.001s") == 3
    path, _ = entries()
    assert json.loads(path.read_text().splitlines()[0])["command"] == [
        "gate", "old", "new", "--metric=step", "--task=gru", "--phase=infer", "--budget=0.001s",
    ]  # fmt: skip
    capsys.readouterr()
    assert entry_point.main(["report"]) == 0
    words = "stele gate old new --metric=step --task=gru --phase=infer --resume .stele"
    assert words in " ".join(capsys.readouterr().out.split())
    assert gate("--budget=5m", "--resume") == 0


@pytest.mark.parametrize("finished", [0, 2])
def test_an_interrupt_says_how_to_continue_if_a_result_is_saved(gate, monkeypatch, capsys, finished):
    passes = iter([measure_arms] * finished)

    def interrupted(*arguments):
        for measure_pass in passes:
            return measure_pass(*arguments)
        raise KeyboardInterrupt

    answer(monkeypatch, interrupted)
    assert gate("--budget", "9m") == 130
    command = "stele gate old new --metric=step --task=gru --phase=infer --budget 9m --resume"
    saved = f" Finished results are saved. Continue with: {command}" if finished else ""
    assert capsys.readouterr().err.splitlines()[-1] == f"stele: interrupted.{saved}"


def test_an_interrupt_before_the_record_speaks_of_no_results(gate, monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(preparation, "prepare", interrupted)
    assert gate() == 130
    assert capsys.readouterr().err == "stele gate  old → new  on gru\nstele: interrupted.\n"


@pytest.mark.slow
@pytest.mark.parametrize("parallel", [1, min(2, len(processors.lanes(1)))])
def test_ctrl_c_leaves_a_record_and_no_process(add_environment, tmp_path, parallel):
    add_environment("old", seconds=SECONDS, infer="hang_with_child")
    add_environment("new", seconds=SECONDS, infer="hang_with_child")
    line = [
        sys.executable,
        "-m",
        "stele",
        "gate",
        "old",
        "new",
        "--task=resnet50",
        "--phase=infer",
        "--metric=step",
        f"--parallel={parallel}",
    ]
    process = subprocess.Popen(line, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    wait_until(lambda: len(children.read_text().split()) == 4 * parallel)
    workers = children.read_text().split()
    grandchildren = [Path(f"/proc/{worker}/task/{worker}/children") for worker in workers]
    wait_until(lambda: any(path.read_text().split() for path in grandchildren))
    family = [*map(int, workers), *(int(pid) for path in grandchildren for pid in path.read_text().split())]
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(10) == 130
    assert process.stderr.read().endswith("stele: interrupted.\n")  # no launch had ended
    process.stderr.close()
    wait_until(lambda: not any(map(alive, family)))
    assert list((tmp_path / ".stele/gates").glob("*.jsonl"))


# invalid options


@pytest.mark.parametrize(
    "options, message",
    [
        (["--metric=steps"], "Unknown metric 'steps'. Did you mean 'step'?"),
        (["--task=cn"], "Unknown task 'cn'. Did you mean 'cnn'?"),
        (["--task="], "--task '' contains no name"),
        (["--margin=5"], "--margin 5 is not a threshold. Use --margin 5% or --margin METRIC=5%"),
        (["--margin=parity=5%"], "--margin parity=5%"),
        (["--tolerance=nan%"], "--tolerance nan% is not a threshold."),
        (
            ["--tolerance=8%", "--margin=5%"],
            "--margin step=5% is below --tolerance step=",
        ),
        (["--threads=1000"], "--threads 1000 is too much"),
        (["--metric=accuracy"], "--metric accuracy needs training, but --phase infer excludes it"),
        (
            ["--metric=loader,fed-step"],
            "--metric loader,fed-step needs training, but --phase infer excludes it",
        ),
        (
            ["--metric=latency", "--phase=train"],
            "--metric latency needs inference, but --phase train excludes it",
        ),
        (
            ["--metric=loader", "--phase=train"],
            "needs a task with loaders, and 'gru' has none. Add --task cnn.",
        ),
        (["--json=nowhere/report.json"], "nowhere/report.json cannot be written"),
    ],
)
def test_an_error_quotes_the_invalid_option(gate, capsys, options, message):
    assert gate(*options) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("task", "scale", "message"),
    [
        ("stack", "depth-63", "Unknown scale 'depth-63' for task stack. Did you mean 'depth-64'?"),
        ("gru", "depth-64", "Unknown scale 'depth-64' for task gru. Known: study, gate, quick, paper."),
        ("gru", "smoke", "Unknown scale 'smoke' for task gru."),
    ],
)
def test_a_scale_that_a_task_does_not_have_is_an_error(gate, capsys, task, scale, message):
    assert gate(f"--task={task}", f"--scale={scale}") == 2
    assert message in capsys.readouterr().err


def test_an_unknown_environment_is_an_error(gate, capsys):
    assert entry_point.main(["gate", "torhc", "torch"]) == 2
    assert "Did you mean 'torch'?" in capsys.readouterr().err
