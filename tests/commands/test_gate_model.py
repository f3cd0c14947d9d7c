"""``stele gate --model``: what is measured, what is refused, and with which message."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stele import __main__ as entry_point
from stele import environments
from stele.commands import gate as gate_command
from stele.gate import record
from stele.measuring import content, measure
from tests.support.gates import HALF, NUMBERS, SECONDS
from tests.support.scripted_environments import INSPECTION


@pytest.mark.slow
def test_steps_of_a_model_are_measured_like_those_of_a_task(model_gate, capsys):
    assert model_gate("--phase=infer", "--budget=60s", metric="host-memory") == 0
    assert "infer host-memory the same" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("script", "framework"),
    [
        ({}, INSPECTION["framework"]),
        ({"inspection": {**INSPECTION, "framework": "keras"}}, "keras"),
        ({"inspect": "user_error"}, INSPECTION["framework"]),  # parity says that NEW does not build the model
    ],
)
def test_new_runs_the_framework_that_the_model_has_there(model_gate, monkeypatch, script, framework):
    trials = []
    run = gate_command.run
    monkeypatch.setattr(gate_command, "run", lambda gate: trials.append(gate.trial) or run(gate))
    model_gate(new=script)
    [trial] = trials
    assert (trial.old.framework, trial.new.framework) == (INSPECTION["framework"], framework)


@pytest.mark.parametrize(("phase", "shown"), [("infer", False), ("train", True)])
def test_the_loss_is_shown_for_training_alone(model_gate, capsys, phase, shown):
    assert model_gate(f"--phase={phase}") == 0
    error = capsys.readouterr().err
    assert "Scripted: 12 parameters; inputs 8x3 from the signature" in error
    assert ("; loss: the model's own" in error) is shown


@pytest.mark.parametrize("phase", [(), ("--phase=train",), ("--phase=infer",)])
def test_a_training_of_the_users_own_is_refused_and_inference_is_measured(model_gate, capsys, phase):
    reason = "it trains by its own train_step. Measure inference alone with --phase infer, or write a recipe"
    own = {"inspection": {**INSPECTION, "untrained": reason}}
    assert model_gate(*phase, old=own, new=own) == (0 if "infer" in "".join(phase) else 2)
    error = capsys.readouterr().err
    assert (f"net.py:build: {reason}" in error) is ("infer" not in "".join(phase))
    assert "; loss:" not in error  # it is not the one that the user trains with


def test_the_dtype_of_the_parameters_is_said(model_gate, capsys):
    half = {"inspection": {**INSPECTION, "built": HALF}}
    assert model_gate("--phase=infer", old=half, new=half) == 0
    assert "inputs 8x3 from the signature; dtype: float16\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("metric", "verb"), [("parity", "parity"), ("step", "train"), ("step", "infer"), ("host-memory", "train")]
)
@pytest.mark.parametrize("new", [True, False], ids=["both", "old alone"])
def test_an_error_of_the_users_code_in_old_is_an_error_of_the_user(model_gate, capsys, metric, verb, new):
    script = {verb: "user_error"}
    assert model_gate(old=script, new=script if new else {}, metric=metric) == 2
    output = capsys.readouterr()
    assert "stele: net.py raised ZeroDivisionError: division by zero\n  File net.py, line 3" in output.err
    assert "verdict" not in output.out


@pytest.mark.parametrize("new", [True, False], ids=["both", "old alone"])
def test_an_optimizer_that_old_cannot_import_is_an_error_of_the_user_which_no_budget_helps(model_gate, capsys, new):
    script = {"train": "spec_error"}
    assert model_gate("--phase=train", old=script, new=script if new else {}, metric="step") == 2
    output = capsys.readouterr()
    assert output.err.splitlines()[-1] == (
        "stele: The optimizer 'torch.optim:AdamWW' cannot be imported: torch.optim has no AdamWW"
    )
    assert "--budget" not in output.err + output.out


@pytest.mark.slow
def test_an_error_of_the_users_code_in_new_alone_is_broken(model_gate, capsys):
    assert model_gate("--phase=infer", new={"infer": "user_error"}, metric="step") == 1
    assert "net.py raised ZeroDivisionError" in capsys.readouterr().out


@pytest.mark.parametrize("arm", ["old", "new"])
@pytest.mark.parametrize(("metric", "verb"), [("parity", "configure"), ("step", "train"), ("parity", "parity")])
def test_what_no_release_is_to_blame_for_is_an_error_of_the_environment(model_gate, capsys, arm, metric, verb):
    assert model_gate(metric=metric, **{arm: {verb: "setup_error"}}) == 2
    assert f"'{arm}' cannot be measured: JAX_DISABLE_JIT=1 disables the compiler" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(("metric", "verb"), [("parity", "parity"), ("step", "train")])
def test_an_environment_that_is_renamed_during_the_gate_is_named_and_the_gate_resumes(
    model_gate, add_environment, tmp_path, capsys, monkeypatch, metric, verb
):
    monkeypatch.setattr(content, "of_environment", lambda *_, **__: {})  # whose script changes
    program = tmp_path / "python"
    program.symlink_to(sys.executable)
    script = {"seconds": SECONDS, "numbers": NUMBERS, "inspection": INSPECTION, "program": str(program)}

    def add_new(**more):
        add_environment("new", **{**script, **more})
        path = tmp_path / "new.toml"
        path.write_text(path.read_text().replace(sys.executable, str(program)))
        environments.described.cache_clear()

    model_gate()
    add_new(**{verb: "lose_the_program"})
    arguments = ["--model=net.py:build", f"--metric={metric}", "--phase=train", "--budget=60s"]
    capsys.readouterr()
    assert entry_point.main(["gate", "old", "new", *arguments]) == 2
    assert f"its interpreter {program} no longer exists" in capsys.readouterr().err
    program.with_name("python.gone").rename(program)
    add_new()
    assert entry_point.main(["gate", "old", "new", *arguments, "--resume"]) == 0


@pytest.mark.parametrize(
    ("options", "old", "message"),
    [
        ([], {"inspect": "user_error"}, "stele: net.py raised ZeroDivisionError"),
        ([], {"inspection": {**INSPECTION, "deterministic": False}}, "is not deterministic in inference"),
        ([], {"inspection": {**INSPECTION, "parameters": 0}}, "has no parameters to train"),
        ([], {"inspect": "segfault"}, "crashed during 'inspect': killed by SIGSEGV"),
        (["--model=nowhere.py:build"], {}, "there is no file"),
        (["--model=resnet18"], {}, "names no model"),
        (["--optimizer=SGD"], {}, "--optimizer SGD is not of the form module:Class"),
        (["--pretrained=none.safetensors"], {}, "is not an existing .safetensors file"),
        (["--with-project=nowhere"], {}, "nowhere/pyproject.toml"),
    ],
)
def test_a_model_that_cannot_be_measured_is_one_message_and_measures_nothing(model_gate, capsys, options, old, message):
    assert model_gate(*options, old=old) == 2
    err = capsys.readouterr().err
    assert message in err
    assert "Traceback" not in err
    assert "stele_worker" not in err
    assert not Path(".stele/gates").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("jax==1 jax==2", "pins one package twice: jax==1 and jax==2"),
        ("jax==1 --index-url=x", "contains the installer option '--index-url=x'"),
        ("my @ git+https://example.org/my", "Allow it with: --allow-vcs"),
        ("none.txt", "none.txt cannot be read"),
        ("net.py@main", "is neither a requirement such as transformers==5.22.0"),
        ("some/python", "There is no interpreter some/python"),
        (".", "is a folder, but not a virtual environment"),
        ("requirements.txt@main", "not in a Git repository"),
    ],
)
def test_an_arm_without_meaning_is_one_message_and_measures_nothing(model_gate, capsys, text, message, tmp_path):
    assert model_gate() == 0
    assert entry_point.main(["gate", "old", text, "--model", "net.py:build"]) == 2
    assert message in (err := capsys.readouterr().err)
    assert "Traceback" not in err


def test_inputs_without_meaning_are_a_usage_error(model_gate, capsys):
    with pytest.raises(SystemExit) as end:
        model_gate("--input=8x")
    assert end.value.code == 2
    assert "--input '8x' is not an input such as 8x3x64x64" in capsys.readouterr().err


def test_inference_of_a_model_without_parameters_is_measured(model_gate):
    without = {"inspection": {**INSPECTION, "parameters": 0}}
    assert model_gate("--phase=infer", old=without, new=without) == 0


def test_the_record_of_a_model_says_which(model_gate):
    model_gate()
    [path] = Path(".stele/gates").glob("*.jsonl")
    header = json.loads(path.read_text().splitlines()[0])
    assert header["model"]["spec"] == "net.py:build"
    assert header["model"]["inputs"] == INSPECTION["inputs"]


def test_an_extra_without_a_lock_file_is_refused(capsys):
    assert entry_point.main(["gate", "jax==0.10.1", "jax==0.10.2", "--extra", "cpu", "--no-wait"]) == 2
    assert "--extra selects packages of a lock file or of --with-project." in capsys.readouterr().err


@pytest.mark.slow
def test_a_gate_reads_no_data_writes_into_one_folder_and_never_runs_the_users_code(model_gate, tmp_path, monkeypatch):
    model_gate()  # which describes the environments
    monkeypatch.setenv("STELE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(measure.data, "load", lambda name: pytest.fail("read data"))
    monkeypatch.setattr(measure.data.download, "fetch", lambda *_: pytest.fail("downloaded"))
    (tmp_path / "net.py").write_text("raise SystemExit('the host ran the code of the user')")
    before = {*tmp_path.iterdir()}
    assert model_gate("--phase=infer", "--budget=60s", "--json=report.json", metric="parity,host-memory") == 0
    assert {path.name for path in {*tmp_path.iterdir()} - before} == {"cache", "report.json"}


@pytest.mark.slow
def test_both_phases_of_a_model_are_judged(model_gate, capsys):
    assert model_gate("--budget=60s", metric="host-memory") == 0
    out = " ".join(capsys.readouterr().out.split())
    for phase in ("train", "infer"):
        assert f" {phase} host-memory the same" in out


@pytest.fixture
def asked(monkeypatch):
    """The settings of each ``configure``."""
    requests = []
    from stele.measuring.worker import Worker

    original = Worker.ask

    def ask(worker, verb, **fields):
        if verb == "configure":
            requests.append(fields["settings"])
        return original(worker, verb, **fields)

    monkeypatch.setattr(Worker, "ask", ask)
    return requests


def test_a_model_of_the_user_is_measured_without_tuning(add_environment, tmp_path, monkeypatch, capsys, asked):
    from stele import __main__ as entry_point
    from tests.support.gates import NUMBERS, SECONDS

    monkeypatch.setenv("JAX_DISABLE_JIT", "1")
    (tmp_path / "net.py").touch()
    for name in ("old", "new"):
        add_environment(name, seconds=SECONDS, numbers=NUMBERS, inspection=INSPECTION)
    entry_point.main(["gate", "old", "new", "--model", "net.py:build", "--metric=parity", "--phase=infer"])
    before, _, _ = capsys.readouterr().err.partition("  parity ")
    [line] = [one for one in before.splitlines() if one.startswith("  conditions     as you run it: ")]
    own = line.partition("your variables: ")[2].partition(". Stele sets")[0]
    assert "JAX_DISABLE_JIT=1" in own.split()
    assert len(asked) >= 4
    assert not any(one["tuned"] for one in asked), json.dumps(asked)


@pytest.mark.slow
@pytest.mark.parametrize("own", [{}, {"MALLOC_ARENA_MAX": "2"}], ids=["none", "the user's own"])
def test_a_model_of_the_user_is_measured_with_the_allocator_as_it_is(add_environment, tmp_path, monkeypatch, own):
    from stele import __main__ as entry_point
    from tests.support.gates import SECONDS

    def of_allocator(variables):
        return {name: variables[name] for name in variables if name.startswith(("MALLOC_", "GLIBC_"))}

    for name in of_allocator(os.environ):
        monkeypatch.delenv(name)
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    seen, popen = [], subprocess.Popen

    def started(command, **options):
        seen.append(options.get("env") or {})
        return popen(command, **options)

    monkeypatch.setattr(subprocess, "Popen", started)
    (tmp_path / "net.py").touch()
    for name in ("old", "new"):
        add_environment(name, seconds=SECONDS, inspection=INSPECTION)
    options = ["--metric=step,host-memory", "--phase=infer", "--budget=60s"]
    assert entry_point.main(["gate", "old", "new", "--model", "net.py:build", *options]) == 0
    [path] = Path(".stele/gates").glob("*.jsonl")
    runs = [run for one in record.read(path).entries() for run in (one.get("runs") or {}).values()]
    assert {run.settings.malloc for run in runs} == {"plain"}
    workers = [of_allocator(variables) for variables in seen if "SCRIPT" in variables]
    assert len(workers) > len(runs) > 0 and all(variables == own for variables in workers)
