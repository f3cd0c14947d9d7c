"""``stele nightly`` with code of the user: newer releases of a package are wheels, and a function uses it."""

import json
from pathlib import Path

import pytest

from stele import __main__ as entry_point
from tests.support.wheels import use_alone, wheel

CODE = "import abacus\ndef total():\n    return abacus.add(20, 22)\n"
ADD = "def add(a, b): return a + b\n"
SUBTRACT = "def add(a, b): return a - b\n"
COMMAND = ["nightly", "abacus==1.0", "--json=night.json", "--only-outcomes", "--function", "code.py:total"]


@pytest.fixture
def releases(monkeypatch, tmp_path):
    """releases(version=source, ...): more wheels in the index; ``_`` stands for a dot."""
    folder = tmp_path / "index"
    use_alone(monkeypatch, folder, tmp_path / "uv")
    monkeypatch.setenv("STELE_INDEX", str(folder))
    monkeypatch.setattr("stele.environments.arms.WORKER_NEEDS", ())  # there is no network
    monkeypatch.setattr("stele.measuring.processors.count", lambda: 2)
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    Path("code.py").write_text(CODE)

    def add(**sources):
        for version, source in sources.items():
            wheel(folder, "abacus", version.lstrip("v").replace("_", "."), source)

    return add


def night(*more):
    code = entry_point.main([*COMMAND[:2], *more, *COMMAND[2:]])
    return code, json.loads(Path("night.json").read_text())


@pytest.mark.slow
def test_each_release_is_judged_once_and_what_is_worse_is_reported_once(releases, capsys):
    releases(v1_0=ADD, v1_1=ADD, v1_2=SUBTRACT, v1_3=SUBTRACT, v1_4rc1=ADD)
    code, document = night()
    assert code == 1
    assert document["releases"] == ["abacus-1.3", "abacus-1.2", "abacus-1.1"]  # the newest first
    [rise] = document["rises"]  # that of 1.3 is the same
    assert rise["release"] == "abacus-1.2" and "changed" in rise["message"] and rise["before"] is None
    text = Path(".stele/nightly.md").read_text()
    assert "## abacus-1.2 is worse" in text and "stele gate abacus==1.0 abacus==1.2 --function" in text
    capsys.readouterr()
    code, document = night()
    assert (code, document["releases"]) == (0, ["abacus-1.3"])  # your code may have changed
    assert len(document["rises"]) == 1  # its issue stays open
    assert "1 release judged, 0 new of 1 line that are worse" in capsys.readouterr().out
    code, document = night("--pre")
    assert (code, document["releases"]) == (0, ["abacus-1.4rc1"])
    assert document["rises"] == []  # it is not worse any more


def test_a_release_that_cannot_be_installed_is_named_and_tried_again(releases, tmp_path, capsys):
    releases(v1_0=ADD)
    wheel(tmp_path / "index", "abacus", "1.1", ADD, requires=("absent-package",))
    for _ in range(2):
        code, document = night()
        assert code == 2 and list(document["not_judged"]) == ["abacus-1.1"] and document["rises"] == []
        assert "## Not judged" in Path(".stele/nightly.md").read_text()


@pytest.mark.slow
def test_a_gate_continues_in_the_next_night_and_begins_again_if_the_code_has_changed(releases, capsys):
    releases(v1_0=ADD, v1_1=ADD)
    assert night()[0] == 0
    records = list(Path(".stele/gates").glob("*.jsonl"))
    assert night()[0] == 0 and list(Path(".stele/gates").glob("*.jsonl")) == records
    Path("code.py").write_text(CODE + "\n# changed\n")
    assert night()[0] == 0
    assert "abacus-1.1 is judged again" in capsys.readouterr().err
    assert len(list(Path(".stele/gates").glob("*.jsonl"))) == 2


@pytest.mark.slow
def test_code_that_does_not_run_with_the_pinned_version_ends_the_night_at_once(releases, capsys):
    releases(v1_0=ADD, v1_1=ADD, v1_2=ADD)
    Path("code.py").write_text("def other(): pass\n")
    assert entry_point.main(COMMAND) == 2
    error = capsys.readouterr().err
    assert "'code.py:total': code has no 'total'." in error and error.count("stele gate") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("abacus==1.0", "Name the code, too: stele nightly abacus==1.0 -- pytest tests"),
        ("abacus --function code.py:total", "'abacus' is no pinned package"),
        ("--function code.py:total", "Name what your code uses now"),
        ("abacus==1.0 abacus==1.1 --function code.py:total", "abacus is pinned twice"),
        ("abacus==1.0 --launches=3 --function code.py:total", "--launches has no effect"),
        ("abacus==1.0 --site=site --function code.py:total", "--site has no effect"),
        ("abacus==1.0 --task=cnn --function code.py:total", "--task has no effect"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_built(releases, capsys, words, message):
    assert entry_point.main(["nightly", *words.split()]) == 2
    assert message in capsys.readouterr().err
