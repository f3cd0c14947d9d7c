"""``stele time-to-accuracy`` on environments that return scripted trainings."""

import dataclasses
import json
import re
from datetime import date
from pathlib import Path

import pytest

from stele import __main__ as entry_point
from stele.environments import ORACLE
from stele.measuring import content, measure, store
from stele.measuring.settings import Settings
from stele.parity import accuracy
from stele.report import page
from stele.time_to_accuracy import prices, seeds
from stele_worker import tasks

REAL = {"data": None, "data_origin": {"origin": "official", "fingerprint": "0"}}
SYNTHETIC = {"data": None, "data_origin": {"origin": "synthetic", "fingerprint": "1"}}
FOLDER = Path(".stele/time-to-accuracy")
# epochs of 2 s, preparation of 0.5 s, evaluations of 1 s: see scripted.training
DAWNBENCH, MLPERF = 0.5 + 3 * 2, 0.5 + 3 * 2 + 3


@pytest.fixture
def measure_seeds(add_environment, monkeypatch):
    """measure_seeds(*options, accuracies=[of each seed], ...) -> exit status of the command for one environment."""
    monkeypatch.setattr(measure, "inputs", lambda task: (REAL, None))

    def measure_seeds(*options, scale="quick", target="60%", count=4, **script):
        add_environment("fake", **{"accuracies": [0.61, 0.62, 0.63, 0.64], **script})
        named = ["--framework=fake", "--task=cnn", f"--scale={scale}", f"--seeds={count}", "--device=cpu"]
        return entry_point.main(["time-to-accuracy", *named, f"--target={target}", "--no-wait", *options])

    return measure_seeds


def results(measure_seeds, *options, **script):
    """Return the results of the JSON file, and the exit status."""
    status = measure_seeds("--json=out.json", *options, **script)
    [result] = json.loads(Path("out.json").read_text())["results"]
    return result, status


def printed(capsys):
    return re.sub("  +", "  ", capsys.readouterr().out)


def test_both_definitions_of_the_clock_are_reported(measure_seeds, capsys):
    result, status = results(measure_seeds)
    assert status == 0
    assert result["times"]["DAWNBench"]["mean"]["middle"] == DAWNBENCH
    assert result["times"]["MLPerf"]["mean"]["middle"] == MLPERF
    assert result["compile_seconds"] == 5.0
    out = printed(capsys)
    assert "fake  seed 0  61.00%  reached the target  6.50 s (DAWNBench), 9.50 s (MLPerf)" in out
    assert "P(target)" in out


def test_compilation_beyond_mlperfs_budget_counts(measure_seeds):
    result, _ = results(measure_seeds, compile_seconds=1900.0)
    assert result["times"]["DAWNBench"]["mean"]["middle"] == DAWNBENCH
    assert result["times"]["MLPerf"]["mean"]["middle"] == pytest.approx(MLPERF + 100)


def test_a_run_that_misses_the_target_is_repeated_in_the_expected_time(measure_seeds):
    result, status = results(measure_seeds, accuracies=[0.61, 0.62, 0.59, 0.63])
    assert status == 0
    assert result["probability"]["middle"] == 0.75
    assert result["times"]["DAWNBench"]["expected"]["middle"] == pytest.approx(DAWNBENCH / 0.75)
    assert result["times"]["DAWNBench"]["mlperf_mean"] == DAWNBENCH


def test_a_lucky_epoch_before_the_last_does_not_count(measure_seeds, monkeypatch):
    from_dict = measure.Run.from_dict
    lucky = {"accuracies": [0.5, 0.7, 0.59], "accuracy": 0.59}
    monkeypatch.setattr(measure.Run, "from_dict", lambda values: from_dict({**values, **lucky}))
    result, status = results(measure_seeds, count=2)
    assert status == 3
    assert result["probability"]["middle"] == 0
    assert result["times"]["DAWNBench"]["expected"] is None


def test_a_target_out_of_reach_is_reported_after_three_seeds_with_the_probability(measure_seeds, capsys):
    assert measure_seeds(accuracies=[0.501, 0.502, 0.503, 0.504], count=10) == 2
    error = capsys.readouterr().err
    assert "fake cannot reach 60.0% in 3 epochs: after 3 seeds, the mean accuracy is 50.20%" in error
    assert re.search(r"with a probability of \d(\.\d+)?e-\d+", error)
    assert "Lower --target, or raise --epochs" in error
    assert len(list((FOLDER / store.UNFINISHED).glob("*.json"))) == 3


def test_an_environment_that_cannot_reach_the_target_does_not_stop_the_others(
    measure_seeds, add_environment, capsys
):
    add_environment("bad", accuracies=[0.501, 0.502, 0.503, 0.504])
    assert measure_seeds("--framework=bad,fake", "--json=out.json") == 2
    assert "stele: bad cannot reach 60.0% in 3 epochs" in capsys.readouterr().err
    [result] = json.loads(Path("out.json").read_text())["results"]
    assert result["environment"] == "fake"


def test_frameworks_are_trained_in_turns(measure_seeds, add_environment, capsys):
    add_environment("other", accuracies=[0.61, 0.62])
    assert measure_seeds("--framework=other,fake", count=2) == 0
    trained = re.findall(r"^(\w+) +seed (\d)", capsys.readouterr().out, flags=re.MULTILINE)
    assert trained == [("other", "0"), ("fake", "0"), ("other", "1"), ("fake", "1")]


def test_a_target_that_is_only_missed_so_far_is_measured_to_the_end(measure_seeds):
    assert measure_seeds(accuracies=[0.59, 0.57, 0.598, 0.61]) == 0


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
def test_saved_trainings_of_another_content_are_refused(
    measure_seeds, monkeypatch, capsys, name, changed, message
):
    before = {"packages": {"jax": "1"}, "installed": {"jax": "1"}}
    monkeypatch.setattr(content, "of_environment", lambda *_, **__: before)
    script = {"accuracies": [0.1, 0.11, 0.12], "count": 3}
    assert measure_seeds(**script) == 2
    assert measure_seeds(**script, target="5%") == 0  # of the saved trainings
    assert measure_seeds(**script) == 2
    capsys.readouterr()
    monkeypatch.setattr(
        content, name, lambda *_, **__: {**before, **changed} if name != "of_code" else changed
    )
    assert measure_seeds(**script, target="5%") == 2
    assert f"because {message} changed since the saved trainings." in capsys.readouterr().err


@pytest.mark.parametrize("other", [{"code": "2"}, {"code": "1", "files": "2"}, None])
def test_seeds_of_different_contents_are_not_pooled(measure_seeds, monkeypatch, capsys, other):
    original = measure.measure

    def changing(live, plan, settings, **named):
        found = {"code": "1"} if settings.seed < 2 else other
        return dataclasses.replace(original(live, plan, settings, **named), content=found)

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


def test_a_continued_training_counts_for_the_accuracy_and_never_for_the_time(measure_seeds, capsys):
    result, _ = results(measure_seeds, continued=[1])
    assert len(result["accuracies"]) == 4 and result["continued"] == 1
    assert "seed 1  62.00%  reached the target  continued, so its time does not count" in printed(capsys)
    result, _ = results(measure_seeds, continued=[0, 1, 2, 3])
    assert result["times"] == {"DAWNBench": None, "MLPerf": None}
    assert result["accuracy"]["middle"] == pytest.approx(0.625)


def test_convergence_faster_than_the_reference_is_rejected(measure_seeds, monkeypatch, capsys):
    monkeypatch.setattr(accuracy, "reference_accuracies", lambda run: [0.58, 0.585, 0.59, 0.582, 0.588])
    result, status = results(measure_seeds)
    assert status == 1 and result["rejected"] and result["reference_p"] < 0.05
    assert "rejected: converges faster than the reference (p 0.0" in printed(capsys)


def test_slower_convergence_than_the_reference_is_no_reason_to_reject(measure_seeds, monkeypatch):
    monkeypatch.setattr(accuracy, "reference_accuracies", lambda run: [0.68, 0.685, 0.69, 0.682, 0.688])
    assert results(measure_seeds)[0]["rejected"] is False


def test_other_epochs_are_not_compared_with_the_reference(measure_seeds, monkeypatch):
    monkeypatch.setattr(accuracy, "reference_accuracies", lambda run: [0.1, 0.11, 0.12, 0.1, 0.11])
    result, status = results(measure_seeds, "--epochs=4")
    assert (status, result["reference_p"], result["epochs"]) == (0, None, 4)


def test_an_unknown_price_and_unknown_energy_are_null(measure_seeds, monkeypatch):
    monkeypatch.setattr("stele.measuring.energy.read_packages", lambda: None)
    result, _ = results(measure_seeds)
    assert result["cost"] is None and result["price"] is None
    assert result["energy"] == {"processors": None}


def test_the_cost_is_the_expected_time_at_the_price(measure_seeds):
    result, _ = results(measure_seeds, "--price=3.6")
    assert result["cost"]["middle"] == pytest.approx(DAWNBENCH * 0.001)


def test_an_old_price_is_a_warning(measure_seeds, monkeypatch, capsys):
    monkeypatch.setattr(prices, "read", lambda: {"old": prices.Price("old", 3.6, date(2020, 1, 1), "V100")})
    assert measure_seeds("--price=old") == 0
    assert "The price old is of 2020-01-01, more than a year ago" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--price=runpod-h100-smx"], "Did you mean 'runpod-h100-sxm'?"),
        (["--price=-1"], "a price is a positive number of US dollars per hour"),
        (["--task=cifer"], "Unknown task 'cifer'"),
        (["--task=resnet50", "--scale=paper"], "generates its samples, so it has no target accuracy"),
        (["--scale=cpu-ful"], "Unknown scale of cnn 'cpu-ful'"),
        (["--framework=nothing"], "nothing"),
    ],
)
def test_bad_input_is_one_message(measure_seeds, capsys, options, message):
    assert measure_seeds(*options) == 2
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error


def test_a_scale_without_its_data_is_an_error_and_smoke_runs_on_synthetic_data(
    measure_seeds, monkeypatch, capsys
):
    monkeypatch.setattr(measure, "inputs", lambda task: (SYNTHETIC, "cifar10 is synthetic: no file"))
    assert measure_seeds() == 2
    error = capsys.readouterr().err
    assert "The scale 'quick' of 'cnn' needs real data. Set STELE_DATA" in error
    assert measure_seeds(scale="smoke") == 0
    assert "synthetic data" in printed(capsys)


@pytest.mark.parametrize("text", ["94", "0", "high", "nan", "101%"])
def test_a_target_that_is_no_fraction_is_a_usage_error(measure_seeds, capsys, text):
    with pytest.raises(SystemExit) as error:
        measure_seeds(target=text)
    assert error.value.code == 2
    assert "is not an accuracy. Write it as 94% or 0.94" in capsys.readouterr().err


def test_a_task_without_a_target_asks_for_one(add_environment, monkeypatch, capsys):
    monkeypatch.setattr(measure, "inputs", lambda task: (REAL, None))
    assert entry_point.main(["time-to-accuracy", "--task=cnn", "--scale=quick", "--no-wait"]) == 2
    assert "Task 'cnn' has no target at scale quick. Add --target 60%." in capsys.readouterr().err


def test_a_worker_that_fails_is_reported_and_the_earlier_seeds_are_kept(measure_seeds, capsys):
    assert measure_seeds(**{"time-to-accuracy": "segfault"}) == 2
    assert "crashed during 'time-to-accuracy'" in capsys.readouterr().err


def test_a_worker_that_fails_does_not_stop_the_others(measure_seeds, add_environment, capsys):
    add_environment("bad", **{"accuracies": [0.61], "time-to-accuracy": "segfault"})
    assert measure_seeds("--framework=bad,fake", "--json=out.json") == 2
    assert "Worker 'bad' crashed during 'time-to-accuracy'" in capsys.readouterr().err
    [result] = json.loads(Path("out.json").read_text())["results"]
    assert (result["environment"], result["seeds"]) == ("fake", [0, 1, 2, 3])


def test_the_table_of_steps_has_no_epochs(measure_seeds, capsys):
    assert measure_seeds() == 0
    assert entry_point.main(["table", "--steps", f"--runs={FOLDER}"]) == 2
    assert "There are no Runs to show" in capsys.readouterr().err


def test_runs_of_different_divisions_are_never_pooled_and_both_reports_name_the_division(
    measure_seeds, monkeypatch, capsys
):
    monkeypatch.setattr(tasks, "why_closed", lambda name, framework: None)
    monkeypatch.setattr(content, "of_environment", lambda *_, **__: {})  # whose script changes
    assert (
        measure_seeds("--division=open", accuracies=[0.1, 0.11, 0.12], count=3) == 2
    )  # saved, and unfinished
    for path in (FOLDER / store.UNFINISHED).glob("*.json"):
        assert json.loads(path.read_text())["run"]["plan"]["division"] == "open"
    result, status = results(measure_seeds)
    assert status == 0 and result["division"] == "closed" and result["accuracies"][0] == 0.61
    capsys.readouterr()
    result, _ = results(measure_seeds, "--division=open", "--markdown=out.md", "--target=5%", count=3)
    assert result["division"] == "open" and result["accuracies"] == [0.1, 0.11, 0.12]
    assert "open division" in printed(capsys)
    assert "**cnn**, scale quick, open division, target 5.0%" in Path("out.md").read_text()


def test_the_divisions_have_separate_checkpoints(tmp_path):
    closed = seeds.Training("cifar-fast", "cpu", Settings(), 1, tmp_path)
    opened = dataclasses.replace(closed, division="open")
    assert seeds.checkpoint(ORACLE, closed, 0, REAL) != seeds.checkpoint(ORACLE, opened, 0, REAL)


def test_trainings_on_different_data_have_separate_checkpoints(tmp_path):
    training = seeds.Training("cifar-fast", "cpu", Settings(), 1, tmp_path)
    files = [seeds.checkpoint(ORACLE, training, 0, data) for data in (REAL, SYNTHETIC)]
    assert files[0] != files[1]


def test_a_task_without_an_open_division_is_an_error_before_training(measure_seeds, capsys):
    assert measure_seeds("--division=open") == 2
    assert "'fake' cannot train 'cnn': the task cnn has the closed division only" in capsys.readouterr().err
    assert not list(FOLDER.rglob("*.json"))


def test_a_framework_without_an_open_division_is_named():
    assert tasks.why_closed("cifar-fast", "torch") is None
    assert tasks.why_closed("cifar-fast", "numpy") == (
        "the task cifar-fast has an open division for torch, jax, tensorflow, keras, paddle only"
    )


def test_the_markdown_table_names_the_target_and_the_data(measure_seeds):
    assert measure_seeds("--markdown=out.md") == 0
    text = Path("out.md").read_text()
    assert (
        "**cnn**, scale quick, closed division, target 60.0%, 3 epochs" in text and "Data: official." in text
    )
    Path("page.md").write_text(f"{page.BEGIN}\nNot measured yet.\n{page.END}\n")
    assert measure_seeds("--write=page.md") == 0
    assert "3 epochs" in Path("page.md").read_text() and "Not measured" not in Path("page.md").read_text()


def test_a_page_may_have_a_part_for_each_task_and_scale(measure_seeds):
    own = page.BEGIN.replace(page.BY, "stele, cnn quick")
    Path("page.md").write_text(f"{page.BEGIN}\nAnother.\n{page.END}\n{own}\nNot measured yet.\n{page.END}\n")
    assert measure_seeds("--write=page.md") == 0
    before, after = Path("page.md").read_text().split(own)
    assert "Another." in before and "3 epochs" in after and "Not measured" not in after
