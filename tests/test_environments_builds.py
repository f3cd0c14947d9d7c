"""Building environments: from wheels in a folder, with the real uv and no network."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from processes import alive, wait_until
from stele import __main__ as door
from stele import environments
from stele.environments import builds, installer
from stele.errors import SteleError
from wheels import wheel

HERE = f"=={sys.version_info.major}.{sys.version_info.minor}.*"


@pytest.fixture(scope="module")
def uv_cache(tmp_path_factory):
    """One for all tests here: asking every interpreter of this machine what it is takes a moment."""
    return tmp_path_factory.mktemp("uv")


@pytest.fixture(autouse=True)
def offline(monkeypatch, tmp_path, uv_cache):
    """A cache, rows and an index of the test's own."""
    monkeypatch.setenv("STELE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("STELE_ENVIRONMENTS", str(tmp_path / "rows"))
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.setenv("UV_CACHE_DIR", str(uv_cache))
    environments.rows.cache_clear()
    yield
    environments.rows.cache_clear()


@pytest.fixture
def row(tmp_path):
    """row(name) -> a row that needs the package toy 1.0, described and locked."""

    def row(name="toy", source="", release="1.0"):
        wheel(tmp_path / "wheels", "toy", release, source)
        (tmp_path / "rows").mkdir(exist_ok=True)
        facts = f'label = "Toy"\nframework = "toy"\nimports = ["toy"]\npython = "{HERE}"\n'
        (tmp_path / "rows" / f"{name}.toml").write_text(
            facts + f'[requirements]\n"toy=={release}" = "the release"\n'
        )
        environments.rows.cache_clear()
        assert door.main(["env", "lock", name]) == 0
        return environments.load(name)

    return row


def left(tmp_path):
    """What lies where environments are built, but for guards."""
    return {path.name for path in (tmp_path / "cache" / "environments").iterdir() if path.suffix != ".guard"}


def test_an_environment_is_made_once(row):
    toy = row()
    assert environments.state(toy) == ("missing", "1.0", "not made: stele env make toy")
    assert builds.make(toy) is True
    assert environments.state(toy) == ("ready", "1.0", "")
    assert builds.make(toy) is False
    subprocess.run([builds.python(toy), "-c", "import toy"], check=True)


def test_a_changed_lock_is_another_environment(row):
    builds.make(row())
    assert environments.state(row(release="1.1")).status == "missing"


def test_two_rows_with_one_lock_share_a_build(row):
    builds.make(row("toy"))
    assert environments.state(row("toy-again")).status == "ready"


@pytest.mark.parametrize("moment", ["uv", "see_imports"])
def test_an_interruption_leaves_nothing_half_made(row, monkeypatch, tmp_path, moment):
    toy = row()

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(installer if moment == "uv" else builds, moment, interrupted)
        with pytest.raises(KeyboardInterrupt):
            builds.make(toy)
    assert left(tmp_path) == set()
    assert builds.make(toy) is True


def test_what_a_killed_build_left_is_swept_away(row, tmp_path):
    toy = row()
    leftover = builds.folder(toy).with_suffix(".building")
    (leftover / "bin").mkdir(parents=True)
    assert environments.state(toy).status == "missing"
    assert builds.make(toy) is True
    assert left(tmp_path) == {builds.folder(toy).name}


def test_two_builds_at_once_do_not_collide(row):
    row()
    command = [sys.executable, "-m", "stele", "env", "make", "toy"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    answers = sorted(process.communicate()[0].split(",")[0] for process in both)
    assert answers == ["toy: made", "toy: was there"]


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_a_build_that_is_stopped_leaves_no_process_and_nothing_half_made(row, tmp_path, ending):
    note = tmp_path / "pid"
    row(source=f"import os, time\nopen({str(note)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)")
    command = [sys.executable, "-m", "stele", "env", "make", "toy"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as building:
        wait_until(lambda: note.exists() and note.read_text(), seconds=60)
        building.send_signal(ending)
        assert "stele: interrupted" in building.communicate(timeout=30)[1]
    assert building.returncode == 130
    assert not alive(int(note.read_text()))
    assert left(tmp_path) == set()


def test_a_framework_that_hangs_at_its_import_is_not_made(row, monkeypatch, tmp_path):
    monkeypatch.setattr(builds, "TIMEOUT", 0.2)
    with pytest.raises(SteleError, match=r"its import took over 0\.2 s"):
        builds.make(row(source="import time; time.sleep(600)"))
    assert left(tmp_path) == set()


def test_a_framework_that_does_not_import_is_not_made(row, tmp_path):
    with pytest.raises(SteleError, match=r"'toy' was installed, but does not import:(.|\n)*no such symbol"):
        builds.make(row(source="raise ImportError('no such symbol')"))
    assert left(tmp_path) == set()


def test_a_package_that_is_not_the_locked_one_is_refused(row, monkeypatch, tmp_path):
    builds.make(row("other", release="0.9"))
    toy = row()
    wheel(tmp_path / "wheels", "toy", "1.0", "tampered = True")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv of another machine"))
    with pytest.raises(SteleError, match="a package is not the one that the lock names"):
        builds.make(toy)
    assert left(tmp_path) == {builds.folder(environments.load("other")).name}


def test_a_requirement_that_does_not_resolve_shows_the_resolvers_sentence(row, capsys):
    row()
    environments.rows.cache_clear()
    assert door.main(["env", "make", "toy==7"]) == 2
    said = capsys.readouterr().err
    assert "Resolving 'toy==7': the requirements cannot be met together" in said
    assert "there is no version of toy==7" in said
    assert "Traceback" not in said


def test_a_requirement_that_a_user_typed_is_resolved_and_made(row, tmp_path):
    row()
    wheel(tmp_path / "wheels", "toy", "1.5")
    environments.rows.cache_clear()
    assert door.main(["env", "make", "toy==1.5"]) == 0
    assert environments.state(environments.load("toy==1.5")) == ("ready", "1.5", "")
    assert environments.state(environments.load("toy")).status == "missing"


def test_without_a_network_it_says_so(row, monkeypatch):
    toy = row()
    monkeypatch.delenv("UV_NO_INDEX")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_FIND_LINKS", "")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with pytest.raises(SteleError, match=r"the package index did not answer\. Is there a network\?"):
        builds.make(toy)


def test_an_interpreter_that_does_not_work_is_told(row, tmp_path):
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\nexit 1\n")
    fake.chmod(0o755)
    with pytest.raises(SteleError, match="the interpreter does not work"):
        builds.make(row(), fake)


def test_a_full_disk_has_a_sentence_of_its_own():
    words = "error: failed to write to file `/x/y`: No space left on device (os error 28)"
    assert installer.message(words).startswith("the disk is full. Free some space, or have STELE_CACHE name")


def test_an_environment_whose_interpreter_is_gone_is_broken_until_it_is_made_anew(row):
    toy = row()
    builds.make(toy)
    builds.python(toy).unlink()
    builds.python(toy).symlink_to("/nowhere/python")
    assert environments.state(toy) == ("broken", "1.0", "its interpreter is gone: stele env make toy")
    assert builds.make(toy) is True
    assert environments.state(toy).status == "ready"


def test_one_failure_does_not_keep_the_others_from_being_made(row, capsys):
    row("good")
    row("bad", source="raise ImportError", release="2.0")
    assert door.main(["env", "make", "bad", "good"]) == 2
    assert environments.state(environments.load("good")).status == "ready"


def test_what_was_made_can_be_removed(row, capsys, tmp_path):
    builds.make(row())
    capsys.readouterr()
    assert door.main(["env", "remove", "toy"]) == 0
    assert door.main(["env", "remove", "toy"]) == 0
    assert capsys.readouterr().out == "toy: removed\ntoy: was not there\n"
    assert left(tmp_path) == set()


def test_the_list_is_there_for_people_and_for_programs(row, capsys):
    builds.make(row())
    capsys.readouterr()
    door.main(["env", "list"])
    assert "toy" in capsys.readouterr().out
    door.main(["env", "list", "--json"])
    facts = {fact["name"]: fact for fact in json.loads(capsys.readouterr().out)["environments"]}
    assert facts["toy"] == {
        "name": "toy",
        "framework": "toy",
        "status": "ready",
        "version": "1.0",
        "reason": "",
    }


def test_a_row_of_the_host_is_not_made(capsys):
    assert door.main(["env", "make", "jax"]) == 2
    assert "stele: 'jax' is not built: " in capsys.readouterr().err


def test_nothing_of_the_hosts_packages_reaches_a_built_interpreter(row, monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "toy.py").write_text("raise SystemExit('the wrong toy')")
    assert builds.make(row()) is True
    assert Path(os.environ["PYTHONPATH"]) == tmp_path
