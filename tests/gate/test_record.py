"""The record of a gate: what is on disk, and what ``--resume`` uses of it."""

from pathlib import Path

import pytest

from stele.commands import gate as command
from stele.gate import record
from stele.measuring import content
from tests.support.gates import answer, entries, measure_arms, printed, slower


@pytest.fixture
def counted(gate, monkeypatch):
    """The number of lines of the record, at the start of each pass."""
    lines = []

    def measure_and_count(*about):
        lines.append(sum(len(path.read_text().splitlines()) for path in Path(".stele/gates").iterdir()))
        return measure_arms(*about)

    answer(monkeypatch, measure_and_count)
    return lines


def test_each_launch_is_on_disk_before_the_next_one_starts(gate, counted):
    assert gate() == 0
    assert counted == [1, 2, 3]  # the header, and one line for each earlier pass


def test_stored_launches_are_used_only_to_resume(gate, counted):
    for launches in (3, 6):
        assert gate() == 0
        assert len(counted) == launches
    assert gate("--resume") == 0
    assert len(counted) == 6


@pytest.mark.slow
def test_an_internal_error_keeps_the_record(gate, monkeypatch, capsys):
    measured = []

    def fail_later(*about):
        measured.append(about)
        return {}["fault"] if len(measured) == 2 else measure_arms(*about)

    answer(monkeypatch, fail_later)
    assert gate() == 4
    assert "This is an error in Stele, not a verdict" in capsys.readouterr().err
    assert [launch["key"] for launch in entries()[1]] == [["long", "gru infer", 0]]
    assert gate("--resume") == 0


# resuming


def test_an_interrupted_gate_resumes_and_gives_the_same_verdicts(gate, monkeypatch, capsys):
    assert gate(new={"seconds": slower(1.05)}) == 1
    complete = printed(capsys)
    path, launches = entries()
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:3]) + lines[3][:20])  # killed in the middle of a line
    assert gate("--resume", new={"seconds": slower(1.05)}) == 1
    assert printed(capsys) == complete
    resumed = entries()[1]
    assert [launch["key"] for launch in resumed] == [launch["key"] for launch in launches]
    assert resumed[:2] == launches[:2] and resumed[2] != launches[2]


def test_two_gates_that_start_in_the_same_second_have_two_records(gate):
    gate()
    gate()
    assert len(list(Path(".stele/gates").glob("*.jsonl"))) == 2


def test_the_newest_record_is_the_one_with_the_highest_number(tmp_path):
    path = tmp_path / "gate.jsonl"
    assert record.newest(path) is None
    written = [record.create(path, {"old": name}).path for name in ("first", "second", "third")]
    assert record.newest(path) == written[-1] == tmp_path / "gate-3.jsonl"


@pytest.mark.slow
def test_a_failed_launch_is_repeated_when_the_gate_resumes(gate, capsys, monkeypatch):
    monkeypatch.setattr(content, "of_environment", lambda *_, **__: {})  # whose script changes
    assert gate(new={"infer": "segfault"}) == 1
    assert gate("--resume") == 0


@pytest.mark.parametrize(
    "content, message",
    [
        ("", "not a gate's record: it has no schema number"),
        ("{\n", "is not JSON"),
        ('{"schema": 9}\n', "not a gate's record: schema 9"),
        ("[]\n", "is not a launch"),
        ('{"schema": 1}\n', "not a gate's record: it has no machine"),
        (
            '{"schema": 1, "machine": {}}\n{"run": 3}\n',
            "line 2, is not a launch: Object missing required field `key`",
        ),
    ],
)
def test_the_error_names_a_damaged_record(gate, tmp_path, capsys, content, message):
    (tmp_path / "damaged.jsonl").write_text(content)
    assert gate(f"--resume={tmp_path / 'damaged.jsonl'}") == 2
    err = capsys.readouterr().err
    assert message in err and "damaged.jsonl" in err


def test_resume_without_a_record_is_an_error(gate, capsys):
    assert gate("--resume") == 2
    assert "No record of old and new in .stele/gates to resume. Run without --resume." in capsys.readouterr().err


def test_the_newest_record_may_have_a_number(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "FOLDER", tmp_path)
    first, later = (tmp_path / f"20261127-12000{second}-old-new.jsonl" for second in (0, 1))
    paths = [record.create(path, {}).path for path in (first, later, later)]
    assert command.newest_record("old-new") == paths[-1] == tmp_path / "20261127-120001-old-new-2.jsonl"
