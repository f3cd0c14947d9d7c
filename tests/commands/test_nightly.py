"""``stele nightly`` as a user runs it."""

from pathlib import Path

import pytest

from stele import __main__ as entry_point
from stele.releases.index import Release
from tests.support.histories import FOUR, OPTIONS, TAGS


@pytest.mark.slow
def test_nightly_measures_new_releases_and_reports_rises(machine, capsys, monkeypatch, tmp_path):
    releases = [Release("abacus", name, f"2024-01-0{number}T00:00:00+00:00") for number, name in enumerate(FOUR, 1)]
    monkeypatch.setattr("stele.commands.releases.index.releases", lambda package, prereleases=False: releases)
    machine(dict(zip(TAGS, [1.0, 1.0, 1.2, 1.2], strict=True)))
    command = ["nightly", "abacus", *OPTIONS, f"--site={tmp_path / 'site'}"]
    assert entry_point.main(command) == 1
    out = capsys.readouterr().out
    assert "track_step gru infer tuned, abacus: +20.0 % at abacus-1.3" in out
    assert "4 releases measured, 2 steps." in out  # the first step is slower as well
    assert (tmp_path / "site" / "index.html").exists() and Path(".stele/nightly.md").exists()
    assert entry_point.main(command) == 0  # a known rise is not reported again
    assert "0 releases measured, 0 steps." in capsys.readouterr().out
