"""The releases of a package in an index."""

import os

import pytest

from stele.errors import SteleError
from stele.releases import index
from stele.releases.index import IndexUnavailable
from tests.support.histories import ABACUS, file


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
