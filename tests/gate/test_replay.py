from stele.gate import record, replay
from tests.support import gate_records
from tests.support.gates import entries, slower


def test_the_record_has_its_verdicts_in_its_last_line(gate):
    assert gate(new={"seconds": slower(1.05)}) == 1
    said = replay.load(entries()[0])
    assert said.ended and [(one.metric, one.status) for one in said.verdicts] == [
        ("step", "REGRESSED"), ("control", "PASS"),
    ]  # fmt: skip
    assert replay.judge(record.read(entries()[0])) == said.verdicts


def test_a_report_of_an_interrupted_gate_judges_its_launches(folder):
    ended, cut = folder / "ended.jsonl", folder / "cut.jsonl"
    slow = replay.load(gate_records.gate(cut, passes=6, factor=1.1))
    assert not slow.ended
    statuses = {(one.task, one.metric): one.status for one in slow.verdicts}
    assert statuses["cnn", "step"] == "REGRESSED" and statuses["cnn", "host-memory"] == "PASS"
    assert statuses["cnn", "parity"] == "PASS"
    gate_records.gate(ended, passes=6, verdicts=[gate_records.verdict()])
    assert [one.metric for one in replay.load(ended).verdicts] == ["step"]


def test_launches_after_the_last_verdicts_are_judged_again(folder):
    path = gate_records.gate(folder / "a.jsonl", verdicts=[gate_records.verdict(message="stale")])
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], lines[-1], *lines[1:-1]]))
    assert "stale" not in [one.message for one in replay.load(path).verdicts]


def test_what_was_not_measured_before_the_gate_ended_is_inconclusive(folder):
    path = gate_records.gate(folder / "a.jsonl")
    lines = [line for line in path.read_text().splitlines(keepends=True) if '"parity", "gru", "new"' not in line]
    path.write_text("".join(lines))
    statuses = {(one.task, one.metric): one.status for one in replay.load(path).verdicts}
    assert statuses["gru", "parity"] == "INCONCLUSIVE" and statuses["cnn", "parity"] == "PASS"
    assert path.read_text() == "".join(lines)
