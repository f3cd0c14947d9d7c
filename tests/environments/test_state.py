"""Whether an environment can be used, and what to do if not."""

import subprocess
import sys

from stele import environments
from stele.environments import Environment, installer


def test_a_missing_package_comes_with_the_command_to_install_it():
    missing = Environment(name="jax", label="JAX", framework="jax", imports=("sys", "no_such_module"))
    state = environments.state(missing)
    assert state.status == "missing"
    assert state.reason == "no_such_module is not installed. Run: pip install 'pytest-stele[jax]'"


def test_the_state_is_found_without_importing_the_framework(tmp_path):
    (tmp_path / "explosive.py").write_text("raise SystemExit('imported')")
    code = (
        "from stele.environments import Environment, state\n"
        "assert state(Environment(name='x', label='', framework='', imports=('explosive',))).status == 'ready'"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)


def test_a_pin_that_was_not_built_is_missing():
    state = environments.state(environments.load("jax==0.9.2"))
    assert state == ("missing", None, "not built. Build it with: stele env make 'jax==0.9.2'")


def test_a_missing_interpreter_comes_with_the_command_to_install_it():
    assert installer.find_interpreter("==2.1.*") is None
    assert (
        "Install it, for example with `pyenv install 2.1`, or run: stele env make old --python PATH"
        in installer.absence_message("old", "==2.1.*")
    )
