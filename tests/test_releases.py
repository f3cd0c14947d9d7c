"""The ledger of releases: what the index says becomes commits, the same everywhere, and only ever more of them."""

import dataclasses
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace

import pytest

from stele import __main__ as door
from stele import environments
from stele.errors import SteleError
from stele.releases import frameworks, index, ledger
from stele.releases.index import IndexUnavailable, Release

ABACUS = [
    Release("abacus", "1.0", "2024-01-01T00:00:00+00:00"),
    Release("abacus", "1.1", "2024-02-01T12:00:00+00:00"),
    Release("abacus", "1.0.1", "2024-03-01T00:00:00+00:00"),
]


def file(date="2024-01-01T00:00:00.123456Z", yanked=False, packagetype="bdist_wheel"):
    return {"packagetype": packagetype, "yanked": yanked, "upload_time_iso_8601": date}


@pytest.fixture
def served(monkeypatch):
    """served(answer, status) -> an index that gives this answer to everybody."""
    servers = []

    def served(answer, status=200):
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(status)
                self.end_headers()
                self.wfile.write(answer if isinstance(answer, bytes) else json.dumps(answer).encode())

            def log_message(self, *_):
                pass

        servers.append(HTTPServer(("127.0.0.1", 0), Handler))
        server = threading.Thread(target=servers[-1].serve_forever, args=[0.01], daemon=True)
        server.start()
        monkeypatch.setenv("STELE_INDEX", f"http://127.0.0.1:{servers[-1].server_port}")

    yield served
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def row(monkeypatch, tmp_path):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return environments.Environment(
        name="abacus",
        label="Abacus",
        framework="abacus",
        requirements={"abacus>=1": "the framework", "beads==2": "what it counts with"},
    )


def test_releases_come_by_date_without_what_was_yanked_or_has_no_wheel(served):
    served(
        {
            "releases": {
                "1.1": [file("2024-02-01T12:00:00Z"), file("2024-02-02T12:00:00Z")],
                "1.0.1": [file("2024-03-01T00:00:00Z")],
                "1.0": [file("2024-01-01T00:00:00Z")],
                "1.2": [file(yanked=True)],
                "1.3": [file(packagetype="sdist")],
                "1.4": [],
                "1.5rc1": [file()],
                "not a version": [file()],
            }
        }
    )
    assert index.releases("abacus") == ABACUS


def test_pre_releases_come_if_they_are_asked_for(served):
    served({"releases": {"1.5rc1": [file()]}})
    assert index.releases("abacus") == []
    assert [release.version for release in index.releases("abacus", prereleases=True)] == ["1.5rc1"]


@pytest.mark.parametrize(
    "answer, status, kind, message",
    [
        ({}, 404, SteleError, "does not know 'abacus'"),
        ({}, 503, IndexUnavailable, "answers 503"),
        (b"<html>", 200, IndexUnavailable, "does not answer"),
        ({"info": 3}, 200, IndexUnavailable, "something else than releases of abacus"),
        ([], 200, IndexUnavailable, "something else"),
        ({"releases": {"1.0": [{}]}}, 200, IndexUnavailable, "something else"),
    ],
)
def test_an_index_that_fails_is_a_sentence(served, answer, status, kind, message):
    served(answer, status)
    with pytest.raises(kind, match=message):
        index.releases("abacus")


def test_which_python_a_release_is_for_is_known(served):
    served({"releases": {"1.0": [{**file(), "requires_python": ">=3.12"}], "1.1": [file()]}})
    assert [release.python for release in index.releases("abacus")] == [">=3.12", ""]


def test_a_folder_of_wheels_is_an_index(monkeypatch, tmp_path):
    for number, name in enumerate(["abacus-1.0", "abacus-1.1", "beads-9.0"]):
        wheel = tmp_path / f"{name}-py3-none-any.whl"
        wheel.touch()
        os.utime(wheel, (1704067200 + number * 86400,) * 2)
    (tmp_path / "notes.whl").touch()
    monkeypatch.setenv("STELE_INDEX", str(tmp_path))
    assert [tuple(release)[1:3] for release in index.releases("abacus")] == [
        ("1.0", "2024-01-01T00:00:00+00:00"),
        ("1.1", "2024-01-02T00:00:00+00:00"),
    ]
    with pytest.raises(SteleError, match="no wheel of 'sums'"):
        index.releases("sums")


def test_each_release_is_a_commit_dated_as_it_was(row):
    assert ledger.add("abacus", row, ABACUS) == ["abacus-1.0", "abacus-1.1", "abacus-1.0.1"]
    log = ledger.git("log", "--reverse", "--format=%s %aI %cI", "abacus").splitlines()
    assert log[1] == "abacus-1.1 2024-02-01T12:00:00+00:00 2024-02-01T12:00:00+00:00"
    assert ledger.git("show", "abacus-1.1:requirements.txt") == "abacus==1.1\nbeads==2\n"
    assert sorted(ledger.git("tag").split()) == ["abacus-1.0", "abacus-1.0.1", "abacus-1.1"]


def test_what_is_recorded_stays_and_new_releases_follow(row):
    ledger.add("abacus", row, ABACUS[:1])
    before = ledger.git("rev-parse", "abacus-1.0")
    assert ledger.add("abacus", row, ABACUS[1:]) == ["abacus-1.1", "abacus-1.0.1"]
    assert ledger.add("abacus", row, ABACUS) == []
    assert ledger.git("rev-parse", "abacus-1.0") == before
    assert ledger.tags("abacus") == ["abacus-1.0", "abacus-1.1", "abacus-1.0.1"]


def test_the_same_releases_are_the_same_commits_everywhere(row, monkeypatch, tmp_path):
    ledger.add("abacus", row, ABACUS)
    here = ledger.git("rev-parse", "abacus")
    monkeypatch.setenv("STELE_CACHE", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Somebody")
    ledger.add("abacus", row, ABACUS[:2])
    ledger.add("abacus", row, ABACUS)
    assert ledger.git("rev-parse", "abacus") == here


def test_two_frameworks_have_a_branch_each(row):
    ledger.add("abacus", row, ABACUS)
    ledger.add("sums", row, ABACUS[:1])
    assert ledger.git("branch", "--format=%(refname:short)").split() == ["abacus", "sums"]
    assert ledger.tags("sums") == ["sums-1.0"]


def test_the_command_says_what_is_new_and_lives_without_a_network(served, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    served({"releases": {"0.9.1": [file()], "0.9.2": [file("2024-02-01T12:00:00Z")]}})
    assert door.main(["releases", "sync", "jax"]) == 0
    assert capsys.readouterr().out == "jax: 2 releases, 2 new, the last 0.9.2\n"
    served({}, 503)
    assert door.main(["releases", "sync", "jax"]) == 0
    said = capsys.readouterr()
    assert said.out == "jax: 2 releases, the last jax-0.9.2\n"
    assert "answers 503" in said.err and "The ledger is of " in said.err
    assert door.main(["releases", "sync", "torch"]) == 2
    assert "answers 503" in capsys.readouterr().err


def test_an_unknown_framework_shows_the_nearest(capsys):
    assert door.main(["releases", "sync", "jaxx"]) == 2
    assert "Unknown framework 'jaxx'. Did you mean 'jax'?" in capsys.readouterr().err


def test_what_else_is_required_is_pinned_as_it_was_on_that_day(row):
    beads = [
        Release("beads", version, f"2024-0{month}-15T00:00:00+00:00")
        for month, version in ((1, "2"), (2, "3"))
    ]
    loose = dataclasses.replace(
        row, requirements={"abacus>=1": "the framework", "beads>=2": "what it counts with"}
    )
    ledger.add("abacus", loose, ABACUS, beads)
    contents = [ledger.content(tag) for tag in ledger.tags("abacus")]
    assert contents == ["abacus==1.0\nbeads>=2\n", "abacus==1.1\nbeads==2\n", "abacus==1.0.1\nbeads==3\n"]


@pytest.mark.parametrize(
    "needs, minor, pinned",
    [
        (">=3.9", 11, []),
        (">=3.12", 11, ["python==3.12.*"]),
        (">=3.8,<3.11", 13, ["python==3.10.*"]),
        ("<3", 11, []),
        (">=3.5.*", 11, []),
    ],
)
def test_a_release_is_built_with_the_nearest_python_that_it_is_for(monkeypatch, needs, minor, pinned):
    monkeypatch.setattr(sys, "version_info", SimpleNamespace(major=3, minor=minor))
    assert frameworks.interpreter(needs) == pinned
    found = frameworks.environment("jax-0.11.0", f"# Requires-Python: {needs}\njax==0.11.0\n")
    assert found.python == (pinned[0].removeprefix("python") if pinned else f"==3.{minor}.*")
    assert list(found.requirements) == ["jax==0.11.0"]


def test_the_ledger_says_which_python_a_release_is_for(row):
    ledger.add("abacus", row, [ABACUS[0]._replace(python=">=3.12")])
    assert ledger.content("abacus-1.0") == "# Requires-Python: >=3.12\nabacus==1.0\nbeads==2\n"


@pytest.mark.parametrize(
    "text, found",
    [
        ("abacus", ["abacus-1.0", "abacus-1.1", "abacus-1.0.1"]),
        ("abacus-1.1", ["abacus-1.1"]),
        ("abacus-1.0..abacus-1.0.1", ["abacus-1.1", "abacus-1.0.1"]),
    ],
)
def test_a_range_is_gits(row, text, found):
    ledger.add("abacus", row, ABACUS)
    assert ledger.span(text) == found


@pytest.mark.parametrize(
    "text, message",
    [
        ("abacus-1.2", "Unknown release 'abacus-1.2'. Did you mean abacus-1.1 or abacus-1.0"),
        ("abacus-1.0..abacus-9", "Unknown release 'abacus-9'"),
        ("abacus-1.1..abacus-1.0", "spans no releases: say OLDER..NEWER"),
        ("abacus-1.0..sums-1.0", "spans no releases"),
    ],
)
def test_a_range_of_nothing_is_a_sentence(row, text, message):
    ledger.add("abacus", row, ABACUS)
    ledger.add("sums", row, ABACUS[:1])
    with pytest.raises(SteleError, match=message):
        ledger.span(text)


def test_an_empty_ledger_says_what_to_type(row):
    with pytest.raises(SteleError, match="stele releases sync"):
        ledger.span("abacus-1.0")


def test_a_framework_without_releases_has_a_branch_that_its_first_replaces(row):
    ledger.begin(["abacus", "sums"])
    assert ledger.branches() == ["abacus", "sums"] and ledger.tags("abacus") == []
    ledger.add("abacus", row, ABACUS[:1])
    ledger.add("abacus", row, ABACUS)
    assert ledger.git("log", "--format=%s", "abacus").split() == ["abacus-1.0.1", "abacus-1.1", "abacus-1.0"]


def test_the_ledger_is_linked_for_asv(row):
    ledger.add("abacus", row, ABACUS)
    assert ledger.LINK.resolve() == ledger.folder().resolve()
