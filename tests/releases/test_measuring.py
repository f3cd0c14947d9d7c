"""Releases that are measured together."""

from stele.releases import measuring


def test_more_than_eight_releases_are_measured_in_groups_beside_the_anchor():
    releases = list(range(20))
    groups = list(measuring.groups(releases))
    assert [len(group) for group in groups] == [7, 7, 6]
    assert sorted(release for group in groups for release in group) == releases
