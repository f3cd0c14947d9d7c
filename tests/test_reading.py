"""What is read is a regular file up to a stated size. A device, a FIFO or a huge file is refused at once, by name."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from stele import __main__ as entry_point
from stele import files, schema
from stele.environments import description, revisions
from stele.errors import SteleError
from stele.gate import record
from stele.measuring import store
from stele.subjects.model import recipes
from tests.support import gate_records

ROOT = Path(__file__).parents[1]
HUGE = 12 * 2**30


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to work in, with what has no end and what is too large."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("fifo")
    Path("zero").symlink_to("/dev/zero")
    with Path("huge").open("wb") as file:
        file.truncate(HUGE)  # sparse
    Path("folder").mkdir()
    return tmp_path


READERS = {
    "a record": record.read_lines,
    "JSON": schema.read,
    "a Run": store.load,
    "a lock file": revisions.read_text,
    "a description": description.read,
    "text": files.read_text,
}
REFUSALS = {
    "fifo": "fifo is not a regular file",
    "zero": "zero is not a regular file",
    "folder": "folder cannot be read: it is a folder",
    "huge": "huge has 12 GiB; the largest file of its kind that is read has",
}


@pytest.mark.parametrize("name", REFUSALS)
@pytest.mark.parametrize("kind", READERS)
def test_what_is_no_regular_file_or_too_large_is_refused_by_its_name(folder, kind, name):
    with pytest.raises(SteleError, match=REFUSALS[name]):
        READERS[kind](Path(name))


@pytest.mark.parametrize("name", REFUSALS)
def test_a_recipe_that_cannot_be_read_has_no_names(folder, name):
    assert recipes.defined_names(Path(name)) is None


def test_a_file_of_the_largest_size_is_read(tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(b"x" * 100)
    assert files.read_bytes(tmp_path / "a", 100) == b"x" * 100
    with pytest.raises(SteleError, match="the largest"):
        files.read_bytes(tmp_path / "a", 99)


def test_a_file_without_a_size_is_read_up_to_the_largest():
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("there is no /proc")
    assert files.read_bytes(status)
    with pytest.raises(SteleError, match="the largest"):
        files.read_bytes(status, 10)


def test_a_file_that_becomes_a_fifo_while_it_is_opened_is_refused(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "a")
    regular = os.stat_result([stat.S_IFREG | 0o600] + [0] * 9)
    monkeypatch.setattr(files.Path, "stat", lambda _: regular)
    with pytest.raises(SteleError, match="a is not a regular file"):
        files.read_bytes(tmp_path / "a")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "path"),
    [
        (["report"], "/dev/zero"),
        (["report"], "fifo"),
        (["parity", "--merge"], "zero"),
        (["parity", "--merge"], "huge"),
        (["capabilities", "--write"], "zero"),
        (["capabilities", "--write"], "fifo"),
    ],
)
def test_a_command_refuses_it_at_once_and_with_exit_code_two(folder, path, command):
    limited = f"ulimit -v 8000000; exec {sys.executable} -m stele {' '.join(command)} {path}"
    done = subprocess.run(["bash", "-c", limited], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2, done.stderr
    assert path in done.stderr and ("regular file" in done.stderr or "12 GiB" in done.stderr), done.stderr


@pytest.mark.parametrize("path", ["fifo.txt", "zero.txt", "huge.txt"])
def test_a_lock_file_that_is_none_is_refused_at_once(folder, capsys, path):
    Path(path).symlink_to(path.partition(".")[0])
    Path("ok.txt").write_text("jax==0.10.1\n")
    assert entry_point.main(["gate", path, "ok.txt", "--task", "cnn"]) == 2
    assert path in capsys.readouterr().err


def test_a_lock_file_does_not_include_a_device(folder, capsys):
    Path("ok.txt").write_text("-r zero\njax==0.10.1\n")
    assert entry_point.main(["gate", "ok.txt", "ok.txt", "--task", "cnn"]) == 2
    assert "zero is not a regular file" in capsys.readouterr().err


def test_the_newest_gate_that_leads_to_a_device_is_refused_by_its_name(folder, capsys):
    gates = Path(".stele/gates")
    gates.mkdir(parents=True)
    gate_records.gate(gates / "20260101-000000-a-b.jsonl")
    (gates / "20261128-121811-x.jsonl").symlink_to("/dev/zero")
    assert entry_point.main(["report"]) == 2
    assert "20261128-121811-x.jsonl is not a regular file" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", [".json", ".jsonl"])
@pytest.mark.parametrize("target", ["zero", "fifo", "huge"])
def test_what_cannot_be_read_in_a_folder_is_a_note(folder, capsys, suffix, target):
    gates = Path("gates")
    gates.mkdir()
    gate_records.gate(gates / "a.jsonl")
    (gates / f"b{suffix}").symlink_to(Path(target).absolute())
    assert entry_point.main(["report", "gates"]) == 0
    error = capsys.readouterr().err
    assert "Left out: " in error and f"gates/b{suffix}" in error


@pytest.mark.parametrize("path", ["fifo", "zero", "huge"])
def test_a_record_that_is_none_cannot_be_resumed(folder, path):
    with pytest.raises(SteleError, match=f"Cannot resume: {REFUSALS[path]}"):
        record.resume(Path(path))


def test_a_record_that_is_a_link_stays_one_when_its_last_line_is_removed(tmp_path):
    path = gate_records.gate(tmp_path / "real.jsonl")
    with path.open("a") as file:
        file.write('{"key": ["half')
    (tmp_path / "link.jsonl").symlink_to(path)
    log = record.resume(tmp_path / "link.jsonl")
    log.add({("accuracy", "gru", 0): {"took": 1.0}})
    assert (tmp_path / "link.jsonl").is_symlink() and path.read_text().endswith("}\n")
    assert "half" not in path.read_text()


def test_a_record_of_a_hundred_mebibytes_is_read(tmp_path):
    path = gate_records.gate(tmp_path / "a.jsonl")
    lines = path.read_text().splitlines(keepends=True)
    filler = lines[1].rstrip("\n")[:-1] + f', "more": "{"x" * 2**20}"}}\n'
    path.write_text("".join([lines[0], *(filler for _ in range(100))]))
    assert path.stat().st_size > 100 * 2**20
    assert record.read(path).entries()
