"""What a command of a fleet keeps, so that it continues."""

import subprocess
import sys

import pytest

from stele import schema
from stele.errors import SteleError
from stele.fleet import campaign
from tests.support.virtual_fleet import works

# ---- campaign


def test_an_interrupted_command_continues_and_an_ended_one_starts_again(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    place, continued = campaign.open_campaign({"cells": 2})
    assert not continued
    place.save(works(2)[0], schema.to_json(run))
    place.lock.release()
    again, continued = campaign.open_campaign({"cells": 2})
    assert continued
    assert again.missing(works(2)) == works(2)[1:]
    assert campaign.open_campaign({"cells": 3})[1] is False
    again.end()
    again.lock.release()
    assert campaign.open_campaign({"cells": 2})[1] is False


def test_two_equal_commands_do_not_measure_the_same_at_the_same_time(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program = "from stele.fleet import campaign; held = campaign.open_campaign({}); print('held', flush=True); input()"
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        for again in (False, True):
            with pytest.raises(SteleError, match="Another command measures the same already"):
                campaign.open_campaign({}, again=again)
        other.kill()
    assert campaign.open_campaign({})[1] is True


def test_a_result_is_one_file_however_often_it_arrives(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    place, _ = campaign.open_campaign({})
    for _ in range(3):
        place.save(works(1)[0], schema.to_json(run))
    assert len(list(campaign.RUNS.glob("*.json"))) == 1


def test_what_is_no_run_is_not_saved(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place, _ = campaign.open_campaign({})
    with pytest.raises((SteleError, ValueError, TypeError)):
        place.save(works(1)[0], {"when": 3})
    assert place.missing(works(1)) == works(1)
