"""Bisection: the search with given statuses, and the command with given step times."""

import pytest

from stele.releases.bisection import BAD, GOOD, SKIP, Search

EIGHT = [f"1.{number}" for number in range(1, 9)]


def run_search(first_bad, skipped=()):
    """Return the suspects, and the tested releases, if every release from ``first_bad`` on is bad."""
    search, tested = Search(EIGHT), []
    while (name := search.next_candidate()) is not None:
        tested.append(name)
        search.set_status(name, SKIP if name in skipped else BAD if name >= first_bad else GOOD)
    return search.suspects, tested


@pytest.mark.parametrize("first_bad", EIGHT[1:])
def test_the_first_bad_release_is_found_in_three_tests(first_bad):
    suspects, tested = run_search(first_bad)
    assert suspects == [first_bad]
    assert len(tested) <= 3


def test_a_skipped_release_is_a_suspect_only_next_to_the_first_bad_one():
    assert run_search("1.5", skipped=["1.4"]) == (["1.4", "1.5"], ["1.4", "1.5", "1.3"])
    assert run_search("1.8", skipped=["1.4", "1.5"])[0] == ["1.8"]


def test_if_every_release_is_skipped_all_are_suspects():
    assert run_search("1.5", skipped=EIGHT[1:-1])[0] == EIGHT[1:]


def test_a_good_release_after_a_bad_one_is_ignored():
    search = Search(EIGHT, {3: BAD, 5: GOOD})
    assert (search.good, search.bad) == (0, 3)
