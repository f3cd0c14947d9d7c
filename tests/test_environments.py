import subprocess
import sys

import pytest

from stele import environments
from stele.errors import SteleError


@pytest.fixture(autouse=True)
def fresh():
    environments.files.cache_clear()
    yield
    environments.files.cache_clear()


def test_the_six_living_rows_are_known():
    assert environments.names() == (
        "jax",
        "tensorflow",
        "torch",
        "keras-jax",
        "keras-tensorflow",
        "keras-torch",
    )


@pytest.mark.parametrize("name", environments.names())
def test_every_description_is_whole(name):
    environment = environments.load(name)
    assert environment.label and environment.framework and environment.imports


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(SteleError, match=r"Unknown framework 'pytorch'. Did you mean 'torch'\?"):
        environments.load("pytorch")


def test_a_name_like_no_other_shows_all():
    with pytest.raises(SteleError, match=r"Known: jax, tensorflow, torch"):
        environments.load("abacus")


def test_what_is_missing_is_a_line_to_type():
    absent = environments.Environment(
        name="jax", label="JAX", framework="jax", imports=("sys", "no_such_module")
    )
    assert absent.missing() == "no_such_module not installed: pip install -e '.[jax]' -c constraints.txt"


def test_looking_for_a_framework_does_not_import_it(tmp_path):
    (tmp_path / "explosive.py").write_text("raise SystemExit('imported')")
    code = (
        "from stele.environments import Environment\n"
        "assert Environment(name='x', label='', framework='', imports=('explosive',)).missing() is None"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)


def test_the_user_can_add_an_environment(tmp_path, monkeypatch):
    (tmp_path / "mine.toml").write_text('label = "Mine"\nframework = "mine"\ncommand = ["run", "me"]\n')
    monkeypatch.setenv("STELE_ENVIRONMENTS", str(tmp_path))
    assert environments.load("mine").command == ("run", "me")
