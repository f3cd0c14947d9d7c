"""``stele gate --changed``: which gates it makes, what each says, and the exit code of all."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from stele import __main__ as entry_point
from stele.commands import gate as gate_command
from stele.environments import changes
from stele.environments.lockfiles import Locked
from stele.environments.packages import NothingUpgradedError
from stele.errors import SteleError
from tests.support.gates import NUMBERS, SECONDS
from tests.support.scripted_environments import INSPECTION


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A git repository with a lock file, and the function that changes the lock file."""
    folder = tmp_path / "repository"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def write(**pins):
        Path("requirements.txt").write_text("".join(f"{name}=={version}\n" for name, version in pins.items()))

    write(jax="0.10.1", jaxlib="0.10.1", keras="3.14.1", numpy="2.0.0")
    identity = ["-c", "user.name=user", "-c", "user.email=user@localhost"]
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], [*identity, "commit", "-q", "-m", "lock"]):
        subprocess.run(["git", *command], check=True)
    return write


def test_changed_without_a_change_passes(repository, capsys):
    assert entry_point.main(["gate", "--changed", "main"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "compared: requirements.txt",
        "No version of a framework differs between main and the working tree in these files.",
    ]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("svc/nope.py:build", "there is no file"),
        ("svc/net.py:bild", "net.py has no 'bild'. Name a model, or a function that returns one."),
        ("svc.nope:build", "there is no module svc.nope in"),
        ("svc.net:bild", "net.py has no 'bild'"),
        ("svc:bild", "__init__.py has no 'bild'"),
        ("recipes/x/jax.py", "there is no file"),
    ],
)
def test_changed_with_a_model_that_is_not_there_is_an_error_although_nothing_changed(
    repository, capsys, model, message
):
    Path("svc").mkdir()
    Path("svc/__init__.py").touch()
    Path("svc/net.py").write_text("def build():\n    pass\n")
    assert entry_point.main(["gate", "--changed", "main", "--model", model]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("model", ["svc/net.py:build", "svc.net:build", "svc/star.py:build", "other.net:build"])
def test_changed_with_a_model_that_may_be_there_imports_nothing(repository, model):
    Path("svc").mkdir()
    Path("svc/net.py").write_text("def build():\n    pass\nraise SystemError\n")
    Path("svc/star.py").write_text("from net import *\n")
    assert entry_point.main(["gate", "--changed", "main", "--model", model]) == 0


def test_changed_prints_each_change_and_returns_the_worst_exit_code(repository, monkeypatch, capsys):
    repository(jax="0.10.2", jaxlib="0.10.1", keras="3.15.1", numpy="2.0.0")
    gated, reports = [], []

    def gate_pair(chosen, *_):
        gated.append((chosen.pair.old, chosen.pair.new))
        reports.append(str(chosen.reports.json))
        return 3 if "jax" in chosen.pair.old else 1

    monkeypatch.setattr("stele.commands.gate.gate_pair", gate_pair)
    assert entry_point.main(["gate", "--changed", "main", "--json", "gate.json"]) == 1
    assert reports == ["gate-jax.json", "gate-keras.json"]
    assert gated == [
        ("jax==0.10.1 jaxlib==0.10.1", "jax==0.10.2 jaxlib==0.10.1"),
        ("keras==3.14.1", "keras==3.15.1"),
    ]
    printed = capsys.readouterr().out
    assert "changed: jax 0.10.1 to 0.10.2 in requirements.txt" in printed
    assert printed.splitlines()[-1] == (
        "jax 0.10.1 to 0.10.2 in requirements.txt: exit code 3; "
        "keras 3.14.1 to 3.15.1 in requirements.txt: exit code 1. "
        "All changes together: exit code 1. This is not a pass."
    )


def test_changed_of_a_framework_that_cannot_be_gated_is_an_error_that_names_the_line(repository, capsys):
    repository(jax="0.10.1", jaxlib="0.10.1", numpy="2.0.0")
    assert entry_point.main(["gate", "--changed", "main"]) == 2
    output = capsys.readouterr()
    assert "not gated: requirements.txt, line 3: 'keras==3.14.1' has nothing to be compared with" in output.out
    assert "A framework changed between main and the working tree, and nothing can be gated." in output.err


def test_changed_with_a_file_that_cannot_be_read_does_not_say_that_a_framework_changed(repository, capsys):
    with Path("requirements.txt").open("a") as file:
        file.write("-c constraint.txt\n")
    assert entry_point.main(["gate", "--changed", "main"]) == 2
    output = capsys.readouterr()
    assert "line 5: '-c constraint.txt' names a file that cannot be read" in output.out
    assert "it is unknown whether a framework changed. Correct the line that is named above" in output.err


def test_changed_without_a_file_of_packages_is_an_error(repository, capsys):
    subprocess.run(["git", "mv", "requirements.txt", "words"], check=True)
    subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qam", "words"], check=True)
    assert entry_point.main(["gate", "--changed", "HEAD"]) == 2
    assert "There is nothing to compare: neither 'HEAD' nor the working tree" in capsys.readouterr().err


@pytest.mark.parametrize(("codes", "expected"), [((0, 0), 0), ((3, 0), 3), ((2, 3), 2), ((2, 0), 2), ((2, 1), 1)])
def test_of_several_gates_one_that_is_impossible_does_not_prevent_the_others(
    repository, monkeypatch, capsys, codes, expected
):
    repository(jax="0.10.2", jaxlib="0.10.1", keras="3.15.1", numpy="2.0.0")
    given = iter(codes)

    def gate_pair(*_):
        code = next(given)
        if code == 2:
            raise SteleError("https://ada:secret@example.org does not answer.")
        return code

    monkeypatch.setattr("stele.commands.gate.gate_pair", gate_pair)
    assert entry_point.main(["gate", "--changed", "main"]) == expected
    assert next(given, None) is None
    assert "secret" not in (err := capsys.readouterr().err)
    assert ("stele: https://ada:***@example.org does not answer." in err) == (2 in codes)


def test_changed_in_a_subfolder_names_its_files_from_the_root(repository, monkeypatch, capsys):
    Path("train").mkdir()
    Path("train/requirements.txt").write_text("-r ../base.txt\n")
    Path("train/net.py").write_text("build = None\n")
    subprocess.run(["git", "mv", "requirements.txt", "base.txt"], check=True)
    subprocess.run(["git", "add", "-A"], check=True)
    identity = ["-c", "user.name=user", "-c", "user.email=user@localhost"]
    subprocess.run(["git", *identity, "commit", "-q", "-m", "base"], check=True)
    Path("base.txt").write_text("jax==0.10.2\njaxlib==0.10.1\nkeras==3.14.1\nnumpy==2.0.0\n")
    monkeypatch.chdir("train")
    gated = []
    monkeypatch.setattr("stele.commands.gate.gate_pair", lambda chosen, *_: gated.append(chosen.pair) or 0)
    assert entry_point.main(["gate", "--changed", "main", "--model", "net.py:build"]) == 0
    assert [(one.old, one.new) for one in gated] == [
        ("train/requirements.txt@main", "train/requirements.txt with jax 0.10.2")
    ]
    assert capsys.readouterr().out.splitlines() == [
        "compared: train/requirements.txt, base.txt (included by train/requirements.txt)",
        "changed: jax 0.10.1 to 0.10.2 in train/requirements.txt (base.txt)",
    ]


def test_changed_beside_a_package_from_a_url_is_no_pass(repository, monkeypatch):
    repository(jax="0.10.2", jaxlib="0.10.2", numpy="2.0.0")
    with Path("requirements.txt").open("a") as file:
        file.write("keras @ https://example.org/keras-4-py3-none-any.whl\n")
    for code, expected in ((0, 2), (3, 2), (1, 1)):
        monkeypatch.setattr("stele.commands.gate.gate_pair", lambda *_, code=code: code)
        assert entry_point.main(["gate", "--changed", "main"]) == expected


def test_a_built_in_task_says_which_packages_of_the_file_it_does_not_use(repository, monkeypatch, capsys):
    repository(jax="0.10.2", jaxlib="0.10.2", keras="3.14.1", numpy="2.1.0")
    monkeypatch.setattr("stele.commands.gate.gate_pair", lambda *_: 0)
    assert entry_point.main(["gate", "--changed", "main"]) == 0
    out = capsys.readouterr().out
    assert "changed, but not gated: numpy 2.0.0 to 2.1.0 in requirements.txt. The built-in tasks do not use" in out


@pytest.mark.parametrize(("jax", "code"), [("0.10.1", 0), ("0.10.2", 2)])
def test_a_change_that_upgrades_nothing_passes_if_no_framework_changed(repository, monkeypatch, capsys, jax, code):
    def gate_pair(*_):
        raise NothingUpgradedError("Nothing is upgraded.")

    repository(jax=jax, jaxlib="0.10.1", keras="3.14.1", numpy="2.1.0")
    Path("net.py").write_text("build = None\n")
    monkeypatch.setattr("stele.commands.gate.gate_pair", gate_pair)
    assert entry_point.main(["gate", "--changed", "main", "--model", "net.py:build"]) == code
    said = "not measured: requirements.txt@main and the working tree install the same packages."
    assert (said in capsys.readouterr().out) == (code == 0)


@pytest.fixture
def changed(add_environment, tmp_path, monkeypatch):
    """changed({name: script of NEW}, ungated) -> the exit code of --changed with such gates and all reports."""
    (tmp_path / "net.py").write_text("build = None\n")
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=tmp_path, check=True)
    commit = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "--allow-empty", "-m", "1"]
    subprocess.run(commit, cwd=tmp_path, check=True)
    script = {"seconds": SECONDS, "numbers": NUMBERS, "inspection": INSPECTION}

    def changed(gates, ungated=(), *, blocked=False, options=()):
        add_environment("old", **script)
        pairs = []
        for number, (name, of_new) in enumerate(gates.items()):
            add_environment(f"new{number}", **{**script, **of_new})
            contents = (Locked((), None, "requirements"),) * 2
            pairs.append(changes.Pair("old", f"new{number}", contents, f"jax 1 to 2 in {name}", name, frozenset()))
        found = changes.Changed([], pairs, [*ungated], blocked, [], [])
        monkeypatch.setattr("stele.environments.changes.find", lambda *_, **__: found)
        reports = ("--json=gate.json", "--markdown=gate.md", "--junit=gate.xml")
        command = ["gate", "--changed", "main", "--model=net.py:build", "--metric=parity", *reports, *options]
        return entry_point.main(command)

    return changed


ADDED = "b.txt, line 1: 'keras==3' has nothing to be compared with"


def test_a_gate_that_passes_beside_a_change_without_a_gate_is_no_pass_in_any_report(changed, capsys):
    assert changed({"a.txt": {}}, [ADDED], blocked=True) == 2
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"not gated: {ADDED}. All changes together: exit code 2. This is not a pass."
    page = Path("gate.md").read_text()
    assert page.startswith("# INCONCLUSIVE: old to new0\n\nAll changes together: exit code 2. This is not a pass.")
    assert "not gated: b.txt, line 1" in page and "Upgrade to" not in page
    document = json.loads(Path("gate.json").read_text())
    assert document["status"] == "INCONCLUSIVE"
    assert document["together"] == {"code": 2, "lines": [f"not gated: {ADDED}"]}
    assert 'errors="1"' in (suite := Path("gate.xml").read_text()) and "exit code 2. This is not a pass" in suite
    [path] = Path(".stele/gates").glob("*.jsonl")
    for source in (path, Path("gate.json")):
        assert entry_point.main(["report", str(source), "--markdown=again.md"]) == 0
        assert (
            Path("again.md").read_text().startswith("# INCONCLUSIVE: old to new0\n\nAll changes together: exit code 2.")
        )


def test_a_change_without_a_gate_that_does_not_block_is_in_every_report_of_a_pass(changed, capsys):
    assert changed({"a.txt": {}}, [ADDED]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"not gated: {ADDED}. All changes together: exit code 0."
    page = Path("gate.md").read_text()
    assert page.startswith("# PASS: old to new0") and "not gated: b.txt, line 1" in page
    assert json.loads(Path("gate.json").read_text())["status"] == "PASS"


@pytest.mark.slow
def test_the_report_of_a_gate_that_passes_says_what_the_other_gates_say(changed, capsys):
    assert changed({"a.txt": {}, "a_txt": {"parity": "user_error"}}) == 1
    assert sorted(path.name for path in Path().glob("gate*")) == [
        f"gate-{name}.{kind}" for name in ("a.txt", "a_txt") for kind in ("json", "md", "xml")
    ]
    page = Path("gate-a.txt.md").read_text()
    assert page.startswith("# INCONCLUSIVE") and "jax 1 to 2 in a\\_txt: exit code 1" in page
    assert Path("gate-a_txt.md").read_text().startswith("# BROKEN")
    assert "jax 1 to 2 in a_txt: exit code 1. All changes together: exit code 1." in capsys.readouterr().out


def test_a_gate_that_is_interrupted_leaves_the_reports_of_the_others_and_they_say_so(changed, monkeypatch):
    gate_pair = gate_command.gate_pair

    def interrupted(chosen, *about):
        if chosen.pair.new == "new1":
            raise KeyboardInterrupt
        return gate_pair(chosen, *about)

    monkeypatch.setattr(gate_command, "gate_pair", interrupted)
    assert changed({"a.txt": {}, "b.txt": {}}) == 130
    document = json.loads(Path("gate-a.txt.json").read_text())
    assert (document["status"], document["together"]["code"]) == ("INCONCLUSIVE", 2)
    assert document["together"]["lines"][1] == "jax 1 to 2 in b.txt: its gate did not end"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["jax", "jax", "keras"], ["jax", "jax-2", "keras"]),
        (["a/b.txt", "a_b.txt", "A_b.txt"], ["a_b.txt", "a_b.txt-2", "A_b.txt-3"]),
        (["x-2", "x", "x"], ["x-2", "x", "x-3"]),
    ],
)
def test_every_gate_of_a_command_has_reports_of_its_own(names, expected):
    assert gate_command.unique(names) == expected


@pytest.mark.parametrize("name", ["requirements.txt", "c.txt", "base.txt", "sub/pins.txt"])
@pytest.mark.parametrize("folder", [".", "train"])
def test_no_file_that_was_compared_is_overwritten_also_from_a_subfolder(repository, monkeypatch, capsys, name, folder):
    repository(jax="0.10.2")
    files = {"base.txt": "numpy==2.0.0\n", "c.txt": "-r base.txt\nscipy==1\n", "sub/pins.txt": "x==1\n"}
    for file, text in {**files, "m.py": "model = None\n", "train/m.py": "model = None\n"}.items():
        Path(file).parent.mkdir(exist_ok=True)
        Path(file).write_text(text)
    subprocess.run(["git", "add", "-A"], check=True)
    root = Path.cwd()
    before = {path: path.read_bytes() for path in root.rglob("*.txt")}
    monkeypatch.chdir(folder)
    report = os.path.relpath(root / name)
    command = ["gate", "--changed", "main", "--model", "m.py:model", "--json", report]
    assert entry_point.main(command) == 2
    assert f"--json {report} would replace" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in root.rglob("*.txt")} == before


def test_changed_of_an_unknown_revision_is_an_error(repository, capsys):
    assert entry_point.main(["gate", "--changed", "maim"]) == 2
    assert "main" in capsys.readouterr().err


def test_changed_finds_both_arms_so_they_are_left_out(repository, capsys):
    assert entry_point.main(["gate", "a", "b", "--changed", "main"]) == 2
    assert "--changed finds OLD and NEW itself. Leave them out." in capsys.readouterr().err
