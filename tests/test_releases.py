"""The ledger: releases in the index become commits, with the same hashes everywhere, and commits are only added."""

import dataclasses
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace

import pytest

from stele import __main__ as entry_point
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
def serve(monkeypatch):
    """serve(answer, status) starts an index that gives this answer to every request."""
    servers = []

    def serve(answer, status=200):
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

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def environment(monkeypatch, tmp_path):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return environments.Environment(
        name="abacus",
        label="Abacus",
        framework="abacus",
        requirements={"abacus>=1": "the framework", "beads==2": "what it counts with"},
    )


def test_releases_are_sorted_by_date_without_yanked_ones_and_ones_without_a_wheel(serve):
    serve(
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


def test_pre_releases_are_included_on_request(serve):
    serve({"releases": {"1.5rc1": [file()]}})
    assert index.releases("abacus") == []
    assert [release.version for release in index.releases("abacus", prereleases=True)] == ["1.5rc1"]


@pytest.mark.parametrize(
    "answer, status, kind, message",
    [
        ({}, 404, SteleError, "has no package 'abacus'"),
        ({}, 503, IndexUnavailable, "returned status 503"),
        (b"<html>", 200, IndexUnavailable, "did not respond with JSON"),
        ({"info": 3}, 200, IndexUnavailable, "did not return a list of releases of abacus"),
        ([], 200, IndexUnavailable, "did not return a list"),
        ({"releases": {"1.0": [{}]}}, 200, IndexUnavailable, "did not return a list"),
    ],
)
def test_an_index_that_fails_is_an_error_with_a_message(serve, answer, status, kind, message):
    serve(answer, status)
    with pytest.raises(kind, match=message):
        index.releases("abacus")


def test_a_release_has_its_requires_python(serve):
    serve({"releases": {"1.0": [{**file(), "requires_python": ">=3.12"}], "1.1": [file()]}})
    assert [release.python for release in index.releases("abacus")] == [">=3.12", ""]


def test_a_folder_of_wheels_can_be_the_index(monkeypatch, tmp_path):
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


def test_sync_reports_new_releases_and_uses_the_ledger_without_a_network(
    serve, monkeypatch, tmp_path, capsys
):
    monkeypatch.setenv("STELE_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    serve({"releases": {"0.9.1": [file()], "0.9.2": [file("2024-02-01T12:00:00Z")]}})
    assert entry_point.main(["releases", "sync", "jax"]) == 0
    assert capsys.readouterr().out == "jax: 2 releases, 2 new, the last 0.9.2\n"
    serve({}, 503)
    assert entry_point.main(["releases", "sync", "jax"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "jax: 2 releases, the last jax-0.9.2\n"
    assert "returned status 503" in captured.err and "Using the ledger of " in captured.err
    assert entry_point.main(["releases", "sync", "torch"]) == 2
    assert "returned status 503" in capsys.readouterr().err


def test_an_unknown_framework_is_an_error_with_the_nearest_name(capsys):
    assert entry_point.main(["releases", "sync", "jaxx"]) == 2
    assert "Unknown framework 'jaxx'. Did you mean 'jax'?" in capsys.readouterr().err


def test_other_requirements_are_pinned_to_their_releases_of_that_day(environment):
    beads = [
        Release("beads", version, f"2024-0{month}-15T00:00:00+00:00")
        for month, version in ((1, "2"), (2, "3"))
    ]
    loose = dataclasses.replace(
        environment, requirements={"abacus>=1": "the framework", "beads>=2": "what it counts with"}
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
def test_a_release_is_built_with_the_nearest_python_that_it_supports(monkeypatch, needs, minor, pinned):
    monkeypatch.setattr(sys, "version_info", SimpleNamespace(major=3, minor=minor))
    assert frameworks.interpreter_pin(needs) == pinned
    environment = frameworks.release_environment("jax-0.11.0", f"# Requires-Python: {needs}\njax==0.11.0\n")
    assert environment.python == (pinned[0].removeprefix("python") if pinned else f"==3.{minor}.*")
    assert list(environment.requirements) == ["jax==0.11.0"]


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
