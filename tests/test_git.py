"""How git is started."""

import subprocess

import pytest

from stele import git
from stele.errors import SteleError


@pytest.fixture
def started(monkeypatch):
    """The command and the variables of each start of git."""
    starts = []

    def run(command, *, env, **_):
        starts.append((command, env))
        return subprocess.CompletedProcess(command, 0, b"", b"")

    monkeypatch.setattr(subprocess, "run", run)
    return starts


def test_no_variable_of_the_user_selects_another_repository(started, monkeypatch, tmp_path):
    monkeypatch.setenv("GIT_DIR", "/elsewhere")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "0")
    git.run(tmp_path, "status", protocols="https")
    [(command, variables)] = started
    assert "GIT_DIR" not in variables and variables["GIT_CONFIG_COUNT"] == "0"
    assert variables["GIT_ALLOW_PROTOCOL"] == "https"
    assert command[-1] == "status" and command[command.index("-C") + 1] == str(tmp_path)


def test_a_repository_starts_no_hook_and_no_monitor_of_files(tmp_path):
    mark = tmp_path / "mark"
    git.run(tmp_path, "init", "--quiet", ".", protocols="")
    for name in ("post-commit", "pre-commit"):
        hook = tmp_path / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
        hook.chmod(0o755)
    author = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    done = git.run(tmp_path, *author, "commit", "--allow-empty", "-m", "x", protocols="")
    assert done.returncode == 0 and not mark.exists()


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (FileNotFoundError(), "git is not on PATH"),
        (subprocess.TimeoutExpired("git", 60), "git did not answer within 60 s"),
    ],
)
def test_a_git_that_does_not_start_or_end_is_an_error(monkeypatch, tmp_path, error, message):
    def run(*_, **__):
        raise error

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(SteleError, match=message):
        git.run(tmp_path, "status", protocols="")


def test_a_git_that_fails_is_returned(tmp_path):
    assert git.run(tmp_path, "log", protocols="").returncode != 0
