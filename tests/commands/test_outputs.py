"""The files that a user names to be written: nothing is destroyed, and what cannot be written is refused at once."""

import argparse
import json
import os
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path
from xml.etree import ElementTree

import pytest

from stele import __main__ as entry_point
from stele import files
from stele.commands import gate, outputs
from stele.errors import SteleError
from tests.support import gate_records
from tests.support.gates import NUMBERS
from tests.support.scripted_environments import INSPECTION

MODEL = "import jax\nmodel = None\n"
SUMMARY_KINDS = ("--markdown", "--junit", "--openmetrics")
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
AS_USER = pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to work in, with the record of a gate and files that a gate reads."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".stele/gates").mkdir(parents=True)
    gate_records.gate(tmp_path / ".stele/gates/20260101-000000-a-b.jsonl")
    (tmp_path / "m.py").write_text(MODEL)
    (tmp_path / "helper.py").write_text("")
    (tmp_path / "w.safetensors").write_text("weights")
    (tmp_path / "base.txt").write_text("jax==0.10.1\n")
    (tmp_path / "requirements.txt").write_text("-r base.txt\n")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "1"\ndependencies = ["numpy"]\n')
    return tmp_path


def report(*arguments):
    return entry_point.main(["report", *map(str, arguments)])


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def write(path, text="new"):
    files.write_output_text(Path(path), text)


# what is written


def test_the_target_of_a_link_is_replaced_and_the_link_stays(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/real.json").write_text("old")
    (tmp_path / "link.json").symlink_to("sub/real.json")
    (tmp_path / "second.json").symlink_to("link.json")
    write(tmp_path / "second.json")
    assert (tmp_path / "sub/real.json").read_text() == "new"
    assert [(tmp_path / name).is_symlink() for name in ("link.json", "second.json")] == [True, True]
    assert sorted(path.name for path in tmp_path.rglob("*")) == [
        "link.json",
        "real.json",
        "second.json",
        "sub",
    ]


def test_a_link_whose_target_does_not_exist_yet_makes_it(tmp_path):
    (tmp_path / "link.json").symlink_to("real.json")
    write(tmp_path / "link.json")
    assert (tmp_path / "real.json").read_text() == "new" and (tmp_path / "link.json").is_symlink()


def test_an_interrupted_write_keeps_the_target_of_a_link(tmp_path):
    (tmp_path / "real.json").write_text("old")
    (tmp_path / "link.json").symlink_to("real.json")

    def interrupt(file):
        file.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        files.write_output(tmp_path / "link.json", interrupt)
    assert (tmp_path / "real.json").read_text() == "old" and len(list(tmp_path.iterdir())) == 2


def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path):
    (tmp_path / "a.json").write_text("old")
    (tmp_path / "a.json").chmod(0o600)
    write(tmp_path / "a.json")
    assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == 0o600


@AS_ROOT
def test_a_device_stays_a_device(tmp_path):
    device = tmp_path / "null"
    os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    (tmp_path / "link").symlink_to("null")
    for path in (device, tmp_path / "link"):
        files.check_writable(path)
        write(path)
    assert stat.S_ISCHR(device.stat().st_mode)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "null"]


@AS_ROOT
def test_a_device_that_is_full_is_an_error_and_stays_a_device(tmp_path):
    device = tmp_path / "full"
    os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 7))
    with pytest.raises(SteleError, match="full: No space left on device"):
        write(device)
    assert stat.S_ISCHR(device.stat().st_mode)


@AS_ROOT
def test_a_disk_is_refused(tmp_path):
    os.mknod(tmp_path / "disk", 0o600 | stat.S_IFBLK, os.makedev(7, 250))
    with pytest.raises(SteleError, match="disk cannot be written: it is a disk"):
        files.check_writable(tmp_path / "disk")


def test_the_reader_of_a_fifo_gets_the_text(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    got = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "fifo").read_text()))
    reader.start()
    files.check_writable(tmp_path / "fifo")
    write(tmp_path / "fifo", "x" * 100_000)
    reader.join()
    assert got == ["x" * 100_000] and stat.S_ISFIFO((tmp_path / "fifo").stat().st_mode)


def test_a_fifo_that_nobody_reads_is_an_error_and_not_a_hang(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "WAIT_FOR_READER", 0.1)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(SteleError, match="fifo: no program reads it"):
        write(tmp_path / "fifo")


def test_a_socket_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("s")
        with pytest.raises(SteleError, match="s cannot be written: it is a socket"):
            files.check_writable(Path("s"))


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"])
@pytest.mark.parametrize("target", ["pipe", "file"])
def test_the_standard_output_receives_a_report_after_what_was_printed(tmp_path, name, target):
    (tmp_path / "link").symlink_to("/dev/stdout")
    program = f"""
from pathlib import Path
from stele import files
print("before")
files.check_writable(Path({name!r}))
files.write_output_text(Path({name!r}), "report\\n")
print("after")
"""
    command = [sys.executable, "-c", program]
    if target == "pipe":
        printed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    else:
        with (tmp_path / "out").open("w") as file:
            subprocess.run(command, cwd=tmp_path, stdout=file, check=True)
        printed = (tmp_path / "out").read_text()
    assert printed == "before\nreport\nafter\n"


@pytest.mark.parametrize(("name", "reason"), [("/dev/fd/987", "not open"), ("/dev/stdin", "for reading only")])
def test_a_descriptor_that_cannot_be_written_is_refused(name, reason):
    program = f"from pathlib import Path\nfrom stele import files\nfiles.check_writable(Path({name!r}))"
    command = [sys.executable, "-c", program]
    with Path(os.devnull).open() as empty:
        done = subprocess.run(command, stdin=empty, capture_output=True, text=True, check=False)
    assert f"{name} cannot be written: descriptor" in done.stderr and reason in done.stderr


def test_a_file_that_is_mounted_is_written_directly(tmp_path, monkeypatch):
    (tmp_path / "a.json").write_text("older and longer")

    def busy(*_):
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(files.Path, "replace", busy)
    write(tmp_path / "a.json")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.json", "new")]


# what is refused before anything is measured


@pytest.mark.parametrize("option", ["--html", "--csv", *SUMMARY_KINDS])
def test_no_folder_is_made_in_silence(folder, capsys, option):
    before = contents(folder)
    assert report(option, "nosuch/folder/x") == 2
    assert f"{option}: nosuch/folder/x cannot be written: there is no folder" in capsys.readouterr().err
    assert contents(folder) == before and not Path("nosuch").exists()


@pytest.mark.parametrize("option", ["--html", *SUMMARY_KINDS])
@pytest.mark.parametrize(
    ("path", "message"),
    [
        (".", "it is a folder"),
        ("..", "it is a folder"),
        ("", "it is a folder"),
        ("x" * 300, "File name too long"),
        ("m.py/x", "there is no folder"),
        ("loop", "Too many levels of symbolic links"),
        ("dangling", "there is no folder"),
    ],
)
def test_a_path_that_cannot_be_written_is_refused(folder, capsys, option, path, message):
    Path("loop").symlink_to("loop")
    Path("dangling").symlink_to("nosuch/x")
    assert report(option, path) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"stele: {option}: ") and message in error and error.count("\n") == 1


@AS_USER
def test_a_file_that_is_read_only_is_refused(folder, capsys):
    Path("a.md").write_text("")
    Path("a.md").chmod(0o400)
    assert report("--markdown", "a.md") == 2
    assert "do not have permission to write to it" in capsys.readouterr().err


def test_a_file_is_no_folder_for_tables(folder, capsys):
    assert report("--csv", "m.py") == 2
    assert "--csv: m.py cannot be written: it is a file. Name a folder." in capsys.readouterr().err


def test_a_folder_of_tables_is_made_if_only_it_is_missing(folder):
    assert report("--csv", "tables") == 0
    assert list(Path("tables").glob("*.csv"))


GATE = ["gate", "old", "new", "--model", "m.py:model", "--pretrained", "w.safetensors"]


@pytest.mark.parametrize(
    ("command", "path"),
    [
        (GATE, "m.py"),
        (GATE, "w.safetensors"),
        (GATE, "helper.py"),
        (GATE, "hard"),
        (GATE, "link.json"),
        (["gate", "requirements.txt", "b.txt"], "requirements.txt"),
        (["gate", "requirements.txt@main", "b.txt"], "requirements.txt"),
        (["gate", "requirements.txt", "b.txt"], "base.txt"),
        (["gate", "a", "b", "--with-project", "."], "pyproject.toml"),
        (["gate", "a", "b", "--resume", ".stele/gates/20260101-000000-a-b.jsonl"],
         ".stele/gates/20260101-000000-a-b.jsonl"),
        (["explain", "a", "b", "--model", "m.py:model"], "m.py"),
        (["bisect", "jax", "0.9", "0.10", "--model", "m.py:model"], "m.py"),
        (["fleet", "gate", "a", "b", "--model", "m.py:model"], "m.py"),
    ],
)  # fmt: skip
def test_an_input_is_never_overwritten(folder, capsys, command, path):
    Path("hard").hardlink_to("m.py")
    Path("link.json").symlink_to("w.safetensors")
    before = contents(folder)
    assert entry_point.main([*command, "--json", path]) == 2
    error = capsys.readouterr().err
    assert f"--json {path} would replace" in error and "Name another file." in error
    assert contents(folder) == before


def test_the_newest_record_is_not_overwritten_by_a_report_of_the_gate_that_resumes_it(folder):
    record = Path(".stele/gates/20260101-000000-a-b.jsonl")
    with pytest.raises(SteleError, match="would replace"):
        outputs.refuse({"json": Path("./.stele/gates/../gates") / record.name}, [record])


@pytest.mark.parametrize("named", [[], [".stele"], [".stele/gates/20260101-000000-a-b.jsonl"]])
@pytest.mark.parametrize("option", SUMMARY_KINDS)
def test_a_report_does_not_replace_what_it_shows(folder, capsys, named, option):
    [record] = Path(".stele/gates").iterdir()
    before = contents(folder)
    assert report(*named, option, record) == 2
    assert f"{option} {record} would replace" in capsys.readouterr().err
    assert contents(folder) == before


@pytest.mark.parametrize(
    "path",
    [
        ".stele/gates/20260101-000000-a-b.jsonl",
        ".stele/gates/new.jsonl",
        ".stele/runs/run.json",
        ".stele/notes.json",
        "records/x.json",
        "sub/.stele/gates/x.json",
    ],
)
@pytest.mark.parametrize("command", [GATE, ["report"], ["bisect", "jax", "0.9", "0.10"]], ids=lambda one: one[0])
def test_no_report_goes_below_a_folder_with_records(folder, capsys, command, path):
    for name in (".stele/runs", "sub/.stele/gates"):
        Path(name).mkdir(parents=True)
    Path("records").symlink_to(".stele/gates")
    before, option = contents(folder), "--markdown" if command == ["report"] else "--json"
    assert entry_point.main([*command, option, path]) == 2
    assert (
        f"{option} {path} would replace a record of Stele, or lie among them. Name another file."
        in capsys.readouterr().err
    )
    assert contents(folder) == before


def test_the_places_of_reports_without_a_name_stay(folder):
    """Those of stele nightly and stele releases publish."""
    outputs.check({"markdown": Path(".stele/nightly.md"), "site": Path(".stele/site")})


def test_who_works_below_a_folder_with_records_may_write_there(folder, monkeypatch):
    (folder / ".stele/gates/project").mkdir()
    monkeypatch.chdir(folder / ".stele/gates/project")
    outputs.check({"json": Path("x.json")})


def test_two_reports_with_one_path_are_refused(folder, capsys):
    Path("link.md").symlink_to("x.md")
    for paths in (("x.md", "x.md"), ("x.md", "./x.md"), ("x.md", "link.md")):
        assert report("--markdown", paths[0], "--junit", paths[1]) == 2
        assert "are the same file. Name two files." in capsys.readouterr().err
    assert not Path("x.md").exists()


def test_two_reports_may_go_to_one_device(folder):
    assert report("--markdown", os.devnull, "--junit", os.devnull) == 0
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


@pytest.fixture
def measured(add_environment):
    """measured(*options) -> the exit code of a gate with such reports."""

    def measured(*options):
        Path("net.py").touch()
        for name in ("old", "new"):
            add_environment(name, numbers=NUMBERS, inspection=INSPECTION)
        return entry_point.main(["gate", "old", "new", "--model=net.py:build", "--metric=parity", *options])

    return measured


def test_the_reader_of_a_fifo_gets_the_whole_report_of_a_gate(measured, tmp_path):
    os.mkfifo(tmp_path / "gate.json")
    got = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "gate.json").read_text()), daemon=True)
    reader.start()
    assert measured("--json=gate.json") == 0
    reader.join(20)
    [text] = got
    assert json.loads(text)["status"] == "PASS" and text.endswith("}\n")
    assert stat.S_ISFIFO((tmp_path / "gate.json").stat().st_mode)


def test_the_report_of_a_gate_goes_to_the_standard_output_after_the_verdict(measured, capfd):
    """Its name is one that no mistake can replace, unlike /dev/stdout."""
    assert measured("--markdown=/proc/self/fd/1") == 0
    verdict, _, page = capfd.readouterr().out.partition("\n# ")
    assert verdict.startswith("PASS  old → new\n") and page.startswith("PASS: old to new\n")


def test_the_report_of_a_gate_through_a_link_is_in_the_target(measured, tmp_path):
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports/real.xml").write_text("old")
    (tmp_path / "gate.xml").symlink_to("reports/real.xml")
    assert measured("--junit=gate.xml") == 0
    assert (tmp_path / "gate.xml").is_symlink() and [*(tmp_path / "reports").iterdir()] == [
        tmp_path / "reports/real.xml"
    ]
    [suite] = ElementTree.parse(tmp_path / "reports/real.xml").iter("testsuite")
    assert (suite.get("failures"), suite.get("errors")) == ("0", "0")


def test_a_page_without_its_markers_is_refused_before_the_measurement(folder, capsys):
    Path("page.md").write_text("no markers\n")
    assert entry_point.main(["capabilities", "--write", "page.md"]) == 2
    assert "page.md has no lines" in capsys.readouterr().err
    assert entry_point.main(["capabilities", "--write", "nosuch.md"]) == 2
    assert "nosuch.md: No such file" in capsys.readouterr().err


def test_reports_of_several_gates_have_the_names_of_the_packages_and_a_device_has_all(tmp_path):
    reports = gate.ReportOptions(json=tmp_path / "gate.json", markdown=Path(os.devnull))
    assert reports.named("keras") == gate.ReportOptions(json=tmp_path / "gate-keras.json", markdown=Path(os.devnull))


def options_of(parser):
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from options_of(command)
        else:
            yield action


def test_every_option_that_names_a_path_is_known_as_an_output_or_only_read():
    read = {"asv", "report", "record", "resume", "with_project", "runs", "merge", "python", "paths", "baselines"}
    named = {
        action.dest
        for action in options_of(entry_point.parser())
        if action.metavar in ("FILE", "FILE.zip", "FOLDER", "PAGE", "PATH", "RECORD|RUNS|FOLDER") or action.type is Path
    }
    assert named <= {*outputs.FILES, *outputs.FOLDERS, "pretrained", "weights_map", *read}
    written = {action.dest for action in options_of(entry_point.parser()) if str(action.help).startswith("write ")}
    assert written - {"lock"} <= {*outputs.FILES, *outputs.FOLDERS}
