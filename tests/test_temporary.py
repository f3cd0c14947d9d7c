"""Temporary folders: the next start of Stele deletes those whose process was killed, and no others."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stele import temporary
from stele.environments import packages
from stele.errors import SteleError
from tests.support.processes import alive, wait_until

HOLD = """
import sys, time
from stele import temporary
from stele.environments import packages
from stele.errors import SteleError
with temporary.folder() as folder:
    (folder / "file").write_text("")
    print(folder, flush=True)
    time.sleep(60)
"""

MEASURE = """
import time
from stele.environments import ORACLE
from stele.measuring import worker
from stele.measuring.settings import Settings
with worker.launch(ORACLE, Settings(device="cpu", threads=1)) as live:
    print(live.ask("hello")["pid"], flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def folder_of_temporary_files(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    temporary.remove_abandoned.cache_clear()


def entries(folder):
    return [path.name for path in folder.iterdir()]


def test_a_temporary_folder_is_deleted_at_its_end(tmp_path):
    with temporary.folder() as folder:
        assert folder.parent == tmp_path
        (folder / "file").write_text("")
    assert entries(tmp_path) == []


def test_a_folder_for_temporary_files_that_was_deleted_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "gone"))
    (tmp_path / "gone").mkdir()
    with temporary.folder():
        pass
    (tmp_path / "gone").rmdir()
    with pytest.raises(SteleError, match=f"The folder {tmp_path / 'gone'} was deleted while Stele used it. Create"):
        packages.listed(Path(sys.executable))


def test_what_a_worker_leaves_is_deleted_with_its_folder_by_the_next_start(tmp_path):
    program = HOLD.replace(
        '(folder / "file").write_text("")',
        'temporary.LONGEST = 1000; temporary.inside(folder).joinpath("a").mkdir()',
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        folder = Path(process.stdout.readline().strip())
        os.kill(process.pid, signal.SIGKILL)
    temporary.remove_abandoned()
    assert not folder.exists() and entries(tmp_path) == []


def test_the_folder_of_a_killed_process_is_deleted_by_the_next_start(tmp_path):
    with subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True) as process:
        name = Path(process.stdout.readline().strip()).name
        temporary.remove_abandoned()
        assert entries(tmp_path) == [name]  # its process lives
        os.kill(process.pid, signal.SIGKILL)
    assert entries(tmp_path) == [name]
    temporary.remove_abandoned.cache_clear()
    with temporary.folder() as folder:
        assert entries(tmp_path) == [folder.name]


def test_other_folders_and_links_stay(tmp_path):
    names = ["stele-project", f"{temporary.PREFIX}file", f"{temporary.PREFIX}link"]
    (tmp_path / names[0]).mkdir()
    (tmp_path / names[1]).write_text("")
    (tmp_path / names[2]).symlink_to(tmp_path / names[0])
    temporary.remove_abandoned()
    assert sorted(entries(tmp_path)) == sorted(names)


def test_a_host_that_is_killed_leaves_no_folder_after_the_next_start(tmp_path):
    with subprocess.Popen([sys.executable, "-c", MEASURE], stdout=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        worker = int(process.stdout.readline())
        os.kill(process.pid, signal.SIGKILL)
    wait_until(lambda: not alive(worker))
    assert len(list(tmp_path.glob(f"{temporary.PREFIX}*"))) == 1
    temporary.remove_abandoned()
    assert not list(tmp_path.glob(f"{temporary.PREFIX}*"))
