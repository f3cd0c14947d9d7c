"""Rows: what is described, what a user pins, and whether either can be used."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stele import environments
from stele.environments import Environment, builds, description, installer, libraries
from stele.errors import SteleError

LIVING = (
    "jax", "jax-as-shipped", "tensorflow", "torch", "keras-jax", "keras-tensorflow", "keras-torch",
)  # fmt: skip
ROSETTA = (
    "caffe2", "chainer", "cntk", "keras2-cntk", "keras2-tensorflow", "keras2-theano", "knet", "lasagne",
    "mxnet-gluon", "mxnet-module", "onnxruntime", "openvino", "paddle", "paddle1", "r-keras", "tensorflow1",
)  # fmt: skip


@pytest.fixture(autouse=True)
def fresh(monkeypatch, tmp_path):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path / "cache"))
    environments.rows.cache_clear()
    yield
    environments.rows.cache_clear()


def test_the_living_rows_come_first():
    assert environments.names()[: len(LIVING)] == LIVING


def test_every_row_of_the_rosetta_stone_is_there():
    assert set(ROSETTA) <= set(environments.names())


@pytest.mark.parametrize("name", environments.names())
def test_every_description_is_whole(name):
    row = environments.load(name)
    assert row.label and row.framework
    assert all(
        reason for reason in [*row.requirements.values(), *row.absent.values(), *row.programs.values()]
    )


@pytest.mark.parametrize("name", [name for name in environments.names() if environments.load(name).lock])
def test_every_lock_pins_what_the_row_requires_with_hashes(name):
    row = environments.load(name)
    lock = row.lock.read_text()
    for requirement in row.requirements:
        distribution, _, release = requirement.partition("==")
        assert f"\n{distribution.lower()}=={release}" in "\n" + lock.lower(), requirement
    pins = [line for line in lock.splitlines() if "==" in line]
    assert len(pins) <= lock.count("--hash=sha256:")
    assert "://" not in lock


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(SteleError, match=r"Unknown framework 'pytorch'. Did you mean 'torch'\?"):
        environments.load("pytorch")


def test_a_name_like_no_other_shows_all():
    with pytest.raises(SteleError, match=r"Known: jax, jax-as-shipped, tensorflow, torch"):
        environments.load("abacus")


def test_what_is_missing_is_a_line_to_type():
    absent = Environment(name="jax", label="JAX", framework="jax", imports=("sys", "no_such_module"))
    found = environments.state(absent)
    assert found.status == "missing"
    assert found.reason == "no_such_module not installed: pip install -e '.[jax]' -c constraints.txt"


def test_looking_for_a_framework_does_not_import_it(tmp_path):
    (tmp_path / "explosive.py").write_text("raise SystemExit('imported')")
    code = (
        "from stele.environments import Environment, state\n"
        "assert state(Environment(name='x', label='', framework='', imports=('explosive',))).status == 'ready'"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)


def test_the_user_can_add_an_environment(tmp_path, monkeypatch):
    (tmp_path / "mine.toml").write_text('label = "Mine"\nframework = "mine"\ncommand = ["run", "me"]\n')
    monkeypatch.setenv("STELE_ENVIRONMENTS", str(tmp_path))
    assert builds.command(environments.load("mine")) == ("run", "me")


def test_a_description_that_is_none_says_which_and_why(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('label = "Mine"\nframwork = "typo"')
    with pytest.raises(SteleError, match=r"mine\.toml describes no environment: .*framwork"):
        description.read(path)


def test_a_row_with_documented_tuning_is_there_as_shipped_too(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('label = "Mine"\nframework = "mine"\nas_shipped = "oneDNN is off"')
    tuned, shipped = description.read(path)
    assert (tuned.name, tuned.tuned) == ("mine", True)
    assert (shipped.name, shipped.label, shipped.tuned) == ("mine-as-shipped", "Mine, as shipped", False)


def test_cells_that_a_row_cannot_fill_say_why():
    row = Environment(
        name="x", label="X", framework="x", devices=("cpu",), absent={"cnn train": "no training"}
    )
    on_cpu = {"device": "cpu", "precision": "fp32"}
    assert row.why_absent("cnn", "train", **on_cpu) == "no training"
    assert row.why_absent("cnn", "infer", **on_cpu) is None
    assert (
        row.why_absent("cnn", "infer", device="cuda", precision="fp32")
        == "X is set up for cpu here, not for cuda"
    )


@pytest.mark.parametrize(
    ("typed", "row"),
    [
        ("jax==0.9.2", "jax"),
        ("jax==0.9.2 jaxlib==0.9.2", "jax"),
        ("tensorflow-cpu==2.20.0", "tensorflow"),
        ("tensorflow==2.20.0", "tensorflow"),
        ("tensorflow==1.14.0", "tensorflow1"),
        ("keras==3.14.1", "keras-tensorflow"),
        ("keras==3.14.1 jax==0.9.2", "keras-jax"),
        ("keras==2.2.4", "keras2-tensorflow"),
        ("keras-torch@keras==3.14.1", "keras-torch"),
        ("paddlepaddle==3.2.0", "paddle"),
        ("torch==2.12.0", "torch"),
    ],
)
def test_a_requirement_finds_its_row(typed, row):
    pinned, described = environments.load(typed), environments.load(row)
    assert (pinned.name, pinned.framework, pinned.variables) == (
        typed,
        described.framework,
        described.variables,
    )
    assert set(typed.partition("@")[2].split() or typed.split()) <= set(pinned.requirements)
    packages = [requirement.partition("==")[0] for requirement in pinned.requirements]
    assert len(packages) == len(set(packages))


def test_an_interpreter_can_be_pinned_with_the_rest():
    assert environments.load("jax==0.4.30 python==3.10").python == "==3.10"


def test_a_requirement_of_no_row_is_told_so():
    with pytest.raises(SteleError, match=r"No row is written for 'requests==2.0'. Rows: jax,"):
        environments.load("requests==2.0")


def test_what_is_no_requirement_is_told_so():
    with pytest.raises(SteleError, match="is no requirement such as jax==0.9.2"):
        environments.load("jax==0.9.2 ==")


def test_a_pin_that_was_never_made_is_missing():
    found = environments.state(environments.load("jax==0.9.2"))
    assert found == ("missing", None, "not made: stele env make 'jax==0.9.2'")


def test_an_interpreter_that_does_not_work_is_told_so(tmp_path):
    with pytest.raises(SteleError, match="no/python is no Python interpreter that works"):
        environments.load(f"{tmp_path}/no/python")


def test_an_interpreter_with_one_framework_is_its_row(tmp_path):
    rows = [Environment(name="one", label="One", framework="one", imports=("json",))]
    rows.append(Environment(name="two", label="Two", framework="two", imports=("no_such_module",)))
    found = environments.pins.environment(sys.executable, rows)
    assert (found.framework, builds.command(found)) == ("one", (sys.executable, "-m", "stele_worker"))


def test_an_interpreter_with_two_frameworks_asks_which(tmp_path):
    rows = [Environment(name=name, label="", framework="", imports=("json",)) for name in ("one", "two")]
    with pytest.raises(SteleError, match=r"has one@\S+ or two@\S+: say which of them is meant"):
        environments.pins.environment(sys.executable, rows)
    assert environments.pins.environment(f"two@{sys.executable}", rows).name == f"two@{sys.executable}"


def test_a_program_that_is_not_there_says_how_to_get_it():
    row = Environment(
        name="knet", label="", framework="knet", programs={"no-such-program": "See julialang.org"}
    )
    assert libraries.missing(row) == "not run here: no no-such-program on PATH. See julialang.org"


def test_a_library_that_is_not_there_names_the_package():
    row = Environment(name="x", label="", framework="x", libraries={"libnone.so.1": {"package": "libnone1"}})
    assert "no libnone.so.1. Install Debian's libnone1" in libraries.missing(row)


def test_an_interpreter_that_is_nowhere_is_named_with_the_line_to_type():
    assert installer.interpreter("==2.1.*") is None
    assert (
        "Install it, as with `pyenv install 2.1`, or run: stele env make old --python PATH"
        in installer.absence("old", "==2.1.*")
    )


def test_the_shims_of_pyenv_are_not_asked(tmp_path, monkeypatch):
    """Each is a script, which fails where pyenv has no such interpreter chosen: the interpreters take their place."""
    shims = [str(tmp_path / "shims"), str(tmp_path / "plugins" / "pyenv-virtualenv" / "shims")]
    found = [tmp_path / "versions" / release / "bin" for release in ("3.10.2", "3.9.1")]
    for folder in found:
        folder.mkdir(parents=True)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", os.pathsep.join(["/first", *shims, "/usr/bin"]))
    folders = installer.search_path.__wrapped__().split(os.pathsep)
    assert folders[1:] == ["/first", *map(str, found), "/usr/bin"]


def test_this_interpreter_is_found():
    versions = f"=={sys.version_info.major}.{sys.version_info.minor}.*"
    found = installer.interpreter(versions)
    assert found is not None and Path(found).exists()
