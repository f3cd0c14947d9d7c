"""The procedure, on differences that are drawn: what it calls worse is worse, and what it lets pass is not."""

import math

import numpy
import pytest

from stele.gate import judgement
from stele.gate.judgement import LOOKS, SCREEN, Series

ALL = SCREEN + LOOKS[-1]


def drawn(shift, spread, seed, count=ALL):
    rng = numpy.random.RandomState(seed)
    return list(math.log1p(shift) + spread * rng.standard_normal(count))


def judged(differences, margin=0.05):
    return judgement.judge({"": Series(margin, differences)})[""]


def words(shift, spread, count=50):
    found = [judged(drawn(shift, spread, seed)).status for seed in range(count)]
    return {status: found.count(status) for status in sorted(set(found))}


def test_what_is_equal_passes():
    assert words(0.0, 0.012) == {"PASS": 50}


def test_two_per_cent_are_found_where_launches_spread_by_one():
    assert words(0.02, 0.012)["REGRESSED"] >= 45


def test_three_per_cent_faster_are_an_improvement():
    assert words(-0.03, 0.008)["IMPROVED"] >= 30


def test_what_is_faster_has_passed_before_it_is_an_improvement():
    found = judged(drawn(-0.3, 0.01, seed=0, count=SCREEN))
    assert (found.status, found.open) == ("PASS", True)
    found = judged(drawn(-0.3, 0.01, seed=0, count=SCREEN + LOOKS[0]))
    assert (found.status, found.open) == ("IMPROVED", False)


def test_hardly_anything_is_told_where_launches_spread_by_a_third():
    found = words(0.0, 0.3)
    assert found["INCONCLUSIVE"] >= 40 and found.get("REGRESSED", 0) <= 2


def test_ten_per_cent_never_pass():
    for spread in (0.01, 0.03, 0.1, 0.3):
        assert "PASS" not in words(0.10, spread)


def test_a_significant_change_that_is_no_concern_passes():
    assert words(0.004, 0.001) == {"PASS": 50}


def test_memory_that_never_changes_passes_at_once():
    found = judged([0.0] * SCREEN)
    assert (found.status, found.pairs, found.ratio) == ("PASS", SCREEN, (1.0, 1.0, 1.0))


def test_memory_that_doubles_each_time_is_found():
    assert judged([math.log(2)] * (SCREEN + LOOKS[0])).status == "REGRESSED"


def test_a_candidate_is_confirmed_on_fresh_pairs_alone():
    """What screened it was chance: the fresh pairs know nothing of it."""
    rng = numpy.random.RandomState(0)
    assert judged([0.04] * SCREEN + list(0.004 * rng.standard_normal(LOOKS[0]))).status == "PASS"


@pytest.mark.parametrize("fewer", range(SCREEN))
def test_fewer_pairs_than_screen_leave_it_open(fewer):
    found = judged([0.0] * fewer)
    assert (found.status, found.needed, found.ratio) == ("INCONCLUSIVE", SCREEN - fewer, None)


def test_between_two_looks_nothing_is_decided():
    differences = drawn(0.02, 0.012, seed=3)
    before = judged(differences[: SCREEN + LOOKS[0] - 1])
    assert before.open and before.status == "INCONCLUSIVE"
    assert judged(differences[: SCREEN + LOOKS[0]]).status == "REGRESSED"


def test_more_pairs_never_change_what_is_decided():
    for seed in range(8):
        differences = drawn(0.02, 0.02, seed)
        found = [judged(differences[:count]) for count in range(SCREEN, ALL + 1)]
        decided = [one for one in found if not one.open]
        assert len(set(decided)) <= 1


def test_after_the_last_look_it_is_no_longer_open():
    found = judged(drawn(0.0, 0.3, seed=0))
    assert (found.status, found.open, found.pairs) == ("INCONCLUSIVE", False, LOOKS[-1])


def test_how_many_more_pairs_it_takes_is_told():
    differences = drawn(0.0, 0.08, seed=2)[: SCREEN + LOOKS[0]]
    assert 20 < judged(differences).needed < 60


def test_what_lies_beyond_its_margin_waits_for_the_next_look():
    """Among seven candidates ten of ten are no proof yet, however much it is."""
    count = SCREEN + LOOKS[0]
    series = {str(seed): Series(0.03, drawn(0.17, 0.01, seed)[:count]) for seed in range(7)}
    found = judgement.judge(series)["0"]
    assert (found.status, found.needed) == ("INCONCLUSIVE", LOOKS[1] - LOOKS[0])
    series = {key: Series(0.03, drawn(0.17, 0.01, int(key))[: SCREEN + LOOKS[1]]) for key in series}
    assert judgement.judge(series)["0"].status == "REGRESSED"


def test_among_many_candidates_one_must_be_clearer():
    """Holm: ten of ten pairs slower is enough for one or two candidates, not for twenty."""
    suspect = drawn(0.02, 0.012, seed=3)[: SCREEN + LOOKS[0]]
    alone = judgement.judge({"a": Series(0.05, suspect)})
    noisy = {str(seed): drawn(0.0, 0.2, seed)[: SCREEN + LOOKS[0]] for seed in range(20)}
    among = judgement.judge({key: Series(0.05, one) for key, one in {"a": suspect, **noisy}.items()})
    assert alone["a"].status == "REGRESSED"
    assert among["a"].open


def test_a_whole_gate_is_seldom_wrong():
    """Ten metrics without a change, in the quiet and in the noise, sixty times."""
    wrong = 0
    for seed in range(60):
        spreads = numpy.random.RandomState(seed).choice([0.01, 0.05, 0.2], 10)
        series = {str(i): Series(0.05, drawn(0, spread, 1000 * seed + i)) for i, spread in enumerate(spreads)}
        wrong += any(one.status == "REGRESSED" for one in judgement.judge(series).values())
    assert wrong <= 1


def test_what_has_passed_goes_on_while_it_seems_faster():
    """Ten of ten pairs are too few to be sure of one among many."""
    series = {str(i): Series(0.05, drawn(-0.1, 0.01, i)) for i in range(8)}
    told = {}
    for pairs in (6, 16, 21):
        found = judgement.judge({key: Series(0.05, one.differences[:pairs]) for key, one in series.items()})
        told[pairs] = {(one.status, one.open) for one in found.values()}
    assert told == {6: {("PASS", True)}, 16: {("PASS", True)}, 21: {("IMPROVED", False)}}


def test_the_worst_word_stands_for_all():
    assert judgement.whole(["PASS", "IMPROVED", "PASS"]) == "PASS"
    assert judgement.whole(["PASS", "INCONCLUSIVE"]) == "INCONCLUSIVE"
    assert judgement.whole(["INCONCLUSIVE", "REGRESSED"]) == "REGRESSED"
    assert judgement.whole(["REGRESSED", "BROKEN"]) == "BROKEN"
    assert judgement.whole([]) == "INCONCLUSIVE"
