from pathlib import Path

import pytest

from stele import schema
from stele.measuring.content import Reads
from stele.measuring.run import Run
from tests.support.runs import changed, to_training


def test_a_run_is_unchanged_by_conversion_to_json(run):
    assert schema.convert(schema.parse(schema.encode(run)), Run) == run


def test_a_run_cannot_be_changed(run):
    with pytest.raises(AttributeError, match="immutable"):
        run.steps.batch = 1


def test_warm_up_steps_are_kept_but_not_counted(run):
    assert run.first_step == 0.5
    assert max(run.counted_seconds) == 0.012
    assert len(run.steps.seconds) == len(run.counted_seconds) + 1


def test_epoch_and_total_durations_use_the_published_sizes(run):
    assert run.epoch_seconds(0.01) == pytest.approx(7.81)  # 50,000 images in batches of 64, without the last 16
    assert run.total_seconds(0.01) == pytest.approx(78.1)


def test_inference_of_the_whole_test_set_is_one_epoch(run):
    infer = changed(run, phase="infer")
    assert infer.total_seconds(0.01) == infer.epoch_seconds(0.01) == pytest.approx(1.56)


def test_rates_follow_from_the_median_step(run):
    rates = run.rates()
    assert rates["median_step_seconds"] == 0.011
    assert rates["samples_per_second"] == pytest.approx(64 / 0.011)
    assert rates["total_seconds"] == pytest.approx(10 * rates["epoch_seconds"])


def test_an_unknown_key_is_left_out(run):
    assert changed(run, colour="red", steps={"colour": "red"}) == run


@pytest.mark.parametrize("conditions", [{}, {"seconds": 1.0}, {"colour": "red"}, {"foreign": "much"}])
def test_conditions_that_are_not_complete_are_an_error(run, conditions):
    with pytest.raises(ValueError, match=r"\$\.conditions"):
        changed(run, conditions=conditions)


def test_a_missing_key_is_named_with_its_place(run):
    values = schema.to_json(run)
    del values["steps"]["batch"]
    with pytest.raises(ValueError, match=r"missing required field `batch` - at `\$\.steps`"):
        schema.convert(values, Run)


def test_what_a_model_has_read_is_neither_stored_nor_compared(run):
    reads = Reads((Path("config.json"),))
    read = run.with_reads(reads, {"code": "1"})
    assert read.reads == reads and read == run
    assert schema.to_json(read) == schema.to_json(run)


def test_a_training_is_a_run_with_its_epochs(run):
    assert to_training(run).epochs.accuracies == (0.5, 0.6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs": {"accuracies": [0.5]}}, "each epoch needs an accuracy"),
        ({"epochs": {"evaluation_seconds": [1.0] * 3}}, "each epoch needs an accuracy"),
        ({"learning": {"losses": []}}, "each epoch needs an accuracy, an evaluation and a loss"),
        ({"epochs": {"elapsed": None}}, r"Expected `float`, got `null` - at `\$\.epochs\.elapsed`"),
        ({"learning": {"accuracy": None}}, "has no accuracy"),
        ({"epochs": {"accuracies": [0.5, 60.0]}}, "a fraction from 0 to 1"),
        ({"epochs": {"evaluation_seconds": [1.0, -1.0]}}, r"a duration of -1\.0 s.*\$\.epochs"),
        ({"epochs": {"data_seconds": 0.0}}, r"a duration of 0\.0 s"),
        ({"epochs": {"continued": "no"}}, r"Expected `bool`, got `str` - at `\$\.epochs\.continued`"),
        (
            {"phase": "accuracy"},
            "phase is 'accuracy', expected train, infer, benchmark, memory, call, command or time-to-accuracy",
        ),
        ({"steps": {"seconds": []}}, "there are no durations of steps"),
        ({"steps": {"warmup": 2}}, "2 warm-up steps of 2"),
        ({"steps": {"batch": 0}}, "0 samples in a batch"),
    ],
)
def test_a_training_with_impossible_values_is_refused(run, changes, message):
    with pytest.raises(ValueError, match=message):
        to_training(run, **changes)


def test_a_training_without_epochs_is_refused(run):
    with pytest.raises(ValueError, match="a Run of the phase time-to-accuracy has no epochs"):
        changed(run, phase="time-to-accuracy")


def test_a_run_with_a_negative_block_is_refused(run):
    for changes in (
        {"blocks": {"seconds": (0.1, -0.1), "returned": (0.1, 0.1)}},
        {"blocks": {"seconds": (0.1,), "returned": (0.0,)}},
        {"new_batch": -1.0},
        {"sizes": {"8": [0.0]}},
    ):
        with pytest.raises(ValueError, match="Check the clock"):
            changed(run, **changes)
