"""Each exit code of ``stele`` has one meaning, and an error of any kind never has the code of a verdict."""

import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from stele import __main__ as entry_point
from stele.commands import env, options
from stele.errors import SteleError
from stele.measuring import measure
from tests.support.scripted_environments import correct_numbers

COUNTS = [
    ["gate", "a", "b", "--threads"],
    ["calibrate", "--threads"],
    ["releases", "run", "--launches"],
    ["releases", "run", "--last"],
    ["nightly", "--last"],
    ["parity", "--seeds"],
    ["band", "--task=cnn", "--scale=smoke", "--seeds"],
]


@pytest.fixture
def fail(monkeypatch, tmp_path):
    """fail(error) runs a command that raises this error, and returns the exit code."""
    monkeypatch.chdir(tmp_path)

    def fail(error):
        def command(arguments):
            raise error

        monkeypatch.setattr(env, "show", command)
        monkeypatch.setattr(entry_point, "parser", entry_point.parser.__wrapped__)  # which knows the command
        return entry_point.main(["env", "list"])

    return fail


def test_a_command_that_succeeds_has_exit_code_zero(add_environment, capsys):
    add_environment("steady", numbers=correct_numbers("gru"))
    assert entry_point.main(["parity", "--framework=steady", "--task=gru"]) == 0


@pytest.mark.slow
def test_a_verdict_against_what_was_judged_has_exit_code_one(add_environment, capsys):
    add_environment("wrong", numbers={**correct_numbers("gru"), "logits": [[0.0] * 2] * 16})
    assert entry_point.main(["parity", "--framework=wrong", "--task=gru"]) == 1


@pytest.mark.parametrize("error", [SteleError("no network"), OSError(errno.EACCES, "denied", "run.json")])
def test_an_error_of_usage_or_environment_has_exit_code_two(fail, error, capsys):
    assert fail(error) == 2
    assert capsys.readouterr().err.startswith("stele: ")


@pytest.mark.slow
def test_a_command_without_a_verdict_has_exit_code_three(add_environment, capsys):
    add_environment("failing", seconds=[0.5, 0.1], train="raise_error", infer="raise_error")
    options = ["--task=gru", "--phase=infer", "--metric=step", "--budget=10s"]
    assert entry_point.main(["gate", "failing", "failing", *options]) == 3


@pytest.mark.parametrize("error", [ZeroDivisionError("division by zero"), KeyError("cpu0"), MemoryError()])
def test_an_internal_error_has_exit_code_four_and_its_traceback_in_a_file(fail, error, capsys, tmp_path):
    assert fail(error) == 4
    message = capsys.readouterr().err
    assert f"stele: internal error: {type(error).__name__}" in message
    assert "This is an error in Stele, not a verdict" in message
    assert "issue tracker of pytest-stele" in message
    assert "Traceback" not in message
    [path] = (tmp_path / ".stele/errors").iterdir()
    assert str(path.relative_to(tmp_path)) in message
    content = path.read_text()
    assert "Traceback (most recent call last)" in content
    assert "stele env list" in content


def test_the_traceback_of_an_internal_error_is_printed_if_it_cannot_be_written(fail, capsys, tmp_path):
    (tmp_path / ".stele").write_text("not a folder")
    assert fail(ZeroDivisionError("division by zero")) == 4
    message = capsys.readouterr().err
    assert "Traceback (most recent call last)" in message
    assert "could not be written" in message


def test_an_interrupt_has_exit_code_130(fail, capsys):
    assert fail(KeyboardInterrupt()) == 130
    assert "Finished results are saved" in capsys.readouterr().err


def stele(command, **options):
    """Run a shell command in which $STELE is the program, and return the finished process."""
    variables = {**os.environ, "STELE": f"{sys.executable} -m stele", **options.pop("variables", {})}
    return subprocess.run(command, shell=True, executable="/bin/bash", env=variables, capture_output=True, **options)


@pytest.mark.slow
@pytest.mark.parametrize("redirection", ["| true", "2>&1 | true"])
def test_a_reader_that_closes_the_output_causes_exit_code_two(redirection, tmp_path):
    done = stele(f"set -o pipefail; (sleep 0.5; $STELE env list) {redirection}", cwd=tmp_path)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr


@pytest.mark.slow
def test_a_full_disk_behind_the_output_causes_exit_code_two(tmp_path):
    if not Path("/dev/full").exists():
        pytest.skip("/dev/full does not exist")
    done = stele("$STELE env list > /dev/full", cwd=tmp_path)
    assert done.returncode == 2
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.slow
def test_without_any_output_the_exit_code_stays(tmp_path):
    assert stele("$STELE env list >&- 2>&-", cwd=tmp_path).returncode == 0


@pytest.mark.slow
def test_output_that_cannot_be_encoded_is_replaced(tmp_path):
    variables = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    (tmp_path / "ünï.toml").write_text('label = "Ünï…"\nframework = "numpy"\n', encoding="utf-8")
    variables["STELE_ENVIRONMENTS"] = str(tmp_path)
    for command in ("gate --help", "env list", "env make 'ünknown'"):
        done = stele(f"$STELE {command}", cwd=tmp_path, variables=variables)
        assert done.returncode == (2 if "make" in command else 0), done.stderr
        assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("command", COUNTS, ids=" ".join)
@pytest.mark.parametrize("value", ["-1", "0", "1.5", "nan", "inf", "many"])
def test_a_number_below_one_is_a_usage_error_that_quotes_it(command, value, capsys):
    with pytest.raises(SystemExit) as exit_info:
        entry_point.main([*command, value])
    assert exit_info.value.code == 2
    assert f"'{value}' is not a whole number of at least 1" in capsys.readouterr().err


@pytest.mark.parametrize("value", ["-1", "0", "nan", "inf", "1e300", "soon"])
def test_a_timeout_that_is_not_a_positive_number_is_a_usage_error(value, capsys):
    with pytest.raises(SystemExit) as exit_info:
        entry_point.main(["gate", "a", "b", "--worker-timeout", value])
    assert exit_info.value.code == 2
    assert f"'{value}' is not a positive number of seconds" in capsys.readouterr().err


@pytest.mark.parametrize("value", ["-1", str(2**32), "1.5", "nan"])
def test_a_seed_outside_its_range_is_a_usage_error(value, capsys):
    with pytest.raises(SystemExit) as exit_info:
        entry_point.main(["gate", "a", "b", "--seed", value])
    assert exit_info.value.code == 2
    assert f"'{value}' is not a seed" in capsys.readouterr().err


@pytest.mark.parametrize("value", ["-1m", "nanm", "infs", "20", "9" * 400 + "s"])
def test_a_budget_that_is_not_a_duration_is_a_usage_error(value, capsys):
    with pytest.raises(SystemExit) as exit_info:
        entry_point.main(["gate", "a", "b", f"--budget={value}"])
    assert exit_info.value.code == 2
    assert "is not a duration" in capsys.readouterr().err


def test_a_command_says_before_it_measures_that_data_is_synthetic(add_environment, capsys):
    add_environment("steady", seconds=[0.5, 0.1])
    measure.announce_inputs(["gru", "gru", "resnet50"])
    [line] = capsys.readouterr().err.splitlines()
    assert "synthetic" in line


def test_valid_numbers_are_accepted():
    assert (options.parse_count("12"), options.parse_seed("0"), options.parse_timeout("0.5")) == (12, 0, 0.5)


def test_the_help_page_lists_the_exit_codes(capsys):
    with pytest.raises(SystemExit):
        entry_point.main(["--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert [int(code) for code in re.findall(r"(?:Exit: |; )(\d+) ", shown)] == [0, 1, 2, 3, 4, 130]


ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.slow
@pytest.mark.parametrize("option", [[], ["-O"]])
@pytest.mark.parametrize("values", ['command = ["python", "/nowhere/größer"]', 'variables = {FOO = "größer"}'])
def test_a_path_that_the_locale_cannot_express_is_an_error_of_the_environment(option, values, tmp_path):
    description = f'label = "Other"\nframework = "numpy"\n{values}\n'
    (tmp_path / "other.toml").write_text(description, encoding="utf-8")
    command = [sys.executable, *option, "-m", "stele", "parity", "--framework=other", "--task=gru"]
    variables = {**os.environ, **ASCII, "STELE_ENVIRONMENTS": str(tmp_path)}
    process = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True)
    assert process.returncode == 2
    assert "cannot express '" in process.stderr
    assert "Set a locale with UTF-8, such as LC_ALL=C.UTF-8" in process.stderr
    assert "Traceback" not in process.stderr


def test_a_name_that_cannot_be_encoded_has_exit_code_two(fail, capsys):
    assert fail(UnicodeEncodeError("ascii", "/tmp/größer", 7, 9, "ordinal not in range(128)")) == 2
    assert "ascii, cannot express '/tmp/größer'" in capsys.readouterr().err


DAMAGE = {
    "absent": "raise ImportError('libblas.so.3: cannot open shared object file')",
    "of another release": "raise AttributeError('no float_')",
    "incomplete": "def array(",
}


@pytest.mark.parametrize("source", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("start", [["-m", "stele"], ["-c", "from stele.__main__ import main; main()"]])
def test_a_stele_that_cannot_start_is_no_verdict(tmp_path, source, start):
    (tmp_path / "numpy.py").write_text(source)
    variables = {**os.environ, "PYTHONPATH": str(tmp_path)}
    process = subprocess.run([sys.executable, *start], env=variables, capture_output=True, text=True, check=False)
    assert process.returncode == 2
    assert "stele: it cannot start: " in process.stderr and "pip install --force-reinstall" in process.stderr
    assert "Traceback" not in process.stderr


@pytest.mark.parametrize(
    "url",
    ["https://ada:secret@example.org/x", "https://secret@example.org", "https://example.org/?token=secret"],
)
def test_the_report_of_an_internal_error_has_no_password(fail, tmp_path, capsys, url):
    assert fail(RuntimeError(f"GET {url} failed")) == 4
    [path] = (tmp_path / ".stele/errors").iterdir()
    text = path.read_text()
    assert "RuntimeError: GET https://" in text and "failed" in text
    assert "secret" not in text + "".join(capsys.readouterr())
