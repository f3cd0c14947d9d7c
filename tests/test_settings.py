import pytest

from stele.errors import SteleError
from stele.measuring.settings import Settings


def test_libraries_are_told_the_threads_before_they_are_loaded():
    variables = Settings(device="cpu", threads=3).variables()
    assert variables["OMP_NUM_THREADS"] == variables["OPENBLAS_NUM_THREADS"] == "3"


def test_deterministic_turns_autotuning_off():
    assert Settings(device="cuda", deterministic=True).as_request()["autotune"] is False
    assert Settings(device="cuda").as_request()["autotune"] is True


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"precision": "tf32"}, "Precision tf32 needs a GPU"),
        ({"threads": 0}, "--threads 0: at least one"),
        ({"seed": -1}, "--seed -1"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(values, message):
    with pytest.raises(SteleError, match=message):
        Settings(device="cpu", **values)


def test_settings_are_said_in_words():
    assert Settings(device="cpu", threads=1, seed=7).summary() == "cpu, 1 thread, fp32, seed 7"
