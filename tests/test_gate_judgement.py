"""The decision procedure on simulated differences: its error rates, its power, and when it decides."""

import math

import numpy
import pytest

from stele.gate import judgement
from stele.gate.judgement import LOOKS, SCREEN, Series

ALL = SCREEN + LOOKS[-1]


def draw_differences(shift, spread, seed, count=ALL):
    rng = numpy.random.RandomState(seed)
    return list(math.log1p(shift) + spread * rng.standard_normal(count))


def judge(differences, margin=0.05):
    return judgement.judge({"": Series(margin, differences)})[""]


def count_statuses(shift, spread, count=50):
    statuses = [judge(draw_differences(shift, spread, seed)).status for seed in range(count)]
    return {status: statuses.count(status) for status in sorted(set(statuses))}


def test_equal_releases_pass():
    assert count_statuses(0.0, 0.012) == {"PASS": 50}


def test_a_slow_down_of_two_per_cent_is_found_if_launches_vary_by_one():
    assert count_statuses(0.02, 0.012)["REGRESSED"] >= 45


def test_a_speed_up_of_three_per_cent_is_an_improvement():
    assert count_statuses(-0.03, 0.008)["IMPROVED"] >= 30


def test_a_faster_metric_passes_before_it_is_an_improvement():
    result = judge(draw_differences(-0.3, 0.01, seed=0, count=SCREEN))
    assert (result.status, result.open) == ("PASS", True)
    result = judge(draw_differences(-0.3, 0.01, seed=0, count=SCREEN + LOOKS[0]))
    assert (result.status, result.open) == ("IMPROVED", False)


def test_most_metrics_are_inconclusive_if_launches_vary_by_a_third():
    counts = count_statuses(0.0, 0.3)
    assert counts["INCONCLUSIVE"] >= 40 and counts.get("REGRESSED", 0) <= 2


def test_a_slow_down_of_ten_per_cent_never_passes():
    for spread in (0.01, 0.03, 0.1, 0.3):
        assert "PASS" not in count_statuses(0.10, spread)


def test_a_significant_but_irrelevant_change_passes():
    assert count_statuses(0.004, 0.001) == {"PASS": 50}


def test_memory_that_never_changes_passes_after_the_screen():
    result = judge([0.0] * SCREEN)
    assert (result.status, result.pairs, result.ratio) == ("PASS", SCREEN, (1.0, 1.0, 1.0))


def test_memory_that_doubles_is_a_regression():
    assert judge([math.log(2)] * (SCREEN + LOOKS[0])).status == "REGRESSED"


def test_a_candidate_is_judged_on_fresh_pairs_alone():
    """The slow-down in the screen was chance: the fresh pairs do not show it."""
    rng = numpy.random.RandomState(0)
    assert judge([0.04] * SCREEN + list(0.004 * rng.standard_normal(LOOKS[0]))).status == "PASS"


@pytest.mark.parametrize("fewer", range(SCREEN))
def test_a_metric_with_fewer_pairs_than_the_screen_stays_open(fewer):
    result = judge([0.0] * fewer)
    assert (result.status, result.needed, result.ratio) == ("INCONCLUSIVE", SCREEN - fewer, None)


def test_no_metric_is_decided_between_two_looks():
    differences = draw_differences(0.02, 0.012, seed=3)
    before = judge(differences[: SCREEN + LOOKS[0] - 1])
    assert before.open and before.status == "INCONCLUSIVE"
    assert judge(differences[: SCREEN + LOOKS[0]]).status == "REGRESSED"


def test_more_pairs_never_change_a_decision():
    for seed in range(8):
        differences = draw_differences(0.02, 0.02, seed)
        results = [judge(differences[:count]) for count in range(SCREEN, ALL + 1)]
        assert len({result for result in results if not result.open}) <= 1


def test_no_metric_is_open_after_the_last_look():
    result = judge(draw_differences(0.0, 0.3, seed=0))
    assert (result.status, result.open, result.pairs) == ("INCONCLUSIVE", False, LOOKS[-1])


def test_a_judgement_estimates_how_many_more_pairs_are_needed():
    differences = draw_differences(0.0, 0.08, seed=2)[: SCREEN + LOOKS[0]]
    assert 20 < judge(differences).needed < 60


def test_a_metric_above_its_margin_waits_for_the_next_look():
    """With seven candidates, ten slower pairs of ten are not significant, however large the slow-down is."""
    count = SCREEN + LOOKS[0]
    series = {str(seed): Series(0.03, draw_differences(0.17, 0.01, seed)[:count]) for seed in range(7)}
    result = judgement.judge(series)["0"]
    assert (result.status, result.needed) == ("INCONCLUSIVE", LOOKS[1] - LOOKS[0])
    series = {
        key: Series(0.03, draw_differences(0.17, 0.01, int(key))[: SCREEN + LOOKS[1]]) for key in series
    }
    assert judgement.judge(series)["0"].status == "REGRESSED"


def test_with_many_candidates_more_evidence_is_needed():
    """Holm's correction: ten slower pairs of ten are enough for one or two candidates, not for twenty."""
    candidate = draw_differences(0.02, 0.012, seed=3)[: SCREEN + LOOKS[0]]
    alone = judgement.judge({"a": Series(0.05, candidate)})
    noisy = {str(seed): draw_differences(0.0, 0.2, seed)[: SCREEN + LOOKS[0]] for seed in range(20)}
    differences = {"a": candidate, **noisy}
    together = judgement.judge({key: Series(0.05, values) for key, values in differences.items()})
    assert alone["a"].status == "REGRESSED"
    assert together["a"].open


def test_a_gate_over_many_metrics_is_seldom_wrong():
    """Sixty gates over ten unchanged metrics, with little noise and with much."""
    wrong = 0
    for seed in range(60):
        spreads = numpy.random.RandomState(seed).choice([0.01, 0.05, 0.2], 10)
        series = {
            str(i): Series(0.05, draw_differences(0, spread, 1000 * seed + i))
            for i, spread in enumerate(spreads)
        }
        wrong += any(result.status == "REGRESSED" for result in judgement.judge(series).values())
    assert wrong <= 1


def test_a_metric_that_seems_faster_stays_open_after_it_passed():
    """With many candidates, ten faster pairs of ten are not significant."""
    series = {str(i): Series(0.05, draw_differences(-0.1, 0.01, i)) for i in range(8)}
    statuses = {}
    for pairs in (6, 16, 21):
        results = judgement.judge(
            {key: Series(0.05, values.differences[:pairs]) for key, values in series.items()}
        )
        statuses[pairs] = {(result.status, result.open) for result in results.values()}
    assert statuses == {6: {("PASS", True)}, 16: {("PASS", True)}, 21: {("IMPROVED", False)}}


def test_the_overall_status_is_the_worst():
    assert judgement.overall(["PASS", "IMPROVED", "PASS"]) == "PASS"
    assert judgement.overall(["PASS", "INCONCLUSIVE"]) == "INCONCLUSIVE"
    assert judgement.overall(["INCONCLUSIVE", "REGRESSED"]) == "REGRESSED"
    assert judgement.overall(["REGRESSED", "BROKEN"]) == "BROKEN"
    assert judgement.overall([]) == "INCONCLUSIVE"
