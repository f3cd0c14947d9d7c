"""The decision procedure on simulated launches: its error rates, its power, and when it decides."""

import math

import numpy
import pytest

from stele.gate import judgement
from stele.gate.judgement import CREDIBLE, MAX_PASSES, Series


def normal(rng, shape):
    return rng.standard_normal(shape)


def heavy_tailed(rng, shape):
    return rng.standard_t(2, shape) / 2


def two_modes(rng, shape):
    return rng.choice([-1.0, 1.0], shape) + 0.1 * rng.standard_normal(shape)


def outliers(rng, shape):
    return rng.standard_normal(shape) + 6 * (rng.random_sample(shape) < 0.1)


def drifting(rng, shape):
    return rng.standard_normal(shape) + rng.standard_normal((shape[0], 1)).cumsum(0)


NOISES = (normal, heavy_tailed, two_modes, outliers, drifting)


def draw_passes(shift, spread, seed, count=MAX_PASSES, noise=normal):
    """Return passes of two launches of each release; ``spread`` is that of one launch."""
    values = spread * noise(numpy.random.RandomState(seed), (count, 4))
    values[:, 2:] += math.log1p(shift)
    return tuple((tuple(row[:2]), tuple(row[2:])) for row in values)


def make_series(passes, margin=0.05, tolerance=0.01):
    return Series(margin, tolerance, 0.01, tuple(passes))


def replay(passes, tests=1, **thresholds):
    return judgement.replay(make_series(passes, **thresholds), tests=tests)


def count_statuses(shift, spread, count=100, **options):
    noise = options.pop("noise", normal)
    results = [replay(draw_passes(shift, spread, seed, noise=noise), **options) for seed in range(count)]
    return {status: sum(result.status == status for result in results) for status in judgement.STATUSES}


@pytest.mark.parametrize("noise", NOISES)
def test_equal_releases_pass(noise):
    statuses = count_statuses(0.0, 0.01, noise=noise)
    assert statuses["PASS"] >= 97 and statuses["REGRESSED"] <= 1


def test_equal_releases_pass_after_three_passes():
    assert replay(draw_passes(0.0, 0.006, seed=0)).passes == 3


@pytest.mark.parametrize("noise", NOISES)
def test_a_slow_down_of_five_per_cent_is_found(noise):
    assert count_statuses(0.05, 0.01, noise=noise)["REGRESSED"] >= 96


def test_a_slow_down_of_ten_per_cent_is_found_in_eight_passes_whatever_the_number_of_metrics():
    results = [replay(draw_passes(0.1, 0.015, seed), tests=20) for seed in range(50)]
    assert {result.status for result in results} == {"REGRESSED"}
    assert max(result.passes for result in results) <= 8


def test_a_speed_up_of_three_per_cent_is_an_improvement():
    assert count_statuses(-0.03, 0.008)["IMPROVED"] >= 80


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.01, 0.03, 0.1, 0.3])
def test_a_slow_down_of_ten_per_cent_never_passes(spread):
    assert count_statuses(0.10, spread)["PASS"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISES)
def test_growth_by_the_margin_seldom_passes(noise):
    assert count_statuses(0.05, 0.01, tolerance=0.05, noise=noise)["PASS"] <= 3


@pytest.mark.slow
def test_growth_by_the_tolerance_seldom_regresses():
    assert count_statuses(0.01, 0.006)["REGRESSED"] <= 100 * CREDIBLE


@pytest.mark.slow
def test_growth_below_the_tolerance_passes():
    assert count_statuses(0.004, 0.002)["PASS"] == 100
    assert count_statuses(0.02, 0.004, tolerance=0.03)["PASS"] == 100


@pytest.mark.slow
def test_noise_of_a_third_is_inconclusive():
    statuses = count_statuses(0.0, 0.3)
    assert statuses["INCONCLUSIVE"] >= 80 and statuses["REGRESSED"] <= 2


def test_memory_that_never_changes_passes():
    result = replay([((0.0, 0.0), (0.0, 0.0))] * 3)
    assert (result.status, result.passes, result.p) == ("PASS", 3, 1.0)


def test_memory_that_doubles_is_a_regression():
    assert replay([((0.0, 0.0), (math.log(2), math.log(2)))] * 5).status == "REGRESSED"


def test_a_pass_does_not_stand_against_later_evidence():
    """Six passes are 3 % faster, then 28 are 10 % slower."""
    faster, slower = draw_passes(-0.03, 0.005, seed=0, count=6), draw_passes(0.1, 0.005, seed=1, count=28)
    assert judgement.judge({"": make_series(faster)})[""].status in ("PASS", "IMPROVED")
    assert judgement.judge({"": make_series(faster + slower)})[""].status == "REGRESSED"


def test_a_regression_is_not_revoked_by_later_passes():
    slower, equal = draw_passes(0.1, 0.005, seed=0, count=6), draw_passes(0.0, 0.005, seed=1, count=20)
    assert judgement.judge({"": make_series(slower + equal)})[""].status == "REGRESSED"


def test_a_metric_without_passes_is_open():
    result = judgement.judge({"": make_series([])})[""]
    assert (result.status, result.open, result.ratio) == ("INCONCLUSIVE", True, None)


def test_no_metric_is_open_after_the_last_pass():
    result = replay(draw_passes(0.0, 0.5, seed=0))
    assert (result.status, result.open, result.passes) == ("INCONCLUSIVE", False, MAX_PASSES)


def test_a_judgement_estimates_how_many_more_passes_are_needed():
    passes = draw_passes(0.04, 0.02, seed=2)
    first = judgement.judge({"": make_series(passes[:3])})[""]
    assert first.open and 1 <= first.needed <= 30


@pytest.mark.parametrize(("slower", "expected"), [([-0.1, -0.2], None), ([1.0, 2.0], 4)])
def test_no_pass_is_promised_to_growth_above_the_tolerance(slower, expected):
    ruled_out = [3.0, 6.0]  # growth by the margin
    evidence = judgement.Evidence(slower, [1.0, 2.0], [0.0, 0.0], [0.0, 0.0], ruled_out, near=[-0.1, -0.2])
    assert judgement.more_passes(evidence, 6.0, may_pass=True) == 1
    assert judgement.more_passes(evidence, 6.0, may_pass=False) == expected


def test_growth_a_little_above_the_tolerance_ends_as_soon_as_twice_the_tolerance_is_ruled_out():
    """Otherwise a release that is 1.1 % slower has no verdict, however long it is measured."""
    results = [replay(draw_passes(0.011, 0.004, seed)) for seed in range(50)]
    assert all(result.status in ("PASS", "REGRESSED") for result in results)
    assert numpy.mean([result.passes for result in results]) < 20
    assert sum(result.status == "PASS" for result in results) >= 30


@pytest.mark.parametrize("tolerance", [0.01, 0.02])
def test_growth_by_twice_the_tolerance_seldom_passes(tolerance):
    statuses = count_statuses(2 * tolerance, 0.006, tolerance=tolerance)
    assert statuses["PASS"] <= 3 and statuses["REGRESSED"] >= 90


def test_a_margin_below_twice_the_tolerance_has_to_be_ruled_out():
    assert count_statuses(0.05, 0.01, tolerance=0.04)["PASS"] <= 3


def test_the_interval_agrees_with_the_status():
    for seed in range(20):
        series = make_series(draw_passes(0.0, 0.02, seed, count=6))
        result = judgement.with_ratio(judgement.judge({"": series})[""], series)
        if result.status == "PASS":
            assert result.ratio.high < 1.05


def test_with_more_tests_more_evidence_is_needed():
    passes = draw_passes(0.03, 0.008, seed=3)
    assert replay(passes, tests=1).passes < replay(passes, tests=1000).passes


@pytest.mark.slow
def test_a_gate_over_many_metrics_is_seldom_wrong():
    """Two hundred gates over ten unchanged metrics, with little noise and with much, looked at after every pass."""
    wrong = 0
    for seed in range(200):
        spreads = numpy.random.RandomState(seed).choice([0.01, 0.05, 0.2], 10)
        passes = [draw_passes(0, spread, 1000 * seed + i, count=12) for i, spread in enumerate(spreads)]
        wrong += any(replay(values, tests=10).status == "REGRESSED" for values in passes)
    assert wrong <= 3


def test_the_overall_status_is_the_worst():
    assert judgement.overall(["PASS", "IMPROVED", "PASS"]) == "PASS"
    assert judgement.overall(["PASS", "INCONCLUSIVE"]) == "INCONCLUSIVE"
    assert judgement.overall(["INCONCLUSIVE", "REGRESSED"]) == "REGRESSED"
    assert judgement.overall(["REGRESSED", "BROKEN"]) == "BROKEN"
    assert judgement.overall([]) == "INCONCLUSIVE"


def test_growth_between_tolerance_and_margin_is_open_until_it_is_certain():
    passes = draw_passes(0.03, 0.01, seed=0)
    first = judgement.judge({"": make_series(passes[:2])})[""]
    assert (first.status, first.open) == ("INCONCLUSIVE", True)
    assert replay(passes).status == "REGRESSED"


def test_growth_above_the_tolerance_that_is_suspected_does_not_pass():
    """Growth by a margin of 25 % is ruled out after three passes. After the last one, a suspicion does not count."""
    for shift, count, status in ((0.0, 3, "PASS"), (0.0095, 3, "INCONCLUSIVE"), (0.0095, MAX_PASSES, "PASS")):
        series = make_series(draw_passes(shift, 0.003, seed=0, count=count), margin=0.25)
        evidence = judgement.weigh(series)
        assert evidence.acceptable[-1] >= -math.log(judgement.ERROR)
        assert judgement.is_suspected(evidence) == (shift > 0)
        assert judgement.judge({"": series})[""].status == status


def test_a_speed_up_below_the_tolerance_is_no_improvement():
    assert count_statuses(-0.006, 0.002)["PASS"] == 100


def test_the_p_value_is_the_inverse_of_the_largest_e_value():
    series = make_series(draw_passes(0.03, 0.01, seed=0, count=4))
    evidence = judgement.weigh(series)
    largest = max(*evidence.slower, *evidence.faster)
    assert largest > 0
    assert judgement.judge({"": series})[""].p == pytest.approx(1 / math.exp(largest))


def test_the_ratio_is_the_hodges_lehmann_estimate():
    passes = draw_passes(0.03, 0.01, seed=0, count=6)
    series = make_series(passes)
    changes = [sum(new) / 2 - sum(old) / 2 for old, new in passes]
    means = [(one + other) / 2 for number, one in enumerate(changes) for other in changes[number:]]
    ratio = judgement.with_ratio(judgement.judge({"": series})[""], series).ratio
    assert ratio.middle == pytest.approx(math.exp(numpy.median(means)))
