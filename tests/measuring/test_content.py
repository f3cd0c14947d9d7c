"""A result belongs to its content: what changed is named, and old launches are never used with new ones."""

import argparse
import dataclasses
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
from safetensors.numpy import save_file

from stele import __main__ as entry_point
from stele import config, data
from stele.commands import fleet_gate
from stele.commands import gate as gate_command
from stele.environments import ORACLE, packages
from stele.environments.environment import Environment
from stele.errors import SteleError
from stele.gate import correctness, launcher, model_parity, record, trial
from stele.measuring import content, measure, variables
from stele.measuring.run import Origin
from stele.measuring.settings import Settings
from stele.parity import devices, examination, ladder
from tests.support.gates import NUMBERS
from tests.support.runs import changed
from tests.support.scripted_environments import INSPECTION, SCRIPTED

ORIGIN = Origin(origin="official", fingerprint="0")
RECIPE = "recipes/spirals/torch.py"


def install(arm, version, *, source="1", name="abacus"):
    """Install a package in a virtual environment, in place of another version of it."""
    [site] = Path(arm).glob("lib/python*/site-packages")
    for old in site.glob(f"{name}-*.dist-info/*"):
        old.unlink()
    for old in site.glob(f"{name}-*.dist-info"):
        old.rmdir()
    folder = site / f"{name}-{version}.dist-info"
    folder.mkdir()
    if not (site / f"{name}.py").exists():
        (site / f"{name}.py").touch()
        os.utime(site / f"{name}.py", (0, 0))
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (folder / "RECORD").write_text(f"{name}.py,sha256={source},10\n{name}-{version}.dist-info/RECORD,,\n")


@pytest.fixture(scope="module")
def venv(tmp_path_factory):
    folder = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder


@pytest.fixture
def gate(describe, tmp_path, monkeypatch, venv):
    """gate(*options) -> exit code of a gate of net.py:build in two virtual environments with scripted workers."""
    for name in ("net.py", "helper.py", "config.json", "optim.py", "tasks/spirals.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1")
    (tmp_path / "recipes/spirals").mkdir(parents=True)
    (tmp_path / RECIPE).write_text("def network(task): ...")
    save_file({"w": numpy.zeros(2)}, tmp_path / "w.safetensors")
    monkeypatch.setattr(packages, "MODULE", (str(SCRIPTED),))  # a worker in Python, whose packages are listed
    for arm in ("old", "new"):
        subprocess.run(["cp", "-a", str(venv), str(tmp_path / arm)], check=True)
        install(arm, "1.0" if arm == "old" else "2.0")
    files = [str(tmp_path / name) for name in ("helper.py", "config.json")]
    script = {"seconds": [0.5, 0.01], "numbers": NUMBERS, "inspection": {**INSPECTION, "files": files}}

    def gate(*options, variable="1", model="net.py:build", reads={}, verb=("gate", "old", "new")):  # noqa: B006
        script["has_read"] = reads
        for arm in ("old", "new"):
            command = [str(tmp_path / arm / "bin/python"), str(SCRIPTED)]
            describe(arm, framework="scripted", command=command)
            with (tmp_path / f"{arm}.toml").open("a") as file:
                file.write(f"\n[variables]\nSCRIPT = {json.dumps(json.dumps(script))}\nABACUS = '{variable}'\n")
        given = [
            "--optimizer=optim:Own",
            "--pretrained=w.safetensors",
            *(["--metric=parity", "--worker-timeout=20"] if verb[0] == "gate" else []),
        ]
        return entry_point.main([*verb, f"--model={model}", *given, *options])

    return gate


def written():
    [path] = Path(".stele/gates").glob("*.jsonl")
    return path.read_bytes()


def write(name, text="2"):
    return lambda: Path(name).write_text(text)


def set_back(arm):
    """Undo an edit in a way that keeps the time, such as ``mv abacus.py.orig abacus.py``."""
    edit(arm, "")
    [path] = Path(arm).glob("lib/python*/site-packages/abacus.py")
    os.utime(path, (0, 0))


def edit(arm, text):
    """Edit a module of a package in its place, as a person who debugs does."""
    [path] = Path(arm).glob("lib/python*/site-packages/abacus.py")
    path.write_text(text)


CHANGES = {
    "the model's file": (write("net.py"), "net.py changed"),
    "a local import": (write("helper.py"), "helper.py changed"),
    "a file that it reads": (write("config.json"), "config.json changed"),
    "a file that is deleted": (lambda: Path("helper.py").unlink(), "helper.py is missing now"),
    "the optimizer": (write("optim.py"), "optim.py changed"),
    "the weights": (lambda: save_file({"w": numpy.ones(2)}, "w.safetensors"), "w.safetensors changed"),
    "a version in NEW": (lambda: install("new", "3.0"), "abacus in NEW was 2.0 and is now 3.0"),
    "a version in OLD": (lambda: install("old", "2.0"), "abacus in OLD was 1.0 and is now 2.0"),
    "another build of a version": (
        lambda: install("new", "2.0", source="2"),
        "the files of abacus in NEW changed",
    ),
    "an edit of a file of NEW": (lambda: edit("new", "import time"), "the files of abacus in NEW changed"),
    "an edit of a file of OLD": (lambda: edit("old", ""), "the files of abacus in OLD changed"),
    "a file of NEW that is deleted": (
        lambda: next(Path("new").glob("lib/python*/site-packages/abacus.py")).unlink(),
        "the files of abacus in NEW changed",
    ),
    "a package that is new": (
        lambda: install("new", "1.0", name="ten"),
        "ten in NEW was absent and is now 1.0",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("change", "message"), CHANGES.values(), ids=CHANGES)
def test_a_record_is_refused_if_what_it_measured_has_changed(gate, capsys, change, message):
    assert gate() == 0
    before = written()
    change()
    capsys.readouterr()
    assert gate("--resume") == 2
    output = capsys.readouterr()
    assert f"because what it measured has changed: {message}. Run without --resume." in output.err
    assert "  parity " not in output.err and not output.out
    assert written() == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "message"), [(RECIPE, f"{RECIPE} changed"), ("tasks/spirals.py", "spirals.py changed")]
)
def test_a_record_of_another_recipe_or_task_file_is_refused(gate, capsys, path, message):
    assert gate(model=RECIPE) == 0
    Path(path).write_text("def network(task): return None")
    assert gate("--resume", model=RECIPE) == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_a_record_of_other_variables_of_an_environment_is_refused(gate, capsys):
    assert gate() == 0
    assert gate("--resume", variable="2") == 2
    assert "ABACUS in NEW was 1 and is now 2; ABACUS in OLD was 1 and is now 2" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["XLA_FLAGS", "OMP_WAIT_POLICY", "KERAS_BACKEND"])
def test_a_record_of_other_variables_of_the_user_is_refused(gate, capsys, monkeypatch, name):
    monkeypatch.setenv(name, "1")
    assert gate() == 0
    monkeypatch.setenv(name, "2")
    assert gate("--resume") == 2
    assert f"{name} in NEW was 1 and is now 2" in capsys.readouterr().err


@pytest.fixture
def later(tmp_path):
    """What only the launches of parity read, and no inspection."""
    for name in ("train.py", "outside/w.npy", ".cache/torch/hub/w.pt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    names = ("train.py", "outside/w.npy", ".cache/torch/hub/w.pt")
    return {"files": [str(tmp_path / name) for name in names], "variables": ["HIDDEN", "UNSET"]}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["train.py", "outside/w.npy", ".cache/torch/hub/w.pt"])
def test_what_only_a_training_reads_belongs_to_the_record(gate, later, capsys, name):
    assert gate(reads=later) == 0
    assert gate("--resume", reads=later) == 0
    before = written()
    Path(name).write_text("2")
    assert gate("--resume", reads=later) == 2
    assert f"because what it measured has changed: {name} changed." in capsys.readouterr().err
    assert written() == before
    Path(name).unlink()
    assert gate("--resume", reads=later) == 2
    assert f"{name} is missing now" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["train.py", "outside/w.npy"])
def test_what_a_training_reads_is_compared_before_the_next_launch(gate, later, monkeypatch, capsys, name):
    before_new(monkeypatch, write(name))
    assert gate(reads=later) == 2
    assert f"changed during the measurement: {name} changed." in capsys.readouterr().err


@pytest.mark.slow
def test_a_file_that_the_model_did_not_find_is_new_when_it_is_there(gate, capsys, tmp_path):
    reads = {"files": [str(tmp_path / "local.json")]}
    assert gate(reads=reads) == 0
    assert gate("--resume", reads=reads) == 0
    Path("local.json").write_text("1")
    assert gate("--resume", reads=reads) == 2
    assert "local.json is new" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("change", [write("parts/b.txt"), lambda: Path("parts/a.txt").unlink()], ids=["new", "gone"])
def test_a_record_of_a_folder_that_had_other_names_is_refused(gate, capsys, tmp_path, change):
    Path("parts").mkdir()
    Path("parts/a.txt").touch()
    reads = {"files": [str(tmp_path / "parts" / content.NAMES)]}
    assert gate(reads=reads) == 0
    change()
    assert gate("--resume", reads=reads) == 2
    assert "because what it measured has changed: parts/** changed." in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(("name", "value"), [("HIDDEN", "4096"), ("HIDDEN", None), ("UNSET", "1")])
def test_a_record_of_other_variables_that_the_users_code_reads_is_refused(
    gate, later, monkeypatch, capsys, name, value
):
    monkeypatch.setenv("HIDDEN", "8")
    assert gate(reads=later) == 0
    monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name)
    assert gate("--resume", reads=later) == 2
    assert f"because what it measured has changed: the variable {name} changed." in capsys.readouterr().err
    assert '"8"' not in written().decode()  # hashes alone


@pytest.mark.slow
@pytest.mark.parametrize("name", ["CUDA_VISIBLE_DEVICES", "PYTHONUTF8"])
def test_variables_that_choose_a_device_or_an_encoding_are_compared(gate, monkeypatch, capsys, name):
    assert gate() == 0
    monkeypatch.setenv(name, "1")
    assert gate("--resume") == 2
    assert f"{name} in NEW was absent and is now 1" in capsys.readouterr().err


def test_variables_of_a_terminal_and_of_a_session_decide_nothing():
    names = [
        "TERM",
        "LS_COLORS",
        "SSH_CLIENT",
        "XDG_RUNTIME_DIR",
        "LC_ALL",
        "GITHUB_RUN_ID",
        "OMP_NUM_THREADS",
    ]
    assert variables.variable_hashes(names, dict.fromkeys(names, "1")) == {}
    assert variables.variable_hashes(["B", "A", "A"], {"A": "1"}) == {
        "A": hashlib.sha256(b"1").hexdigest()[:16],
        "B": None,
    }


def test_a_file_that_perhaps_another_process_reads_counts_if_it_does_not_change(tmp_path):
    log, model = tmp_path / "log.txt", tmp_path / "model.spm"
    for path in (log, model):
        path.write_text("1")
    noticed = content.Noticed()
    assert noticed.admit([log, model]) == ()
    log.write_text("12")
    assert noticed.admit([log, model]) == (model,)
    assert noticed.admit([log, model]) == (model,)  # a log that has grown never counts


@pytest.mark.slow
def test_an_option_that_only_the_record_has_is_named(gate, capsys):
    """Such as a target that is not typed any more."""
    assert gate() == 0
    [path] = Path(".stele/gates").glob("*.jsonl")
    first, *rest = path.read_text().splitlines(keepends=True)
    path.write_text("".join([json.dumps({**json.loads(first), "target": 0.5}) + "\n", *rest]))
    assert gate("--resume") == 2
    assert "its target was 0.5 and is now none" in capsys.readouterr().err


@pytest.mark.slow
def test_a_comparison_of_environments_ends_if_what_it_measures_changes(gate, monkeypatch, capsys):
    before_new(monkeypatch, write("helper.py"))
    assert gate(verb=("parity", "--framework=old,new")) == 2
    output = capsys.readouterr()
    assert "changed during the measurement: helper.py changed" in output.err and not output.out


def test_an_accuracy_of_a_model_without_labels_is_an_error_with_a_remedy(gate, capsys):
    """There is nothing to judge."""
    assert gate("--metric=accuracy") == 2
    assert "net.py:build has no labels, so nothing can be judged. Write tasks/TASK.py" in capsys.readouterr().err


@pytest.mark.parametrize("line", [{"findings": []}, {"numbers": None}, {"numbers": {"changes": []}}, {"runs": None}])
def test_a_launch_whose_worker_failed_is_launched_again(tmp_path, line):
    path = tmp_path / "gate.jsonl"
    lines = [
        {"schema": 1, "machine": {}},
        {"key": ["a"], "took": 1.0, "failure": "killed by SIGKILL", "content": {"files": {"a": "1"}}, **line},
    ]
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    found = record.resume(path)
    assert found.get("a") is None and found.header["content"] == {"files": {"a": "1"}}


@pytest.mark.parametrize("where", [examination, devices])
def test_a_ladder_whose_worker_was_killed_is_a_failure_and_one_that_differs_is_none(monkeypatch, where):
    findings, several = [ladder.Finding(1, "differs", "one")], Settings(device="cpu", devices=2)
    results = {
        module: ladder.LadderResult(list(findings), {}, "", "killed" if module is where else None)
        for module in (examination, devices)
    }
    for module, result in results.items():
        monkeypatch.setattr(module, "run_ladder", lambda *_, result=result, **__: result)
    subject = argparse.Namespace(arm=lambda name: ORACLE, settings=several, timeout=1.0)
    assert correctness.climb(subject, "gru", "new")[1] == "killed"
    results[where] = results[where]._replace(failure=None)
    monkeypatch.setattr(where, "run_ladder", lambda *_, **__: results[where])
    assert correctness.climb(subject, "gru", "new")[1] is None


@pytest.mark.slow
def test_a_record_is_resumed_after_a_change_was_undone_or_of_what_decides_nothing(gate):
    assert gate() == 0
    text = Path("net.py").read_text()
    Path("net.py").write_text("else")
    Path("net.py").write_text(text)
    Path("other.py").write_text("unused")
    install("new", "2.0")
    assert gate("--resume", "--budget=50m", "--fail-fast", "--parallel=1", "--json=report.json") == 0


@pytest.mark.slow
def test_many_changes_are_one_short_message(gate, capsys):
    assert gate() == 0
    for name in ("net.py", "helper.py", "config.json", "optim.py"):
        Path(name).write_text("2")
    assert gate("--resume") == 2
    assert "config.json changed; helper.py changed; net.py changed; and 1 more." in capsys.readouterr().err


def before_new(monkeypatch, change):
    """Make a change when OLD was measured, and NEW starts."""
    ask = model_parity.entry_of

    def entry_of(trial, environment, *rest):
        if environment.name == "new":
            change()
        return ask(trial, environment, *rest)

    monkeypatch.setattr(model_parity, "entry_of", entry_of)
    return lambda: monkeypatch.setattr(model_parity, "entry_of", ask)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "undo", "message"),
    [
        (write("net.py", "3"), write("net.py", "1"), "net.py changed"),
        (write("helper.py", "3"), write("helper.py", "1"), "helper.py changed"),
        (lambda: Path("net.py").unlink(), write("net.py", "1"), "net.py is missing now"),
        (lambda: Path("helper.py").unlink(), write("helper.py", "1"), "helper.py is missing now"),
        (lambda: Path("config.json").unlink(), write("config.json", "1"), "config.json is missing now"),
        (
            lambda: install("new", "2.1"),
            lambda: install("new", "2.0"),
            "abacus in NEW was 2.0 and is now 2.1",
        ),
        (
            lambda: edit("new", "import time"),
            lambda: set_back("new"),
            "the files of abacus in NEW changed",
        ),
        (
            lambda: Path("new").rename("gone"),
            lambda: Path("gone").rename("new"),
            "new/bin/python no longer exists",
        ),
    ],
    ids=[
        "model",
        "import",
        "no model",
        "no import",
        "no file that it reads",
        "package",
        "edit",
        "environment",
    ],
)
def test_what_changes_while_a_gate_runs_ends_it_without_a_verdict(gate, monkeypatch, capsys, change, undo, message):
    restore = before_new(monkeypatch, lambda: Path("gone").exists() or change())
    assert gate() == 2
    output = capsys.readouterr()
    assert message in output.err
    assert ("What is measured changed during the measurement: " in output.err) != ("no longer" in message)
    assert "BROKEN" not in output.out
    keys = [json.loads(line)["key"] for line in written().splitlines()[1:]]
    of_old = [name for kind, name in keys if kind == "model parity"]
    assert len(of_old) == len(keys) and of_old[0] == "old" and "new" not in of_old
    undo()
    restore()
    assert gate("--resume") == 0
    assert "  OLD\n" not in capsys.readouterr().err


@pytest.mark.slow
def test_an_interrupted_gate_is_not_resumed_with_another_model(gate, monkeypatch, capsys):
    def interrupt():
        raise KeyboardInterrupt

    restore = before_new(monkeypatch, interrupt)
    assert gate() == 130
    before = written()
    restore()
    Path("net.py").write_text("2")
    capsys.readouterr()
    assert gate("--resume") == 2
    output = capsys.readouterr()
    assert "because what it measured has changed: net.py changed. Run without --resume." in output.err
    assert not output.out and written() == before


@pytest.mark.slow
@pytest.mark.parametrize("damage", [lambda path: path.write_bytes(b"PK"), lambda path: path.unlink()])
def test_weights_of_old_that_are_damaged_are_no_fault_of_new(gate, monkeypatch, capsys, damage):
    def with_weights(launches, *about):
        numpy.savez(launches.files.weights, w=numpy.zeros(3))
        return with_reversed(launches, *about)

    with_reversed = model_parity.with_reversed
    monkeypatch.setattr(model_parity, "with_reversed", with_weights)
    before_new(monkeypatch, lambda: damage(next(Path(".stele/gates").glob("*.npz"))))
    assert gate() == 2
    output = capsys.readouterr()
    assert "does not contain what OLD saved" in output.err and "--resume" in output.err
    assert "BROKEN" not in output.out


@pytest.mark.slow
def test_two_gates_never_write_one_record(gate, capsys):
    assert gate() == 0
    before = written()
    [path] = Path(".stele/gates").glob("*.jsonl")
    held = record.Lock(path)
    assert gate("--resume") == 2
    assert f"Another gate (process {os.getpid()}) writes {path}." in capsys.readouterr().err
    assert gate(f"--resume={path}") == 2 and written() == before
    held.close()
    assert gate("--resume") == 0


def refused(gate, capsys, path, reads={}):  # noqa: B006
    """Return the error of a gate whose report goes to a path; no file has changed."""

    def contents():
        paths = (one for one in Path().rglob("*") if one.is_file() and ".stele" not in one.parts)
        return {(one, one.read_bytes()) for one in paths if one.suffix != ".toml"}

    before = contents()
    assert gate("--json", str(path), reads=reads) == 2
    assert contents() >= before
    return capsys.readouterr().err


@pytest.mark.parametrize("name", ["config.json", "link.json", "hard.json"])
def test_a_file_that_the_inspection_found_is_not_replaced(gate, capsys, name):
    Path("link.json").symlink_to("config.json")
    Path("hard.json").hardlink_to("config.json")
    error = refused(gate, capsys, name)
    assert f"--json {name} would replace" in error and "conditions" not in error


@pytest.mark.slow
def test_a_file_that_only_a_launch_reads_is_not_replaced(gate, later, capsys):
    error = refused(gate, capsys, "outside/w.npy", later)
    assert "--json outside/w.npy would replace" in error and "conditions" in error


@pytest.mark.slow
def test_a_file_in_a_folder_of_very_many_that_are_read_is_not_replaced(gate, capsys):
    Path("many").mkdir()
    Path("many/1.json").write_text("1")
    reads = {"files": [str(Path("many/*").absolute())]}
    assert "--json many/1.json would replace" in refused(gate, capsys, "many/1.json", reads)


@pytest.mark.parametrize("name", ["new/bin/tool", "new/report.json", "new/lib/r.json", "link/r.json", "old/bin/x"])
def test_no_report_goes_into_an_arm(gate, capsys, name):
    """The links of bin/ lead to the interpreter of this machine, so another one stands for them."""
    Path("tool.txt").write_text("1")
    Path("new/bin/tool").symlink_to("../../tool.txt")
    Path("link").symlink_to("new/lib")
    error = refused(gate, capsys, name)
    arm = Path(name.replace("link", "new")).parts[0]
    assert f"--json {name} is in {Path.cwd() / arm}, which" in error
    assert "conditions" not in error and not Path("new/report.json").exists()


def test_what_a_link_of_an_arm_leads_to_is_not_replaced(gate, capsys, tmp_path):
    [site] = Path("new").glob("lib/python*/site-packages")
    (tmp_path / "cached.json").write_text("1")
    (site / "abacus.py").unlink()
    (site / "abacus.py").symlink_to(tmp_path / "cached.json")
    assert "--json cached.json would replace" in refused(gate, capsys, "cached.json")


@pytest.mark.slow
def test_a_report_goes_anywhere_else_also_twice(gate):
    for _ in range(2):
        assert gate("--json=report.json", "--markdown=tasks/report.md") == 0
    assert json.loads(Path("report.json").read_text())["status"] == "PASS"


def test_an_incomplete_line_is_kept_until_something_is_written(tmp_path):
    path = tmp_path / "gate.jsonl"
    header = json.dumps({"schema": 1, "machine": {}})
    path.write_text(f"{header}\n" + '{"key": ["lo')
    log = record.resume(path)
    assert path.read_text().endswith('{"key": ["lo')
    log.add({("x",): {"took": 1.0}})
    assert path.read_text() == f'{header}\n{{"key":["x"],"took":1.0}}\n'


def test_the_sources_of_an_editable_package_are_compared_unless_its_modules_are_known(venv, tmp_path):
    source = tmp_path / "project"
    (source / ".git").mkdir(parents=True)
    for name in ("abacus.py", ".git/hook.py", "notes.md"):
        (source / name).write_text("1")
    install(venv, "1.0")
    [information] = venv.glob("lib/python*/site-packages/abacus-1.0.dist-info")
    facts = {"url": source.as_uri(), "dir_info": {"editable": True}}
    (information / "direct_url.json").write_text(json.dumps(facts))
    arm = Environment(name="arm", label="", framework="x", command=(str(venv / "bin/python"), *packages.MODULE))

    def installed(*known):
        return content.of_environment(arm, apart=known)["installed"]["abacus"]

    before, known = installed(), installed(source / "abacus.py")
    for name in (".git/hook.py", "notes.md"):
        (source / name).write_text("22")
    assert installed() == before
    (source / "abacus.py").write_text("22")
    assert installed() != before and installed(source / "abacus.py") == known


def describe_arm(venv):
    return Environment(name="arm", label="", framework="x", command=(str(venv / "bin/python"), *packages.MODULE))


@pytest.mark.parametrize("kind", ["develop", "egg", "no list"])
def test_the_modules_of_a_package_without_a_list_of_its_files_are_compared(tmp_path, venv, kind):
    arm = tmp_path / "arm"
    subprocess.run(["cp", "-a", str(venv), str(arm)], check=True)
    [site] = arm.glob("lib/python*/site-packages")
    place = {"develop": tmp_path / "project", "egg": site / "ten-1.0-py3.egg", "no list": site}[kind]
    information = place / ("EGG-INFO" if kind == "egg" else "ten.egg-info")
    information.mkdir(parents=True)
    (information / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: ten\nVersion: 1.0\n")
    (information / "top_level.txt").write_text("ten\n")
    (place / "ten").mkdir()
    (place / "ten" / "__init__.py").write_text("1")
    if kind != "no list":
        (site / "easy-install.pth").write_text(f"{place}\n")

    def of_ten():
        return content.of_environment(describe_arm(arm))["installed"]["ten"]

    before = of_ten()
    assert of_ten() == before
    (place / "ten" / "__init__.py").write_text("22")
    assert of_ten() != before


def test_the_time_of_bytecode_and_of_other_files_does_not_count(tmp_path, venv):
    arm = tmp_path / "arm"
    subprocess.run(["cp", "-a", str(venv), str(arm)], check=True)
    [site] = arm.glob("lib/python*/site-packages")
    install(arm, "1.0")
    [record_file] = site.glob("abacus-1.0.dist-info/RECORD")
    record_file.write_text(record_file.read_text() + "__pycache__/abacus.pyc,,\n")
    before = content.of_environment(describe_arm(arm))
    (site / "__pycache__").mkdir()
    (site / "__pycache__" / "abacus.pyc").write_bytes(b"1")
    (site / "notes.txt").write_text("1")
    content.look_again()
    assert content.changes(before, content.of_environment(describe_arm(arm))) is None


def test_the_program_of_a_worker_that_is_no_python_is_compared(tmp_path):
    program = tmp_path / "worker.jl"
    arm = Environment(name="own", label="", framework="x", command=("julia", str(program)))
    program.write_text("1")
    before = content.of_environment(arm)
    program.write_text("22")
    assert content.changes(before, content.of_environment(arm)) == f"the files of {program} changed"


def test_a_file_is_read_again_only_if_its_size_or_time_changed(tmp_path, monkeypatch):
    path = tmp_path / "net.py"
    path.write_text("1")
    first = content.of_file(path)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", lambda *_: pytest.fail("read"))
        assert content.of_file(path) == first
    path.write_text("22")
    assert content.of_file(path) != first


def test_of_a_large_file_the_size_and_the_time_count(tmp_path):
    path = tmp_path / "w.npy"
    with path.open("wb") as file:
        file.truncate(content.LARGE + 1)
    before = content.of_file(path)
    assert str(content.LARGE + 1) in before
    os.utime(path, ns=(1, 1))
    assert content.of_file(path) != before


def test_of_a_folder_that_is_listed_the_names_count(tmp_path):
    """Without those that are hidden, and without bytecode."""
    listed = tmp_path / content.NAMES
    (tmp_path / "a").write_text("1")
    before = content.of_file(listed)
    for name in (".stele", "__pycache__"):
        (tmp_path / name).mkdir()
    (tmp_path / "a").write_text("22")
    assert content.of_file(listed) == before
    (tmp_path / "b").write_text("1")
    assert content.of_file(listed) != before
    assert content.of_file(tmp_path / "gone" / content.NAMES) is None


def test_of_a_folder_the_number_of_the_files_and_the_newest_time_count(tmp_path):
    (tmp_path / "a").write_text("1")
    found = [content.of_file(tmp_path / content.ALL)]
    (tmp_path / "b").write_text("1")
    found.append(content.of_file(tmp_path / content.ALL))
    os.utime(tmp_path / "a", ns=(2**62, 2**62))
    found.append(content.of_file(tmp_path / content.ALL))
    assert len(set(found)) == 3
    assert content.of_file(tmp_path / "gone" / content.ALL) is None


def test_what_changes_during_a_launch_is_named(monkeypatch, run):
    """Also if it is the only launch."""
    found = iter([{"files": "1"}, {"files": "2"}])
    monkeypatch.setattr(measure, "content_of", lambda *_: next(found))
    live = argparse.Namespace(environment=ORACLE)
    plan = measure.Plan("gru", "infer", "gate", data=None, data_origin=ORIGIN)
    with pytest.raises(SteleError, match="during a launch of 'numpy': the files of the model"):
        measure.with_content([changed(run, content=next(found))], live, plan)


def test_data_that_is_replaced_while_a_command_runs_is_seen(tmp_path, monkeypatch):
    """What was found is kept only while the files are as they were."""
    monkeypatch.setenv("STELE_DATA", str(tmp_path))
    archive, states = tmp_path / data.SETS["imdb"].SOURCE.file, [data.state("imdb", config.read())]
    for text in ("1", "22"):
        archive.write_text(text)
        states.append(data.state("imdb", config.read()))
    assert len(set(states)) == 3 and data.state("imdb", config.read()) == states[-1]
    loaded = iter([data.Dataset("imdb", "official", number, {}) for number in ("0", "1")])
    monkeypatch.setattr(data, "load", lambda *_: next(loaded))
    fingerprints = [measure.inputs("gru")[0]["data_origin"].fingerprint for _ in range(2)]
    archive.write_text("333")
    fingerprints.append(measure.inputs("gru")[0]["data_origin"].fingerprint)
    assert fingerprints == ["0", "0", "1"]


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_regular_file_is_never_read(tmp_path, make):
    make(tmp_path / "net.py")
    assert content.of_file(tmp_path / "net.py") is None


def test_a_name_in_a_message_cannot_control_a_terminal():
    assert content.changes({"files": {"\x1b[31m.py": "1"}}, {"files": {"\x1b[31m.py": "2"}}) == "?[31m.py changed"


@pytest.fixture
def measured(gate, monkeypatch):
    """measured() -> the trial of a gate that has ended."""
    trials = []
    run = gate_command.run

    def measured():
        monkeypatch.setattr(gate_command, "run", lambda gate: trials.append(gate.trial) or run(gate))
        gate()
        return trials[-1]

    return measured


@pytest.mark.slow
def test_a_node_that_measures_something_else_starts_the_gate_again_and_says_why(measured, monkeypatch, capsys):
    subject = measured()
    lines = [json.loads(line) for line in written().splitlines()]
    header = {**lines[0], "content": {**lines[0]["content"], "files": {"net.py": "0"}}}
    monkeypatch.setattr(trial, "content_of", lambda subject, known=None: lines[0]["content"])
    emitted = []
    log = fleet_gate.record_on_node(subject, {"header": header, "entries": lines[1:-1]}, emitted.append)
    assert "The gate starts again here. Cannot resume" in (err := capsys.readouterr().err) and "net.py changed" in err
    assert log.entries() == [] and emitted[0]["header"]["content"] == lines[0]["content"]


@pytest.mark.slow
def test_compilations_of_another_content_are_not_used(measured, monkeypatch, tmp_path):
    subject = measured()
    launched = []
    monkeypatch.setattr(measure, "side_by_side", lambda sides, *_, caches, **__: launched.append(caches))
    plan = measure.Plan("net.py:build", "infer", "gate", data=None, data_origin=ORIGIN)
    folders = []
    for found in ({"files": {"net.py": "1"}}, {"files": {"net.py": "2"}}):
        monkeypatch.setattr(launcher, "content_of", lambda subject, found=found: found)
        launch = launcher.Launcher(subject, (plan,), subject.settings)
        folders += [launcher.fill_caches(launch), launcher.fill_caches(launch)]
    assert folders[0] == folders[1] != folders[2] == folders[3]
    other = dataclasses.replace(plan, scale="quick")
    assert launcher.fill_caches(launcher.Launcher(subject, (other,), subject.settings)) not in folders
