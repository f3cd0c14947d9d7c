"""What ``stele fleet status`` says."""

import json
import time

import pytest
from msgspec.structs import replace

from stele import __main__ as entry_point
from stele.fleet import status
from stele.fleet.work import (
    Ending,
    Started,
)
from tests.support.virtual_fleet import works

# ---- status


def state(**changes):
    return replace(status.begin("stele fleet run", 10), **changes)


def test_the_command_of_a_status_has_no_password():
    begun = status.begin("stele fleet gate --address ray://user:secret@host", 1)
    assert begun.command == "stele fleet gate --address ray://user:***@host"


def test_the_status_says_what_runs_where_what_waits_and_the_end(tmp_path):
    now = time.time()
    one = state(done=14, total=20, timed=4, seconds=40.0, places=2)  # an earlier command measured ten
    one.start("torch cnn train, launch 1", Started("a", "node-a", now - 4.0))
    status.write(tmp_path / "status.json", one)
    lines = status.lines(status.read(tmp_path / "status.json"), now)
    assert "14 of 20 measured, 0 failed, 1 running, 5 waiting; estimated end" in lines[0]
    assert "torch cnn train, launch 1" in lines[1] and "node-a" in lines[1]
    assert one.left(now) == pytest.approx((6 * 10.0 - 4.0) / 2, abs=0.1)


def test_the_status_names_what_failed_and_a_command_that_died(tmp_path):
    one = state(pid=2**22 + 1)
    one.end(Ending(works(1)[0], failure="crashed"), time.time())
    lines = status.lines(one, time.time())
    assert "cell 0: crashed" in lines
    assert lines[-1].endswith("does not run any more. It continues with: stele fleet run")


@pytest.mark.parametrize("text", ["", "[]", '{"schema": 1}', '{"schema": 1, "running": {"a": 3}}', "{"])
def test_a_damaged_status_is_one_message(text, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".stele/fleet/20260101T000000-abc").mkdir(parents=True)
    (tmp_path / ".stele/fleet/20260101T000000-abc/status.json").write_text(text)
    assert entry_point.main(["fleet", "status"]) == 2
    assert capsys.readouterr().err.startswith("stele: Cannot read the status in")


def test_the_content_of_the_status_has_a_schema_number(tmp_path):
    status.write(tmp_path / "status.json", state())
    assert json.loads((tmp_path / "status.json").read_text())["schema"] == 1
