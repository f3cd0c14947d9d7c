"""Which seeds are trained, in which order, and which saved trainings are used."""

import dataclasses
import json
import re
from pathlib import Path

import pytest

from stele.environments import ORACLE
from stele.measuring import content, measure, store
from stele.measuring.settings import Settings
from stele.time_to_accuracy import seeds
from stele_suite import tasks
from tests.support.runs import changed
from tests.support.trainings import FOLDER, REAL, SYNTHETIC


def test_frameworks_are_trained_in_turns(measure_seeds, add_environment, capsys):
    add_environment("other", accuracies=[0.61, 0.62])
    assert measure_seeds("--framework=other,fake", count=2) == 0
    trained = re.findall(r"^(\w+) +seed (\d)", capsys.readouterr().out, flags=re.MULTILINE)
    assert trained == [("other", "0"), ("fake", "0"), ("other", "1"), ("fake", "1")]


def test_a_target_that_is_only_missed_so_far_is_measured_to_the_end(measure_seeds):
    assert measure_seeds(accuracies=[0.59, 0.57, 0.598, 0.61]) == 0


@pytest.mark.slow
def test_an_interrupted_command_trains_only_the_seeds_that_are_missing(measure_seeds, monkeypatch):
    trained, train_seed = [], seeds.train_seed

    def interrupt_third(environment, training, fields, seed):
        if len(trained) == 2:
            raise KeyboardInterrupt
        trained.append(seed)
        return train_seed(environment, training, fields, seed)

    monkeypatch.setattr(seeds, "train_seed", interrupt_third)
    assert measure_seeds() == 130
    monkeypatch.setattr(seeds, "train_seed", lambda *all: trained.append(all[-1]) or train_seed(*all))
    assert measure_seeds("--epochs=5") == 0  # another training
    assert trained == [0, 1, 0, 1, 2, 3]
    assert measure_seeds() == 0
    assert trained[6:] == [2, 3]
    assert measure_seeds() == 0  # the last command ended, so this one trains again
    assert trained[8:] == [0, 1, 2, 3]
    assert not list((FOLDER / store.UNFINISHED).iterdir())


@pytest.mark.parametrize(
    ("name", "changed", "message"),
    [
        ("of_code", {"stele": "0"}, "Stele itself"),
        ("of_environment", {"packages": {"jax": "2"}}, "the versions of its packages"),
        (
            "of_environment",
            {"packages": {"jax": "1"}, "installed": {"jax": "2"}},
            "the files of its packages",
        ),
    ],
)
def test_saved_trainings_of_another_content_are_refused(measure_seeds, monkeypatch, capsys, name, changed, message):
    before = {"packages": {"jax": "1"}, "installed": {"jax": "1"}}
    monkeypatch.setattr(content, "of_environment", lambda *_, **__: before)
    script = {"accuracies": [0.1, 0.11, 0.12], "count": 3}
    assert measure_seeds(**script) == 2
    assert measure_seeds(**script, target="5%") == 0  # of the saved trainings
    assert measure_seeds(**script) == 2
    capsys.readouterr()
    monkeypatch.setattr(content, name, lambda *_, **__: {**before, **changed} if name != "of_code" else changed)
    assert measure_seeds(**script, target="5%") == 2
    assert f"because {message} changed since the saved trainings." in capsys.readouterr().err


@pytest.mark.parametrize("other", [{"code": "2"}, {"code": "1", "files": "2"}, None])
def test_seeds_of_different_contents_are_not_pooled(measure_seeds, monkeypatch, capsys, other):
    original = measure.measure

    def changing(live, plan, settings, **named):
        found = {"code": "1"} if settings.seed < 2 else other
        return changed(original(live, plan, settings, **named), content=found)

    monkeypatch.setattr(measure, "measure", changing)
    assert measure_seeds() == 2
    assert "The seeds cannot be compared, because " in capsys.readouterr().err


def test_a_checkpoint_of_another_content_is_not_continued(tmp_path, monkeypatch):
    training = seeds.Training("cifar-fast", "cpu", Settings(), 1, tmp_path)
    before = seeds.checkpoint(ORACLE, training, 0, REAL)
    monkeypatch.setattr(content, "of_code", lambda: {"stele": "0"})
    assert seeds.checkpoint(ORACLE, training, 0, REAL) != before


def test_saved_trainings_of_another_release_are_not_mixed_with_new_ones(measure_seeds, monkeypatch, capsys):
    monkeypatch.setattr(content, "of_environment", lambda *_, **__: {})  # whose script changes
    assert measure_seeds(accuracies=[0.1, 0.11, 0.12], count=3) == 2
    for path in (FOLDER / store.UNFINISHED).glob("*.json"):
        path.write_text(path.read_text().replace('"scripted": "1.0"', '"scripted": "0.9"'))
    assert measure_seeds(target="5%") == 2
    assert "fake is now scripted 1.0, but the saved trainings are of scripted 0.9" in capsys.readouterr().err


def test_a_worker_that_fails_is_reported_and_the_earlier_seeds_are_kept(measure_seeds, capsys):
    assert measure_seeds(**{"time-to-accuracy": "segfault"}) == 2
    assert "crashed during 'time-to-accuracy'" in capsys.readouterr().err


def test_a_worker_that_fails_does_not_stop_the_others(measure_seeds, add_environment, capsys):
    add_environment("bad", **{"accuracies": [0.61], "time-to-accuracy": "segfault"})
    assert measure_seeds("--framework=bad,fake", "--json=out.json") == 2
    assert "Worker 'bad' crashed during 'time-to-accuracy'" in capsys.readouterr().err
    [result] = json.loads(Path("out.json").read_text())["results"]
    assert (result["environment"], result["seeds"]) == ("fake", [0, 1, 2, 3])


def test_the_divisions_have_separate_checkpoints(tmp_path):
    closed = seeds.Training("cifar-fast", "cpu", Settings(), 1, tmp_path)
    opened = dataclasses.replace(closed, division="open")
    assert seeds.checkpoint(ORACLE, closed, 0, REAL) != seeds.checkpoint(ORACLE, opened, 0, REAL)


def test_trainings_on_different_data_have_separate_checkpoints(tmp_path):
    training = seeds.Training("cifar-fast", "cpu", Settings(), 1, tmp_path)
    files = [seeds.checkpoint(ORACLE, training, 0, data) for data in (REAL, SYNTHETIC)]
    assert files[0] != files[1]


def test_a_framework_without_an_open_division_is_named():
    assert tasks.why_closed("cifar-fast", "torch") is None
    assert tasks.why_closed("cifar-fast", "numpy") == (
        "the task cifar-fast has an open division for torch, jax, tensorflow, keras, paddle only"
    )
