"""setup.py and setup.cfg, which are read as text."""

from pathlib import Path

import pytest

from stele.environments import lockfiles
from stele.environments.lockfiles import read
from stele.errors import SteleError

SETUP = """
from setuptools import setup
EXTRA: list = ["jax==0.10.2"]
CORE = ["numpy", "torch==2.13.0"]
setup(install_requires=CORE + ["flax"], extras_require={"jax": EXTRA}, python_requires=">=3.10")
"""


def test_a_setup_py_is_read_as_text():
    locked = read("setup.py", SETUP, extras=["jax"])
    assert locked.requirements == ("numpy", "torch==2.13.0", "flax", "jax==0.10.2")
    assert locked.python == ">=3.10"
    assert lockfiles.extras_of("setup.py", SETUP) == ["jax"]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("setup(install_requires=open('stolen', 'w').name)", "line 1: the value is computed"),
        ("import os\nsetup(install_requires=[os.abort()])", "line 2: the value is computed"),
        ("A = B\nB = A\nsetup(install_requires=A)", "nested too deeply"),
        ("setup(install_requires=", "it is not valid Python"),
        ("setup(install_requires=[1])", "must be of type str, but it is int"),
        ("setup()", "names no package"),
        ("setup(install_requires=" + "[" * 5000 + ")", "setup.py"),
    ],
)
def test_a_setup_py_that_computes_its_packages_is_refused_and_never_executed(code, message):
    with pytest.raises(SteleError, match=r"^setup.py") as caught:
        read("setup.py", code)
    assert message in str(caught.value) and not Path("stolen").exists()


CFG = """
[options]
python_requires = >=3.10
install_requires =
    torch==2.13.0; python_version >= "3.8"
    # why
    numpy
[options.extras_require]
cpu = jax==0.10.2; flax
"""


def test_a_setup_cfg_is_read():
    locked = read("setup.cfg", CFG, extras=["cpu"])
    assert locked.requirements == (
        'torch==2.13.0; python_version >= "3.8"',
        "numpy",
        "jax==0.10.2",
        "flax",
    )
    assert locked.python == ">=3.10"


@pytest.mark.parametrize("content", ["[options", "x", "[options]\ninstall_requires = torch ==\n", "[a]\nb = %(c)s\n"])
def test_a_broken_setup_cfg_is_refused(content):
    with pytest.raises(SteleError, match=r"^setup.cfg"):
        read("setup.cfg", content)


@pytest.mark.parametrize(
    "code",
    [
        "R = ['jax==1']\nR += ['flax']\nsetup(install_requires=R)",
        "R = ['jax==1']\nR.extend(['flax'])\nsetup(install_requires=R)",
        "R = ['jax==1']\nif x:\n    R = ['jax==2']\nsetup(install_requires=R)",
        "R = {'a': ['jax==1']}\nR['a'] = ['jax==2']\nsetup(install_requires=[], extras_require=R)",
        "C = dict(install_requires=['jax==1'])\nsetup(**C)",
        "C = {'name': 'x'}\nC['install_requires'] = ['jax']\nsetup(**C)",
    ],
)
def test_packages_of_a_setup_py_that_statements_change_are_computed(code):
    with pytest.raises(SteleError, match="the value is computed, and Stele does not execute it"):
        read("setup.py", code)


def test_a_setup_py_with_a_table_of_arguments_is_read():
    code = "C = {'name': 'x', 'install_requires': ['jax==1']}\nsetup(**C)"
    assert read("setup.py", code).requirements == ("jax==1",)
    assert read("setup.py", "setup(install_requires=['jax'], **other())").requirements == ("jax",)
