"""The ledger: releases in the index become commits, with the same hashes everywhere, and commits are only added."""

import dataclasses

import pytest

from stele.errors import SteleError
from stele.releases import ledger
from stele.releases.index import Release
from tests.support.histories import ABACUS


def test_each_release_is_a_commit_with_the_date_of_the_release(environment):
    assert ledger.add("abacus", environment, ABACUS) == ["abacus-1.0", "abacus-1.1", "abacus-1.0.1"]
    log = ledger.run("log", "--reverse", "--format=%s %aI %cI", "abacus").splitlines()
    assert log[1] == "abacus-1.1 2024-02-01T12:00:00+00:00 2024-02-01T12:00:00+00:00"
    assert ledger.run("show", "abacus-1.1:requirements.txt") == "abacus==1.1\nbeads==2\n"
    assert sorted(ledger.run("tag").split()) == ["abacus-1.0", "abacus-1.0.1", "abacus-1.1"]


def test_recorded_releases_do_not_change_and_new_ones_follow(environment):
    ledger.add("abacus", environment, ABACUS[:1])
    before = ledger.run("rev-parse", "abacus-1.0")
    assert ledger.add("abacus", environment, ABACUS[1:]) == ["abacus-1.1", "abacus-1.0.1"]
    assert ledger.add("abacus", environment, ABACUS) == []
    assert ledger.run("rev-parse", "abacus-1.0") == before
    assert ledger.tags("abacus") == ["abacus-1.0", "abacus-1.1", "abacus-1.0.1"]


def test_the_same_releases_have_the_same_commits_on_every_machine(environment, monkeypatch, tmp_path):
    ledger.add("abacus", environment, ABACUS)
    first_hash = ledger.run("rev-parse", "abacus")
    monkeypatch.setenv("STELE_CACHE", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Somebody")
    ledger.add("abacus", environment, ABACUS[:2])
    ledger.add("abacus", environment, ABACUS)
    assert ledger.run("rev-parse", "abacus") == first_hash


def test_each_framework_has_a_branch(environment):
    ledger.add("abacus", environment, ABACUS)
    ledger.add("sums", environment, ABACUS[:1])
    assert ledger.run("branch", "--format=%(refname:short)").split() == ["abacus", "sums"]
    assert ledger.tags("sums") == ["sums-1.0"]


def test_other_requirements_are_pinned_to_their_releases_of_that_day(environment):
    beads = [Release("beads", version, f"2024-0{month}-15T00:00:00+00:00") for month, version in ((1, "2"), (2, "3"))]
    loose = dataclasses.replace(
        environment, requirements={"abacus>=1": "the framework", "beads>=2": "what it counts with"}
    )
    ledger.add("abacus", loose, ABACUS, beads)
    contents = [ledger.content(tag) for tag in ledger.tags("abacus")]
    assert contents == ["abacus==1.0\nbeads>=2\n", "abacus==1.1\nbeads==2\n", "abacus==1.0.1\nbeads==3\n"]


def test_the_ledger_records_requires_python(environment):
    ledger.add("abacus", environment, [ABACUS[0]._replace(python=">=3.12")])
    assert ledger.content("abacus-1.0") == "# Requires-Python: >=3.12\nabacus==1.0\nbeads==2\n"


@pytest.mark.parametrize(
    "text, tags",
    [
        ("abacus", ["abacus-1.0", "abacus-1.1", "abacus-1.0.1"]),
        ("abacus-1.1", ["abacus-1.1"]),
        ("abacus-1.0..abacus-1.0.1", ["abacus-1.1", "abacus-1.0.1"]),
    ],
)
def test_a_range_is_as_in_git(environment, text, tags):
    ledger.add("abacus", environment, ABACUS)
    assert ledger.span(text) == tags


@pytest.mark.parametrize(
    "text, message",
    [
        ("abacus-1.2", "Unknown release 'abacus-1.2'. Did you mean abacus-1.1 or abacus-1.0"),
        ("abacus-1.0..abacus-9", "Unknown release 'abacus-9'"),
        ("abacus-1.1..abacus-1.0", "contains no releases. Write OLDER..NEWER"),
        ("abacus-1.0..sums-1.0", "contains no releases"),
    ],
)
def test_a_range_without_releases_is_an_error_with_a_message(environment, text, message):
    ledger.add("abacus", environment, ABACUS)
    ledger.add("sums", environment, ABACUS[:1])
    with pytest.raises(SteleError, match=message):
        ledger.span(text)


def test_an_empty_ledger_is_an_error_with_the_command_that_fills_it(environment):
    with pytest.raises(SteleError, match="stele releases sync"):
        ledger.span("abacus-1.0")


def test_the_first_release_replaces_the_commit_of_an_empty_branch(environment):
    ledger.create(["abacus", "sums"])
    assert ledger.branches() == ["abacus", "sums"] and ledger.tags("abacus") == []
    ledger.add("abacus", environment, ABACUS[:1])
    ledger.add("abacus", environment, ABACUS)
    assert ledger.run("log", "--format=%s", "abacus").split() == ["abacus-1.0.1", "abacus-1.1", "abacus-1.0"]


def test_a_link_for_asv_points_to_the_ledger(environment):
    ledger.add("abacus", environment, ABACUS)
    assert ledger.LINK.resolve() == ledger.folder().resolve()
