"""One measurement at a time on a machine, whatever the user's variables are."""

import json
import os
import stat
import subprocess
import sys

import pytest

from stele import __main__ as entry_point
from stele.data import cache
from stele.errors import SteleError
from stele.measuring import lock

HOLD = (
    "from stele.measuring import lock\n"
    "with lock.machine('stele gate a b', wait=False, say=print): print('held', flush=True); input()"
)


@pytest.fixture
def common(monkeypatch, tmp_path):
    """The folder that all users share."""
    monkeypatch.delenv(lock.VARIABLE)
    monkeypatch.setenv("STELE_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "shm"
    folder.mkdir()
    monkeypatch.setattr(lock, "FOLDERS", (tmp_path / "missing", folder))
    return folder


def hold(**variables):
    command = [sys.executable, "-c", HOLD]
    other = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **variables}
    )
    assert other.stdout.readline() == "held\n"
    return other


def refused(message):
    with pytest.raises(SteleError, match=message), lock.machine("mine", wait=False, say=print):
        pass


@pytest.mark.parametrize("variable", ["STELE_CACHE", "TMPDIR"])
def test_a_process_with_other_folders_waits_for_the_same_lock(tmp_path, monkeypatch, variable):
    (tmp_path / "other").mkdir()
    monkeypatch.setenv("STELE_CACHE", str(tmp_path / "mine"))
    with hold(**{variable: str(tmp_path / "other")}) as other:
        with (
            pytest.raises(SteleError, match=r"Another measurement runs on this machine: stele gate a b \(process"),
            lock.machine("mine", wait=False, say=print),
        ):
            pass
        other.stdin.close()
    with lock.machine("mine", wait=False, say=print):
        pass


def test_a_gate_waits_for_another_measurement_and_says_for_which(monkeypatch, capsys, add_environment):
    """The other one ends when the message has been printed."""

    def gate_pair(*_):
        raise SteleError("Measured after the wait.")

    monkeypatch.setattr("stele.commands.gate.gate_pair", gate_pair)
    add_environment("fake")
    ended = []
    monkeypatch.setattr(lock.time, "sleep", lambda _: ended or ended.append(other.stdin.close()))
    with hold() as other:
        assert entry_point.main(["gate", "fake", "fake"]) == 2
    message = "stele: waiting for another measurement on this machine: stele gate a b (process"
    error = capsys.readouterr().err
    assert ended and error.index(message) < error.index("Measured after the wait.")


MODEL = ["torch", "jax", "--model", "net.py"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["gate", "torch"], "Name OLD and NEW"),
        (["gate", "torhc", "torch"], "Did you mean 'torch'?"),
        (["gate", *MODEL], "--model net.py names no model"),
        (["gate", "torch", "jax", "--metric=partiy"], "Did you mean 'parity'?"),
        (
            ["gate", "torch", "jax", "--tolerance=stpe=3%"],
            "Unknown metric 'stpe' in --tolerance stpe=3%. Did you mean 'step'?",
        ),
        (["gate", "torch", "jax", "--task=cnnn"], "Did you mean 'cnn'?"),
        (["gate", "torch", "--changed=main"], "--changed finds OLD and NEW itself"),
        (["gate", "--changed=main", "--metric=partiy"], "Did you mean 'parity'?"),
        (["explain", *MODEL], "--model net.py names no model"),
        (["bisect", "torch", "2.12.0", "2.13.0", "--model", "net.py"], "--model net.py names no model"),
    ],
)
def test_what_is_wrong_on_the_command_line_is_said_before_the_wait(monkeypatch, capsys, line, message):
    monkeypatch.setattr(lock, "machine", None)  # nothing waits
    assert entry_point.main(line) == 2
    assert message in capsys.readouterr().err


def test_an_interrupt_while_a_gate_waits_speaks_of_no_results(monkeypatch, capsys, add_environment):
    def interrupted(_):
        raise KeyboardInterrupt

    add_environment("fake")
    monkeypatch.setattr(lock.time, "sleep", interrupted)
    with hold() as other:
        assert entry_point.main(["gate", "fake", "fake"]) == 130
        other.stdin.close()
    assert capsys.readouterr().err.splitlines()[-1] == "stele: interrupted."


def test_containers_that_share_nothing_but_the_cache_wait_for_each_other(tmp_path, monkeypatch):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path / "shared"))
    (tmp_path / "container").mkdir()
    with hold(**{lock.VARIABLE: str(tmp_path / "container")}) as other:
        refused("Another measurement runs on this machine: stele gate a b")
        other.stdin.close()


def test_all_users_may_lock_and_describe_the_file(common):
    before = os.umask(0o077)
    try:
        with lock.machine("mine", wait=False, say=print):
            assert stat.S_IMODE((common / lock.file_name()).stat().st_mode) == 0o666
    finally:
        os.umask(before)


def test_a_cache_in_the_folder_of_the_locks_does_not_wait_for_itself(common, monkeypatch):
    monkeypatch.setenv("STELE_CACHE", str(common))
    with lock.machine("mine", wait=False, say=print):
        pass


def test_without_a_common_folder_the_cache_has_the_lock(common, monkeypatch):
    monkeypatch.setattr(lock, "FOLDERS", (common / "missing",))
    with lock.machine("mine", wait=False, say=print):
        assert (cache.folder() / lock.file_name()).exists() and not list(common.iterdir())


@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "folder", "second name"])
def test_what_another_user_planted_is_not_written(common, tmp_path, kind):
    path, precious = common / lock.file_name(), tmp_path / "precious"
    precious.write_text("keep")
    {
        "link": lambda: path.symlink_to(precious),
        "dangling link": lambda: path.symlink_to(tmp_path / "new"),
        "pipe": lambda: os.mkfifo(path),
        "folder": path.mkdir,
        "second name": lambda: path.hardlink_to(precious),
    }[kind]()
    refused(rf"The lock {path} cannot be opened: .*Remove it")
    assert precious.read_text() == "keep" and not (tmp_path / "new").exists()


def test_a_file_that_may_only_be_read_can_be_locked(common, monkeypatch):
    path = common / lock.file_name()
    path.touch()
    opened = os.open

    def refuse_writing(name, flags, *mode, **more):
        if name == path and flags & os.O_RDWR:
            raise PermissionError(13, "Permission denied")
        return opened(name, flags, *mode, **more)

    monkeypatch.setattr(os, "open", refuse_writing)
    with lock.machine("mine", wait=False, say=print), lock.opened(lock.file_name()) as other:
        assert lock.find_taken(other) is not None
    assert path.read_text() == ""


def test_a_file_that_may_not_be_opened_is_an_error_that_says_what_to_do(common, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    refused(f"Permission denied.*{lock.VARIABLE} names another folder")


def test_a_folder_of_locks_that_does_not_exist_is_named_with_the_command_that_creates_it(common, tmp_path, monkeypatch):
    folder = tmp_path / "x"
    monkeypatch.setenv(lock.VARIABLE, str(folder))
    refused(rf"The folder {folder} of the locks .* does not exist. Create it: mkdir -p {folder}")


def test_a_description_cannot_control_the_terminal(common):
    (common / lock.file_name()).write_text('{"schema": 1, "what": "a\\u001b[31mb", "pid": 3, "since": 0}')
    with lock.opened(lock.file_name()) as files:
        assert lock.holder(files[0]).startswith("a?[31mb (process 3")


def test_a_suite_waits_for_the_cells_of_a_fleet_and_cells_do_not_wait_for_each_other(tmp_path, monkeypatch):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path))
    name = lock.file_name()
    with lock.opened(name) as cell, lock.opened(name) as other, lock.opened(name) as suite:
        assert lock.find_taken(cell, shared=True) is None
        assert lock.find_taken(other, shared=True) is None
        assert lock.find_taken(suite) is not None


def test_a_cache_folder_that_cannot_be_created_names_the_variable_that_moves_it(monkeypatch):
    monkeypatch.setenv("STELE_CACHE", "/proc/none/stele")
    with (
        pytest.raises(SteleError, match="/proc/none/stele cannot be used: .*Set STELE_CACHE to a folder"),
        lock.machine("a test", wait=False, say=print),
    ):
        pass


def test_the_lock_is_entered_again_by_its_own_process(monkeypatch, tmp_path):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path))
    with lock.machine("outer", wait=False, say=print), lock.machine("inner", wait=False, say=print):
        assert json.loads((cache.folder() / lock.file_name()).read_text())["what"] == "outer"
    assert lock.depth == 0


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"what": 3}', "\x00"])
def test_a_damaged_lock_file_is_no_obstacle(monkeypatch, tmp_path, content):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path))
    (tmp_path / lock.file_name()).write_text(content)
    with lock.machine("mine", wait=False, say=print):
        pass


def test_a_command_that_measures_does_not_start_beside_another_measurement(
    monkeypatch, tmp_path, capsys, add_environment
):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path))
    add_environment("fake")
    code = (
        "from stele.measuring import lock\n"
        "with lock.machine('suite', wait=True, say=print): print('held', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "held\n"
        for command in (
            ["gate", "fake", "fake"],
            ["calibrate"],
        ):
            assert entry_point.main([*command, "--no-wait"]) == 2
            assert "Another measurement runs on this machine: suite (process" in capsys.readouterr().err
        other.stdin.close()
