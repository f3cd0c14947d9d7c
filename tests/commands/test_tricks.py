"""``stele tricks`` on an environment that returns scripted trainings."""

import re

import pytest

from stele.measuring.worker import WorkerError
from stele.report import page
from stele.time_to_accuracy import ablation, seeds
from stele_suite import tasks
from tests.support.tricks import part


@pytest.mark.slow
def test_a_training_that_two_steps_need_is_trained_once(tricks, monkeypatch):
    trained, train_seed = [], seeds.train_seed

    def remember(environment, training, fields, seed):
        trained.append((training.tricks, training.epochs, seed))
        return train_seed(environment, training, fields, seed)

    monkeypatch.setattr(seeds, "train_seed", remember)
    assert tricks() == 0
    # baseline, device-augmentation, label-smoothing with 24 and with 23 epochs, ema
    assert len(trained) == len(set(trained)) == 3 * 5


@pytest.mark.slow
def test_each_line_says_which_training_of_how_many_it_is_about(tricks, capsys):
    assert tricks() == 0
    shown = re.findall(r"^training (\d) of (\d): (\S+), (\d+) epochs", capsys.readouterr().out, flags=re.MULTILINE)
    both = "device-augmentation+label-smoothing"
    assert list(dict.fromkeys(shown)) == [
        ("1", "5", "baseline", "24"), ("2", "5", "device-augmentation", "24"), ("3", "5", both, "24"),
        ("4", "5", both, "23"), ("5", "5", f"{both}+ema", "20"),
    ]  # fmt: skip


@pytest.mark.slow
def test_each_seed_is_trained_with_all_tricks_of_all_frameworks_before_the_next_seed(tricks, add_environment, capsys):
    add_environment("other", accuracies=[0.61])
    assert tricks("--framework=fake,other") == 0
    trained = [(int(seed), name) for name, seed in seeds_of(capsys.readouterr().out)]
    assert trained == sorted(trained) and len(trained) == 3 * 2 * 5


def seeds_of(output):
    return re.findall(r"^training .*: (\w+) +seed (\d)", output, flags=re.MULTILINE)


@pytest.mark.slow
def test_a_framework_whose_training_fails_is_left_out_and_the_others_go_on(
    tricks, add_environment, monkeypatch, tmp_path, capsys
):
    path = tmp_path / "page.md"
    path.write_text(part())
    add_environment("other", accuracies=[0.61])
    train_seed = seeds.train_seed

    def fail(environment, training, fields, seed):
        if environment.name == "other" and seed == 1 and training.tricks:
            raise WorkerError("the worker of other was killed")
        return train_seed(environment, training, fields, seed)

    monkeypatch.setattr(seeds, "train_seed", fail)
    assert tricks("--framework=other,fake", f"--write={path}") == 2
    output, error = capsys.readouterr()
    assert error.count("stele: the worker of other was killed") == 1
    assert seeds_of(output).count(("fake", "2")) == 5
    assert [name for name, _ in seeds_of(output)].count("other") == 5 + 1
    assert "**fake**" in path.read_text() and "**other**" not in path.read_text()


@pytest.mark.slow
def test_an_interrupted_ablation_continues(tricks, monkeypatch):
    trained, train_seed = [], seeds.train_seed

    def interrupt(environment, training, fields, seed):
        if len(trained) == 5:
            raise KeyboardInterrupt
        trained.append(seed)
        return train_seed(environment, training, fields, seed)

    monkeypatch.setattr(seeds, "train_seed", interrupt)
    assert tricks() == 130
    monkeypatch.setattr(seeds, "train_seed", lambda *all: trained.append(all[-1]) or train_seed(*all))
    assert tricks() == 0
    assert len(trained) == 15


def test_a_page_without_markers_is_refused_before_the_training(tricks, tmp_path, monkeypatch):
    path = tmp_path / "page.md"
    path.write_text("# Tricks\n")
    monkeypatch.setattr(seeds, "train_seed", lambda *all: pytest.fail("trained"))
    assert tricks(f"--write={path}") == 2


@pytest.mark.slow
def test_a_page_that_has_only_another_part_does_not_train_again(tricks, tmp_path, monkeypatch):
    path = tmp_path / "page.md"
    path.write_text(f"# Tricks\n{page.BEGIN}\n{page.END}\n")
    assert tricks(f"--write={path}") == 2
    monkeypatch.setattr(seeds, "train_seed", lambda *all: pytest.fail("trained again"))
    path.write_text(part())
    assert tricks(f"--write={path}") == 0


@pytest.mark.slow
def test_the_plot_has_a_line_for_the_framework_and_the_published_times(tricks, tmp_path):
    pytest.importorskip("vl_convert", reason="Install it with: pip install 'pytest-stele[report]'")
    path = tmp_path / "plot.svg"
    assert tricks(f"--plot={path}") == 0
    first = path.read_bytes()
    for text in ("fake", "published, V100", "label-smoothing", "75", "26"):
        assert f">{text}</text>".encode() in first
    assert tricks(f"--plot={path}") == 0
    assert path.read_bytes() == first  # equal results give an equal file


def test_a_plot_without_its_package_is_an_error_before_anything_is_measured(tricks, monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "vl_convert", None)
    assert tricks("--plot=plot.svg") == 2
    output = capsys.readouterr()
    assert "pip install 'pytest-stele[report]'" in output.err and "seed" not in output.out


@pytest.mark.slow
def test_a_target_out_of_reach_is_told_after_the_first_seeds_and_the_ablation_goes_on(tricks, capsys):
    assert tricks("--target=90%") == 0
    captured = capsys.readouterr()
    assert "stele: fake cannot reach 90.0% in 24 epochs: after 3 seeds" in captured.err
    assert "celu" in captured.out


def test_a_task_without_tricks_is_an_error(tricks, capsys):
    assert tricks("--scale=gate") == 2
    assert "Task 'cnn' has no tricks at scale gate." in capsys.readouterr().err


def test_the_published_times_are_those_of_the_article():
    assert tuple(ablation.PUBLISHED_SECONDS.values()) == (75, 70, 64, 59, 52, 46, 43, 36, 34, 26)


def test_the_published_times_follow_the_tricks_of_the_task():
    """The article adds "ema" and "schedule" in one step, so only "ema" has no time."""
    tricks = list(tasks.tricks("cifar-fast", "gpu"))
    assert [trick for trick in tricks if trick in ablation.PUBLISHED_SECONDS] == list(ablation.PUBLISHED_SECONDS)
    assert set(tricks) - set(ablation.PUBLISHED_SECONDS) == {"ema"}
