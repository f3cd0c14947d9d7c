"""The completion of shells."""

import subprocess
import sys

import pytest

from stele import __main__ as entry_point

# completion

PROBE = """
source "$1"
COMP_WORDS=("${@:2}") COMP_CWORD=$(($# - 2))
_shtab_stele
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def complete(tmp_path_factory):
    """complete(*words) -> what bash offers for the last word."""
    script = tmp_path_factory.mktemp("completion") / "stele.bash"
    done = subprocess.run(
        [sys.executable, "-m", "stele", "completion", "bash"], capture_output=True, text=True, check=True
    )
    script.write_text(done.stdout)

    def complete(*words, folder=None):
        command = ["bash", "-c", PROBE, "bash", str(script), "stele", *words]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=60)
        assert done.stderr == ""
        return done.stdout.split()

    return complete


@pytest.mark.slow
def test_bash_completes_commands_and_options(complete):
    assert set(complete("ga")) == {"gate"}
    assert {"sync", "list", "run", "publish"} <= set(complete("releases", ""))
    assert set(complete("gate", "--mark")) == {"--markdown"}
    assert set(complete("releases", "sync", "--p")) == {"--pre"}


def test_bash_completes_files_where_a_path_is_expected(complete, tmp_path):
    (tmp_path / "report.json").touch()
    assert complete("gate", "--json", "rep", folder=tmp_path) == ["report.json"]


@pytest.mark.parametrize("shell", ["zsh", "tcsh"])
def test_other_shells_have_a_script(shell, capsys):
    assert entry_point.main(["completion", shell]) == 0
    assert "stele" in capsys.readouterr().out
