"""stele explain: which operations explain the difference between two releases."""

import ast
import ctypes
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy
import pytest

from stele import __main__ as entry_point
from stele.environments import packages
from stele.errors import SteleError
from stele.explain import bundle, comparison, launches, text
from stele.explain.comparison import Profile
from stele.models.spec import Model
from stele_worker import hlo, kernels, sampling
from stele_worker import profiles as worker_profiles
from test_docs import rows

SECONDS = [0.5, *[0.010, 0.011, 0.012] * 16]
SLOWER = [0.5, *[0.020, 0.021, 0.022] * 16]
PROFILE = {
    "step": 0.012,
    "operations": {"conv": [0.008, 2.0], "relu\u001b[31m": [0.001, 1.0]},
    "kernels": {"oneDNN convolution": "brgconv (8)", "same": "jit (1)"},
}
SLOWER_PROFILE = {
    "step": 0.022,
    "operations": {"conv": [0.018, 2.0], "add": [0.001, 30.0]},
    "kernels": {"oneDNN convolution": "ref (8)", "same": "jit (1)"},
}


def profiles(*operations, step=0.1, profiled=0.12):
    return [
        Profile(step, profiled, {name: (seconds, 2.0) for name, seconds in one.items()}) for one in operations
    ]


def test_operations_are_sorted_by_their_contribution_to_the_change():
    old = profiles({"convolution": 0.05, "relu": 0.01, "gone": 0.002})
    new = profiles({"convolution": 0.09, "relu": 0.005, "pool": 0.01}, step=0.14, profiled=0.165)
    found = comparison.compare(old, new)
    assert [one.name for one in found.operations] == ["convolution", "pool", "gone", "relu"]
    assert found.share(found.operations[0].change) == pytest.approx(0.04 / 0.045)
    assert found.rest == pytest.approx(0.045 - (0.04 + 0.01 - 0.005 - 0.002))


def test_the_operation_that_became_faster_is_first_if_the_step_became_faster():
    old, new = (
        profiles({"slow": 0.09, "other": 0.01}),
        profiles({"slow": 0.02, "other": 0.02}, step=0.04, profiled=0.05),
    )
    assert [one.name for one in comparison.compare(old, new).operations] == ["slow", "other"]


def test_medians_over_launches_ignore_an_outlier():
    old = profiles({"a": 0.01}, {"a": 0.01}, {"a": 9.0})
    new = profiles({"a": 0.02}, {"a": 0.02}, {})
    [operation] = comparison.compare(old, new).operations
    assert (operation.old, operation.new) == (0.01, 0.02)


def test_small_operations_are_summed_up_and_the_unexplained_share_is_stated():
    small = {f"small{number}": 1e-5 for number in range(30)}
    found = comparison.compare(
        profiles({"large": 0.08, **small}), profiles({"large": 0.1, **small}, profiled=0.145)
    )
    lines = text.lines("cnn train: old to new", found)
    assert any(line.startswith("large") and "80%" in line for line in lines)
    assert any(line.startswith("30 others") for line in lines)
    assert lines[-1] == "20% of the change, +5.00 ms, is in no operation that the profilers show."


def test_equal_steps_have_nothing_to_explain():
    found = comparison.compare(profiles({"a": 0.01}), profiles({"a": 0.01}))
    assert found.share(found.rest) is None
    assert text.lines("x", found)[-1].startswith("The steps take about equally long under the profilers")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [(0.1, 0.15, "50.0% slower"), (0.1, 0.05, "50.0% faster"), (0.12e-3, 0.320, "2,667 times as long")],
)
def test_a_step_that_takes_many_times_as_long_has_no_percentage(old, new, expected):
    assert text.growth(old, new) == expected


def test_the_name_of_a_bulk_is_shortened():
    found = comparison.compare(profiles({"a," * 80: 0.01}), profiles({"a," * 80: 0.02}))
    assert max(len(line) for line in text.lines("x", found)[2:4]) < 140


def test_an_operation_counts_without_those_that_run_inside_it():
    lines = [
        [("inner", 10, 20), ("outer", 0, 100), ("inner", 40, 30), ("next", 100, 5), ("innermost", 45, 5)],
        [("other", 0, 50)],
    ]
    assert worker_profiles.self_times(lines) == {
        "outer": (pytest.approx(50e-9), 1),
        "inner": (pytest.approx(45e-9), 2),
        "innermost": (pytest.approx(5e-9), 1),
        "next": (pytest.approx(5e-9), 1),
        "other": (pytest.approx(50e-9), 1),
    }


# as JAX 0.11 prints a program; with {place} that of an older release
PROGRAM = """HloModule jit_step, is_scheduled=true

FileNames
1 "/home/me/net.py"
2 "/venv/lib/python3.12/site-packages/flax/linen/linear.py"

FunctionNames
1 "body"

FileLocations
1 {{file_name_id=1 function_name_id=1 line=11 end_line=11 column=23 end_column=28}}
2 {{file_name_id=2 function_name_id=1 line=99 end_line=99 column=23 end_column=28}}

StackFrames
7 {{file_location_id=1 parent_frame_id=7}}
8 {{file_location_id=2 parent_frame_id=7}}

%fused (p.1: f32[900], p.2: s32[]) -> f32[900] {{
  %p.1 = f32[900]{{0}} parameter(0)
  ROOT %dus.1 = f32[900]{{0}} dynamic-update-slice(%p.1, %p.1, %p.2)
}}

%body.2 (arg.1: (s32[], f32[900])) -> (s32[], f32[900]) {{
  %arg.1 = (s32[], f32[900]{{0}}) parameter(0)
  %copy.3 = s32[] copy(%arg.1)
  %write_fusion.1 = f32[900]{{0}} fusion(%arg.1, %copy.3), kind=kLoop, calls=%fused, metadata={{op_name="x" {place}}}
  ROOT %tuple.4 = (s32[], f32[900]{{0}}) tuple(%copy.3, %write_fusion.1)
}}

%condition.2 (arg.2: (s32[], f32[900])) -> pred[] {{
  ROOT %compare.1 = pred[] compare(%arg.2, %arg.2), direction=LT
}}

%loop.4 (arg.3: (s32[], f32[900])) -> (s32[], f32[900]) {{
  ROOT %while.9 = (s32[], f32[900]{{0}}) while(%arg.3), condition=%condition.2, body=%body.2
}}

ENTRY %main.7 (x.1: f32[4,64]) -> f32[4,4] {{
  %x.1 = f32[4,64]{{1,0}} parameter(0), metadata={{op_name="x"}}
  %call.3 = (s32[], f32[900]{{0}}) call(%x.1), to_apply=%loop.4, metadata={{op_name="jit(step)/while" {place}}}
  ROOT %dot.12 = f32[4,4]{{1,0}} dot(%x.1, %x.1), metadata={{op_name="dot" stack_frame_id=8}}
}}
"""


@pytest.mark.parametrize(
    ("place", "suffix"),
    [
        ("stack_frame_id=7", " at net.py:11"),
        ('source_file="/home/me/net.py" source_line=11', " at net.py:11"),
        ('source_file="/home/me/net.py" source_line=11 source_end_line=12', " at net.py:11"),
        ("stack_frame_id=6", ""),
        ("stack_frame_id=8", ""),  # in an installed package
        (f'source_file="{hlo.__file__}" source_line=3', ""),
        (f'source_file="{json.__file__}" source_line=3', ""),
        ('source_file="<string>" source_line=3', ""),
        ("", ""),
    ],
)
def test_an_operation_of_xla_has_the_line_of_the_users_code(place, suffix):
    found = hlo.labels([PROGRAM.format(place=place)])
    assert found["jit_step", "write_fusion.1"] == f"write_fusion{suffix}"
    assert found["jit_step", "dot.12"] == "dot"


def test_a_call_has_the_largest_of_the_operations_inside_of_it():
    found = hlo.labels([PROGRAM.format(place="stack_frame_id=7")])
    assert found["jit_step", "call.3"] == "call at net.py:11: while of write_fusion"
    assert found["jit_step", "while.9"] == "while"


@pytest.mark.parametrize(
    ("call", "label"),
    [
        ("call(%x), to_apply=%none.1", "call"),
        ("call(%x), to_apply=%cycle.1", "call: add"),
        ("conditional(%p, %x, %x), branch_computations={%cycle.1, %small.1}", "conditional"),
        ("call(%x), to_apply=%branches.1", "call: add, multiply, sqrt"),
    ],
)
def test_calls_of_other_forms_are_read(call, label):
    text = (
        "HloModule m\n\n"
        "%cycle.1 (a: f32[9]) -> f32[9] {\n  %add.1 = f32[9]{0} add(%a, %a)\n"
        "  ROOT %call.9 = f32[9]{0} call(%a), to_apply=%cycle.1\n}\n\n"
        "%small.1 (a: f32[9]) -> f32[9] {\n  %copy.1 = s32[] copy(%a)\n  %sqrt.2 = f32[9]{0} sqrt(%a)\n"
        "  ROOT %multiply.2 = f32[9]{0} multiply(%a, %a)\n}\n\n"
        "%branches.1 (a: f32[9]) -> f32[9] {\n"
        "  ROOT %c.1 = f32[9]{0} conditional(%p, %a, %a), branch_computations={%cycle.1, %small.1}\n}\n\n"
        f"ENTRY %main (x: f32[9]) -> f32[9] {{\n  ROOT %op.1 = f32[9]{{0}} {call}\n}}\n"
    )
    assert hlo.labels([text])["m", "op.1"] == label.replace("call", "op", 1).replace("conditional", "op", 1)


def test_an_operation_that_two_programs_of_one_name_have_at_different_lines_has_no_line():
    texts = [PROGRAM.format(place=f'source_file="/home/me/net.py" source_line={line}') for line in (3, 4)]
    assert hlo.labels(texts)["jit_step", "write_fusion.1"] == "write_fusion"
    assert hlo.labels(texts[:1] * 2)["jit_step", "write_fusion.1"] == "write_fusion at net.py:3"


def slow_operator(count):
    total = 0
    for number in range(count):
        total += number * number
    return total


def test_a_framework_without_a_profiler_shows_its_python_functions():
    found = worker_profiles.profile_python(lambda: [slow_operator(100_000) for _ in range(3)])
    seconds = {name: numbers[0] for name, numbers in found.items()}
    assert max(seconds, key=seconds.get).startswith("test_explain.py:")
    assert found["test_explain.py:slow_operator"][1] == 3


def test_samples_of_stacks_are_shares_of_a_step():
    lines = ["main (a.py);step (b.py);sgemm (libblas.so) 30\n", "main (a.py);step (b.py) 10\n", "", "x\n"]
    lines += ["main (a.py);0x7fbb8e1e4b46 (libz.so) 5\n", "main (a.py);0x7fbb8e1e4b10 (libz.so) 5\n"]
    assert sampling.shares(lines, seconds=0.5) == {
        "sgemm (libblas.so)": pytest.approx(0.3),
        "step (b.py)": pytest.approx(0.1),
        "unknown function (libz.so)": pytest.approx(0.1),
    }


def busy():
    total = 0
    for number in range(300_000):
        total += number


def test_py_spy_shows_the_function_that_takes_the_time(monkeypatch):
    monkeypatch.setattr(sampling, "SECONDS", 1.0)
    found = worker_profiles.profile_functions(busy, launches.find_sampler())
    seconds, calls = found["busy (test_explain.py)"]
    assert seconds == max(numbers[0] for numbers in found.values())
    assert calls == 0


def test_without_py_spy_the_functions_of_python_are_shown(tmp_path, capfd):
    program = tmp_path / "py-spy"
    program.write_text("#!/bin/sh\necho 'Error: Operation not permitted'\n")
    program.chmod(0o755)
    found = worker_profiles.profile_functions(busy, str(program))
    assert "py-spy cannot be used: Error: Operation not permitted" in capfd.readouterr().out
    assert found["test_explain.py:busy"][1] == 1


@pytest.mark.parametrize(
    "line, operation, implementation",
    [
        (
            "onednn_verbose,v1,primitive,exec,cpu,convolution,brgconv:avx2,forward_training,src_f32,,,mb2,0.1",
            "oneDNN convolution forward_training",
            "brgconv:avx2 (1)",
        ),
        (
            "onednn_verbose,primitive,exec,cpu,matmul,jit:gemm,undef,x,0.1",
            "oneDNN matmul undef",
            "jit:gemm (1)",
        ),
        (
            "mkldnn_verbose,exec,reorder,jit:uni,undef,in:f32,num:1,0.1",
            "oneDNN reorder undef",
            "jit:uni (1)",
        ),
    ],
)
def test_the_report_of_onednn_is_read_in_every_version(line, operation, implementation):
    assert kernels.summarise([line, "onednn_verbose,info,cpu,isa:AVX2", "other"]) == {
        operation: implementation
    }


def test_what_native_code_prints_is_read_from_its_file(capfd):
    with tempfile.TemporaryFile() as file:
        with kernels.output_to(file):
            ctypes.CDLL(None).puts(b"native")
        file.seek(0)
        assert file.read() == b"native\n"
    assert capfd.readouterr().out == ""


@pytest.fixture
def explain(add_environment, tmp_path):
    """explain(*options, old={...}, new={...}) -> exit code of stele explain in scripted environments."""

    def explain(*options, old=None, new=None, command="explain"):
        table = {"release": "1.0", "table": {"seed": "0"}}
        add_environment("old", **{"seconds": SECONDS, "profile": PROFILE, **table, **(old or {})})
        add_environment("new", **{"seconds": SLOWER, "profile": SLOWER_PROFILE, **table, **(new or {})})
        return entry_point.main(
            [command, "old", "new", "--task=gru", "--phase=infer", "--worker-timeout=20", *options]
        )

    return explain


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
    assert set(content["cells"]["gru infer"]) == set(rows(document, "cells"))
    assert set(content["cells"]["gru infer"]["operations"][0]) == set(rows(document, "operations"))
    assert content["cells"]["gru infer"]["operations"][0] == {
        "name": "conv", "old": 0.008, "new": 0.018, "old_calls": 2.0, "new_calls": 2.0
    }  # fmt: skip


def test_a_worker_without_a_profiler_is_an_error(explain, capsys):
    assert explain("--times=1", new={"profile": None}) == 2
    assert "The worker of 'new' is not in Python, and has no profiler." in capsys.readouterr().err


def test_a_launch_that_fails_is_an_error_that_names_the_arm(explain, capsys):
    assert explain("--times=1", new={"infer": "raise_error"}) == 2
    assert "NEW failed: Worker 'new' failed during 'infer'" in capsys.readouterr().err


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


def test_a_gate_whose_explanation_fails_keeps_its_verdict(explain, capsys):
    options = ("--metric=step", "--budget=60s", "--explain", "--fail-fast")
    assert explain(*options, command="gate", new={"profile": None}) == 1
    assert "stele: not explained: The worker of 'new'" in capsys.readouterr().err


def test_a_gate_that_passes_explains_nothing(explain, capsys):
    assert explain("--metric=host-memory", "--budget=60s", "--explain", command="gate") == 0
    assert "conv" not in capsys.readouterr().out


@pytest.fixture
def bundle_of_numpy(describe, tmp_path, monkeypatch):
    """Return the folder of a bundle that compares the framework numpy, on the task gru, with itself."""
    monkeypatch.setenv("PYTHONPATH", str(Path(worker_profiles.__file__).parents[1]))
    monkeypatch.setattr(packages, "of_environment", lambda environment: {"numpy": numpy.__version__})
    for name in ("old", "new"):
        describe(name, framework="numpy", command=[sys.executable, "-m", "stele_worker"])
    command = ["explain", "old", "new", "--task=gru", "--phase=infer", "--scale=study", "--times=1"]
    assert entry_point.main([*command, f"--bundle={tmp_path / 'slower.zip'}"]) == 0
    with zipfile.ZipFile(tmp_path / "slower.zip") as archive:
        archive.extractall(tmp_path)
    return tmp_path / "slower"


def test_a_bundle_reproduces_the_ratio_without_stele(bundle_of_numpy, monkeypatch):
    monkeypatch.delenv("PYTHONPATH")
    script = bundle_of_numpy / "reproduce.py"
    done = subprocess.run([sys.executable, script, "3"], capture_output=True, text=True, check=True)
    ratio = float(re.search(r"gru infer: NEW / OLD ([0-9.]+)", done.stdout).group(1))
    assert 0.5 < ratio < 2  # OLD and NEW are equal, and the machine may be busy
    listing = [str(bundle_of_numpy / "old/bin/python"), "-m", "pip", "list"]
    assert "stele" not in subprocess.run(listing, capture_output=True, text=True, check=True).stdout


def test_a_bundle_has_an_issue_text_and_only_the_code_that_it_needs(bundle_of_numpy):
    names = {
        path.relative_to(bundle_of_numpy).as_posix() for path in bundle_of_numpy.rglob("*") if path.is_file()
    }
    assert {"ISSUE.md", "setup.json", "old.txt", "new.txt"} <= names
    assert {"explanation.json", "launches.json", "machine.json"} <= names
    assert "code/stele_worker/recipes/gru/numpy.py" in names
    assert not any("torch" in name or "recipes/cnn" in name or "models" in name for name in names)
    text = (bundle_of_numpy / "ISSUE.md").read_text()
    assert re.match(r"# Inference of gru is [0-9.]+% (slower|faster) in new than in old\n", text)
    assert (bundle_of_numpy / "old.txt").read_text() == f"numpy=={numpy.__version__}\n"


def test_the_script_of_a_bundle_runs_on_python_3_6():
    source = (Path(bundle.__file__).with_name("reproduce.py")).read_text()
    ast.parse(source, feature_version=(3, 6))


@pytest.mark.parametrize("spec", ["package.net:build", "../net.py:build"])
def test_a_model_of_several_files_is_refused_before_the_launches(spec, tmp_path):
    with pytest.raises(SteleError, match="Put the model into one file"):
        bundle.model_file(Model(spec, tmp_path))


def test_a_model_in_one_file_is_part_of_the_bundle(tmp_path):
    (tmp_path / "net.py").write_text("build = None\n")
    assert bundle.model_file(Model("net.py:build", tmp_path)) == {"model/net.py": "build = None\n"}
    assert bundle.model_file(Model("torchvision:resnet18", tmp_path)) == {}
