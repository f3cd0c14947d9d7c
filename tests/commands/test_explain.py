"""``stele explain``, and the explanation of a gate, as a user runs them."""

import json

import pytest

from tests.support.documents import rows


@pytest.mark.slow
def test_the_operation_that_became_slower_is_named(explain, capsys, tmp_path):
    path = tmp_path / "explanation.json"
    assert explain("--times=2", f"--json={path}", new={"table": {"seed": "7"}}) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "gru infer: old to new"
    assert "(90.9% slower)" in lines[2]
    assert lines[4].split() == ["conv", "8.00", "18.0", "+10.00", "100%", "2", "2"]
    assert "\x1b" not in "".join(lines)
    assert "default: seed: 0 → 7" in lines
    assert "kernels: oneDNN convolution: brgconv (8) → ref (8)" in lines
    assert not any("same" in line for line in lines)
    content = json.loads(path.read_text())
    document = "stele explain --json"
    assert set(content) == set(rows(document))
    assert set(content["cells"]["gru infer"]) == set(rows(document, "Comparison"))
    assert set(content["cells"]["gru infer"]["operations"][0]) == set(rows(document, "Operation"))
    assert content["cells"]["gru infer"]["operations"][0] == {
        "name": "conv", "old": 0.008, "new": 0.018, "old_calls": 2.0, "new_calls": 2.0
    }  # fmt: skip


def test_a_worker_without_a_profiler_is_an_error(explain, capsys):
    assert explain("--times=1", new={"profile": None}) == 2
    assert "The worker of 'new' is not in Python, and has no profiler." in capsys.readouterr().err


def test_a_launch_that_fails_is_an_error_that_names_the_arm(explain, capsys):
    assert explain("--times=1", new={"infer": "raise_error"}) == 2
    assert "NEW failed: Worker 'new' failed during 'infer'" in capsys.readouterr().err


@pytest.mark.slow
def test_a_gate_that_does_not_pass_explains_its_times(explain, capsys, tmp_path):
    options = ("--metric=step", "--budget=60s", "--explain", "--fail-fast", "--markdown=gate.md")
    assert explain(*options, command="gate") == 1
    output = capsys.readouterr()
    assert "the operation conv changed by +10.00 ms a step" in (tmp_path / "gate.md").read_text()
    assert "REGRESSED" in output.out
    assert "conv" in output.out
    [path] = (tmp_path / ".stele/gates").glob("*.explanation.json")
    assert "explanation: " in output.err
    assert json.loads(path.read_text())["schema"] == 1


@pytest.mark.slow
def test_a_gate_whose_explanation_fails_keeps_its_verdict(explain, capsys):
    options = ("--metric=step", "--budget=60s", "--explain", "--fail-fast")
    assert explain(*options, command="gate", new={"profile": None}) == 1
    assert "stele: not explained: The worker of 'new'" in capsys.readouterr().err


@pytest.mark.slow
def test_a_gate_that_passes_explains_nothing(explain, capsys):
    assert explain("--metric=host-memory", "--budget=60s", "--explain", command="gate") == 0
    assert "conv" not in capsys.readouterr().out
