"""``stele band`` on an environment that returns scripted trainings."""

import pytest

from stele import __main__ as entry_point
from stele.measuring import measure
from stele.measuring.run import Origin
from stele.parity import accuracy
from stele.time_to_accuracy import seeds
from stele_suite import tasks

REAL = {"data": None, "data_origin": Origin(origin="official", fingerprint="0")}
ACCURACIES = [0.61, 0.62, 0.63, 0.64, 0.65]


@pytest.fixture
def band(add_environment, monkeypatch, tmp_path):
    """band(*options) -> exit status of the command, which writes ``accuracy.json`` in a temporary folder."""
    monkeypatch.setattr(measure, "inputs", lambda task: (REAL, None))
    monkeypatch.setattr(accuracy, "FILE", tmp_path / "accuracy.json")

    def band(*options):
        add_environment("fake", accuracies=ACCURACIES)
        return entry_point.main(["band", "--framework=fake", "--seeds=5", *options])

    return band


def test_a_band_is_measured_over_seeds(band, capsys):
    assert band("--task=gru", "--scale=smoke") == 0
    entry = accuracy.entry("gru", "smoke", "0")
    assert entry.accuracies == ACCURACIES and entry.source.startswith("5 seeds of scripted 1.0")
    assert "seed 4: 65.00%" in capsys.readouterr().out


def test_an_interrupted_band_continues_after_the_saved_seeds(band, monkeypatch):
    trained, train_seed = [], seeds.train_seed

    def interrupt(environment, training, fields, seed):
        if len(trained) == 3:
            raise KeyboardInterrupt
        trained.append(seed)
        return train_seed(environment, training, fields, seed)

    monkeypatch.setattr(seeds, "train_seed", interrupt)
    assert band("--task=gru", "--scale=smoke") == 130
    assert accuracy.entry("gru", "smoke", "0") is None
    monkeypatch.setattr(seeds, "train_seed", lambda *all: trained.append(all[-1]) or train_seed(*all))
    assert band("--task=gru", "--scale=smoke") == 0
    assert trained == [0, 1, 2, 3, 4]


@pytest.mark.slow
def test_the_band_of_a_tier_is_the_reference_of_the_time_to_accuracy(band, monkeypatch, capsys):
    monkeypatch.setattr(tasks.load("cifar-fast"), "FRAMEWORKS", ("scripted",))
    assert band("--task=cifar-fast", "--scale=cpu") == 0
    command = [
        "time-to-accuracy",
        "--framework=fake",
        "--task=cifar-fast",
        "--scale=cpu",
        "--seeds=5",
        "--no-wait",
    ]
    assert entry_point.main(command) == 0
    assert "rejected" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "options, message",
    [
        (["--task=cnn", "--scale=smoke", "--seeds=4"], "--seeds 4 is too small: a band needs at least 5 seeds."),
        (["--task=cifar-fast", "--scale=quick"], "Unknown scale 'quick' for a band of task cifar-fast"),
        (["--task=cifar-fast", "--scale=smoke"], "Known: cpu, cpu-full, gpu"),
        (["--task=cnn", "--scale=gate"], "Unknown scale 'gate' for a band of task cnn"),
        (["--task=resnet50", "--scale=smoke"], "Task 'resnet50' generates its samples"),
    ],
)
def test_a_band_that_cannot_be_measured_is_an_error(band, capsys, options, message):
    assert band(*options) == 2
    assert message in capsys.readouterr().err


def test_a_band_of_two_frameworks_is_a_usage_error(band, capsys):
    with pytest.raises(SystemExit) as exit_info:
        band("--task=gru", "--scale=smoke", "--framework=torch,jax")
    assert exit_info.value.code == 2
    assert "a band needs exactly one framework" in capsys.readouterr().err
