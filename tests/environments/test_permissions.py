"""Programs that other users of this machine can replace are never started."""

import os
import shutil
import stat
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from stele.environments import Environment, permissions, pins, probe
from stele.errors import SteleError
from stele.measuring.worker import Worker

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the check is for Linux only")
OTHER_USER, OTHER_GROUP = 54321, 54322


@pytest.fixture(autouse=True)
def shared_machine(monkeypatch):
    """Pretend that this is no container, and that other users can enter the folder of temporary files of pytest."""
    monkeypatch.setattr(permissions, "is_root_in_container", lambda: False)
    monkeypatch.setattr(permissions, "is_closed", lambda facts: False)


@pytest.fixture
def program(tmp_path):
    """Return a program in a folder of this user."""
    path = tmp_path / "environment" / "bin" / "python"
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\nexit 1\n")
    path.chmod(0o755)
    return path


def test_a_program_that_only_its_owner_can_write_is_accepted(program):
    permissions.check(str(program))


@pytest.mark.parametrize("depth", [0, 1, 2], ids=["the program", "its folder", "the folder above"])
def test_a_program_that_others_can_write_to_is_refused(program, depth):
    place = [program, *program.parents][depth]
    place.chmod(0o777)
    with pytest.raises(SteleError, match=f"{program} is not started, because .*: {place} can be written") as error:
        permissions.check(str(program))
    assert f"Run: chmod go-w {place}" in str(error.value)


def test_a_link_from_a_safe_folder_to_an_unsafe_one_is_refused(program, tmp_path):
    (tmp_path / "link").symlink_to("environment/bin")
    (tmp_path / "python").symlink_to("link/../bin/python")
    permissions.check(str(tmp_path / "python"))
    program.parent.chmod(0o777)
    with pytest.raises(SteleError, match=f"{program.parent} can be written by other users"):
        permissions.check(str(tmp_path / "python"))


def test_a_link_in_a_folder_that_others_can_write_to_is_refused(program, tmp_path):
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "python").symlink_to(program)
    (tmp_path / "links").chmod(0o777)
    with pytest.raises(SteleError, match="links can be written by other users"):
        permissions.check(str(tmp_path / "links" / "python"))


def test_a_loop_of_links_is_not_followed_for_ever(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert len(list(permissions.places(tmp_path / "a"))) > 40


def test_a_program_found_on_path_is_checked(program, monkeypatch):
    monkeypatch.setenv("PATH", str(program.parent))
    program.parent.chmod(0o777)
    with pytest.raises(SteleError, match="is not started"):
        permissions.check("python")


def facts(mode, user=None, group=None):
    """Return what lstat says about a folder or a file of this user."""
    owner = os.geteuid() if user is None else user
    return SimpleNamespace(st_mode=mode, st_uid=owner, st_gid=os.getegid() if group is None else group)


FOLDER, FILE = stat.S_IFDIR, stat.S_IFREG
TMP = facts(FOLDER | stat.S_ISVTX | 0o777, user=0)


def test_a_folder_of_this_user_or_of_root_in_tmp_is_accepted():
    assert permissions.problem(TMP, None) is None
    assert permissions.problem(facts(FOLDER | 0o755), TMP) is None
    assert permissions.problem(facts(FOLDER | 0o755, user=0), TMP) is None


def test_a_folder_of_another_user_in_tmp_is_refused():
    assert "belongs to another user" in permissions.problem(facts(FOLDER | 0o755, user=OTHER_USER), TMP)


def test_a_folder_of_another_user_elsewhere_is_accepted():
    parent = facts(FOLDER | 0o755, user=0)
    assert permissions.problem(facts(FOLDER | 0o755, user=OTHER_USER), parent) is None


@pytest.fixture
def accounts(monkeypatch):
    """accounts(members) sets the accounts of the machine, and the members of OTHER_GROUP."""

    def accounts(members, primary=()):
        users = [
            ("root", 0, 0),
            ("me", os.geteuid(), 1),
            *((name, OTHER_USER, OTHER_GROUP) for name in primary),
        ]
        listed = [SimpleNamespace(pw_name=name, pw_uid=user, pw_gid=group) for name, user, group in users]
        monkeypatch.setattr(permissions.pwd, "getpwall", lambda: listed)
        monkeypatch.setattr(permissions.grp, "getgrgid", lambda group: SimpleNamespace(gr_mem=list(members)))
        permissions.has_other_members.cache_clear()

    yield accounts
    permissions.has_other_members.cache_clear()


def test_a_group_of_this_user_alone_may_write(accounts):
    accounts(["me", "root"])
    assert permissions.problem(facts(FOLDER | 0o775, group=OTHER_GROUP), None) is None


@pytest.mark.parametrize("members", [{"members": ["me", "ada"]}, {"members": [], "primary": ["ada"]}])
def test_a_group_with_another_member_must_not_write(accounts, members):
    accounts(**members)
    assert permissions.problem(facts(FOLDER | 0o775, group=OTHER_GROUP), None) == "can be written by other users"


def test_what_is_below_a_folder_that_others_cannot_enter_is_accepted(program, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setattr(permissions, "is_root_in_container", lambda: False)
    program.parent.chmod(0o777)
    program.parents[1].chmod(0o700)
    permissions.check(str(program))


def test_root_in_a_container_is_alone(program, monkeypatch):
    monkeypatch.undo()
    program.parent.chmod(0o777)
    monkeypatch.setattr(permissions.os, "geteuid", lambda: 0)
    monkeypatch.setattr(permissions, "CONTAINER_FILES", (program,))
    permissions.check(str(program))
    monkeypatch.setattr(permissions.os, "geteuid", lambda: OTHER_USER)
    assert not permissions.is_root_in_container()


def test_a_worker_whose_interpreter_others_can_replace_does_not_start(program, tmp_path):
    mark = tmp_path / "mark"
    program.write_text(f"#!/bin/sh\ntouch {mark}\n")
    program.chmod(0o777)
    environment = Environment(name="toy", label="Toy", framework="toy", command=(str(program),))
    with pytest.raises(SteleError, match="is not started"):
        Worker(environment, log=tmp_path / "log", variables={})
    assert not mark.exists()


@pytest.mark.parametrize("script", ["stele_worker/r/worker.R", "stele_worker/julia/worker.jl"])
def test_a_script_that_others_can_replace_does_not_start(monkeypatch, tmp_path, script):
    import stele_worker

    package = tmp_path / "stele_worker"
    shutil.copytree(Path(stele_worker.__file__).parent, package)
    (package / Path(script).relative_to("stele_worker")).chmod(0o666)
    monkeypatch.setattr(stele_worker, "__path__", [str(package)])
    command = ("sh", "stele_worker/claim.sh", "true", script)
    environment = Environment(name="toy", label="Toy", framework="toy", command=command)
    with pytest.raises(SteleError, match=f"{Path(script).name} can be written by other users"):
        Worker(environment, log=tmp_path / "log", variables={})


def test_an_interpreter_that_others_can_replace_is_not_asked_for_its_packages(program):
    program.chmod(0o777)
    with pytest.raises(SteleError, match="is not started"):
        probe.run([str(program), "-c", "pass"])
    with pytest.raises(SteleError, match="is not started"):
        pins.from_interpreter(str(program), program, [])
