import pytest

from stele.errors import SteleError
from stele.parity import accuracy
from tests.support.runs import changed


@pytest.fixture
def file(tmp_path, run):
    path = tmp_path / "accuracy.json"
    accuracy.add(run, [0.35, 0.36, 0.37, 0.36, 0.35, 0.36], "6 seeds of torch 2.13.0", path)
    return path


def test_an_accuracy_inside_the_band_has_no_message(run, file):
    assert accuracy.out_of_band_message(run, file) is None


@pytest.mark.parametrize("value", [0.1, 0.28, 0.44])
def test_an_accuracy_outside_the_band_has_a_message(run, file, value):
    message = accuracy.out_of_band_message(changed(run, learning={"accuracy": value}), file)
    assert message.startswith(f"accuracy {value:.2%} is outside the band [")
    assert "6 seeds of torch 2.13.0" in message


def test_different_data_or_a_different_scale_has_no_band(run, file):
    data = {"origin": "from STELE_DATA", "fingerprint": "f" * 16}
    assert accuracy.band(changed(run, data=data), file) is None
    assert accuracy.band(changed(run, scale="smoke"), file) is None


def test_at_scale_paper_on_official_data_the_band_is_the_published_range(run, file):
    paper = changed(run, scale="paper")
    assert accuracy.band(paper, file) == (0.753, 0.790, "published results")


def test_a_loss_that_is_not_finite_has_a_message_for_any_accuracy(run, file):
    diverged = changed(run, learning={"losses": (2.3, None)})
    assert accuracy.out_of_band_message(diverged, file) == "the loss of step 2 is not finite"


def test_recording_a_band_keeps_the_other_bands(run, file):
    accuracy.add(changed(run, task="gru"), [0.8] * 5, "source", file)
    assert accuracy.band(run, file) is not None


def test_a_damaged_file_is_named(run, tmp_path):
    (tmp_path / "accuracy.json").write_text("{")
    with pytest.raises(SteleError, match=r"accuracy\.json is damaged"):
        accuracy.band(run, tmp_path / "accuracy.json")
