import dataclasses

import pytest

from stele.errors import SteleError
from stele.measuring.run import Run


def test_a_run_is_unchanged_by_conversion_to_a_dict(run):
    assert Run.from_dict(run.to_dict()) == run


def test_a_run_cannot_be_changed(run):
    with pytest.raises(dataclasses.FrozenInstanceError):
        run.batch = 1


def test_warm_up_steps_are_kept_but_not_counted(run):
    assert run.first_step == 0.5
    assert max(run.counted_seconds) == 0.012
    assert len(run.seconds) == len(run.counted_seconds) + 1


def test_epoch_and_total_durations_use_the_published_sizes(run):
    assert run.epoch_seconds(0.01) == pytest.approx(
        7.81
    )  # 50,000 images in batches of 64, without the last 16
    assert run.total_seconds(0.01) == pytest.approx(78.1)


def test_inference_of_the_whole_test_set_is_one_epoch(run):
    infer = dataclasses.replace(run, phase="infer")
    assert infer.total_seconds(0.01) == infer.epoch_seconds(0.01) == pytest.approx(1.56)


def test_rates_follow_from_the_median_step(run):
    rates = run.rates()
    assert rates["median_step_seconds"] == 0.011
    assert rates["samples_per_second"] == pytest.approx(64 / 0.011)
    assert rates["total_seconds"] == pytest.approx(10 * rates["epoch_seconds"])


def test_an_unknown_field_is_named(run):
    with pytest.raises(SteleError, match="unknown field 'colour'"):
        Run.from_dict({**run.to_dict(), "colour": "red"})


@pytest.mark.parametrize("conditions", [{}, {"seconds": 1.0}, {"colour": "red"}, {"foreign": "much"}])
def test_conditions_that_are_not_complete_are_an_error(run, conditions):
    with pytest.raises(SteleError, match="Not a Run"):
        Run.from_dict({**run.to_dict(), "conditions": conditions})


def test_a_missing_field_is_named(run):
    values = run.to_dict()
    del values["batch"]
    with pytest.raises(SteleError, match="batch"):
        Run.from_dict(values)


TRAINING = {
    "phase": "time-to-accuracy",
    "seconds": [2.0, 2.0],
    "warmup": 0,
    "losses": [2.0, 1.0],
    "accuracies": [0.5, 0.6],
    "accuracy": 0.6,
    "evaluation_seconds": [1.0, 1.0],
    "compile_seconds": 0.0,
    "data_seconds": 0.5,
    "elapsed": 7.0,
}


def test_a_training_is_a_run_with_its_epochs(run):
    values = {**run.to_dict(), "settings": {}, **TRAINING}
    assert Run.from_dict(values).accuracies == (0.5, 0.6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"accuracies": [0.5]}, "not as many accuracies"),
        ({"evaluation_seconds": [1.0] * 3}, "not as many accuracies"),
        ({"losses": []}, "not as many accuracies"),
        ({"elapsed": None}, "no accuracy, compile_seconds, data_seconds or elapsed"),
        ({"accuracy": None}, "no accuracy"),
        ({"accuracies": [0.5, 60.0]}, "a fraction from 0 to 1"),
        ({"evaluation_seconds": [1.0, -1.0]}, "a duration of -1.0 s"),
        ({"data_seconds": 0.0}, "a duration of 0.0 s"),
        ({"continued": "no"}, "continued is 'no'"),
        ({"phase": "accuracy"}, "phase is 'accuracy', expected train, infer or time-to-accuracy"),
    ],
)
def test_a_training_with_impossible_values_is_refused(run, change, message):
    with pytest.raises(SteleError, match=message):
        Run.from_dict({**run.to_dict(), "settings": {}, **TRAINING, **change})
