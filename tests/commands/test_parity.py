"""``stele parity`` as a user runs it."""

import json
from datetime import date

import pytest
from msgspec import structs

from stele import __main__ as entry_point
from stele import environments, schema
from stele.commands import parity as parity_command
from stele.environments import State
from stele.measuring import measure, store
from stele.measuring.run import Origin
from stele.measuring.settings import Settings
from stele.parity import accuracy, examination, golden_numbers, ladder
from stele.parity.ladder import Finding, LadderResult
from stele.report import page
from tests.support.command_lines import parse
from tests.support.scripted_environments import correct_numbers


def test_parity_compares_a_model_in_two_environments(model_gate, capsys):
    model_gate()
    capsys.readouterr()
    assert entry_point.main(["parity", "--model=net.py:build", "--framework=old,new"]) == 0
    assert "PASS  old to new: equal to OLD" in capsys.readouterr().out
    assert entry_point.main(["parity", "--model=net.py:build", "--framework=old"]) == 2
    assert "Name at least two: --framework" in capsys.readouterr().err


def test_rebase_writes_the_oracles_answers_for_each_form(monkeypatch, tmp_path, capsys):
    """test_parity checks that the oracle gives the committed numbers."""
    committed = {form: golden_numbers.load("gru", form) for form in (None, "one-bias")}
    monkeypatch.setattr(examination, "parity_answers", lambda live, task, form, phases: committed[form])
    monkeypatch.setattr(golden_numbers, "FOLDER", tmp_path / "parity")
    monkeypatch.chdir(tmp_path)
    assert entry_point.main(["parity", "--rebase", "--task", "gru"]) == 0
    for form, numbers in committed.items():
        assert golden_numbers.load("gru", form, tmp_path / "parity") == numbers


def test_the_other_modes_of_an_environment_are_compared_if_they_are_asked_for(monkeypatch, capsys):
    monkeypatch.setattr(environments, "load_ready", lambda names: [environments.load("torch")])
    # as if this machine had no compiler
    absent = State("missing", None, "no g++")
    ready = State("ready", "1.0")
    monkeypatch.setattr(environments, "state", lambda one: absent if one.mode == "max-autotune" else ready)

    def compared(*options):
        chosen = parse("parity", "--task", "gru", *options)
        return [environment.name for environment, _ in parity_command.cells(chosen, Settings(device="cpu"))]

    assert compared() == ["torch"]
    assert compared("--modes")[0] == "torch" and "torch-compile" in compared("--modes")
    assert "torch-max-autotune" not in compared("--modes")
    assert "stele: torch-max-autotune is left out: no g++" in capsys.readouterr().err


def test_the_ladder_of_a_recipe_is_printed_written_and_merged(add_environment, tmp_path, capsys):
    add_environment("steady", numbers=correct_numbers("gru"))
    (tmp_path / "page.md").write_text(f"{page.BEGIN}\n{page.END}\n")
    options = [f"--json={tmp_path / 'rungs.json'}", f"--write={tmp_path / 'page.md'}"]
    assert entry_point.main(["parity", "--framework=steady", "--task=gru", *options]) == 0
    assert capsys.readouterr().out == "steady  gru  rung 9  all rungs agree\n"
    content = json.loads((tmp_path / "rungs.json").read_text())
    [recipe] = content["recipes"]
    assert [(rung["rung"], rung["status"]) for rung in recipe["rungs"]] == [(n, "agrees") for n in range(1, 10)]
    shown = (tmp_path / "page.md").read_text()
    assert f"| Steady | scripted 1.0 | {date.today()} | exact |" in shown

    (tmp_path / "page.md").write_text(f"{page.BEGIN}\n{page.END}\n")
    merged = ["parity", f"--write={tmp_path / 'page.md'}", "--merge", str(tmp_path / "rungs.json")]
    assert entry_point.main(merged) == 0
    assert (tmp_path / "page.md").read_text() == shown
    content["settings"]["seed"] = 1
    (tmp_path / "other.json").write_text(json.dumps(content))
    assert entry_point.main([*merged, str(tmp_path / "other.json")]) == 2
    assert "have different settings" in capsys.readouterr().err
    assert entry_point.main([*merged, str(tmp_path / "page.md")]) == 2
    assert "page.md was not written by stele parity --json" in capsys.readouterr().err


@pytest.mark.slow
def test_a_recipe_that_differs_has_exit_code_one_and_a_reason(add_environment, capsys):
    add_environment("wrong", numbers={**correct_numbers("cnn"), "logits": [[0.0] * 10] * 16})
    assert entry_point.main(["parity", "--framework=wrong", "--task=cnn"]) == 1
    assert "wrong  cnn  rung 2  logits differ (rung 3): relative error 1, tolerance" in capsys.readouterr().out


@pytest.mark.parametrize(
    "later, release, expected",
    [
        ([Finding(9, "agrees")], "2.13.0", [(9, "agrees"), (10, "agrees")]),
        ([Finding(9, "agrees")], "2.14.0", [(9, "agrees")]),
        ([Finding(9, "agrees"), Finding(10, "differs")], "2.13.0", [(9, "agrees"), (10, "differs")]),
        ([Finding(1, "differs")], "2.13.0", [(1, "differs")]),
    ],
)
def test_a_merged_result_keeps_the_accuracy_of_the_earlier_one(later, release, expected, tmp_path):
    """Unless the later one differs, has an accuracy, or is of a different release."""
    files = [tmp_path / name for name in ("earlier.json", "later.json", "merged.json")]
    earlier = [Finding(9, "agrees"), Finding(10, "agrees", "5 seeds average 30.08%")]
    results = (
        LadderResult(earlier, {"torch": "2.13.0"}, "2026-11-21"),
        LadderResult(later, {"torch": release}, "2026-11-22"),
    )
    for path, result in zip(files, results, strict=False):
        by_cell = {(environments.load("torch"), "gru"): result}
        path.write_text(schema.document(parity_command.facts(by_cell, Settings(device="cpu"))))
    entry_point.main(["parity", "--merge", str(files[0]), str(files[1]), f"--json={files[2]}"])
    [recipe] = json.loads(files[2].read_text())["recipes"]
    assert [(rung["rung"], rung["status"]) for rung in recipe["rungs"]] == expected
    assert (recipe["versions"], recipe["day"]) == ({"torch": release}, "2026-11-22")


def test_a_worker_that_crashes_fails_at_rung_one(add_environment, capsys):
    add_environment("broken", parity="segfault")
    assert entry_point.main(["parity", "--framework=broken", "--task=gru"]) == 1
    assert "broken  gru  rung 0  failed (rung 1): Worker 'broken' crashed" in capsys.readouterr().out


REFERENCE = [0.48, 0.49, 0.50, 0.51, 0.52, 0.50, 0.49, 0.51, 0.50, 0.50]


@pytest.mark.slow
@pytest.mark.parametrize(
    "value, seeds, ending",
    [(0.50, 5, "rung 10  all rungs agree"), (0.45, 10, "accuracy differs (rung 10): 10 seeds")],
)
def test_more_seeds_are_trained_if_the_first_do_not_show_equivalence(
    add_environment, monkeypatch, tmp_path, capsys, value, seeds, ending
):
    add_environment("steady", seconds=[0.5, 0.1], accuracy=value, numbers=correct_numbers("gru"))
    monkeypatch.setattr(accuracy, "entry", lambda *of: accuracy.BandEntry(REFERENCE, "ten seeds"))
    options = ["--framework=steady", "--task=gru", "--seeds=5", "--scale=smoke"]
    assert entry_point.main(["parity", *options]) == (0 if value == 0.50 else 1)
    assert ending in capsys.readouterr().out
    runs = store.load_all(tmp_path / ".stele/parity")
    assert sorted(run.settings.seed for run in runs) == list(range(100, 100 + seeds))


@pytest.fixture
def trainings(add_environment, monkeypatch, tmp_path):
    """trainings(most) -> a list of (environment, seed); the training after ``most`` is interrupted."""
    for name in ("first", "second"):
        add_environment(name, seconds=[0.5, 0.1], accuracy=0.5, numbers=correct_numbers("gru"))
    monkeypatch.setattr(accuracy, "entry", lambda *of: accuracy.BandEntry(REFERENCE, "ten seeds"))
    train = examination.train

    def trainings(most):
        trained = []

        def interruptible(environment, task, scale, settings):
            if len(trained) == most:
                raise KeyboardInterrupt
            trained.append((environment.name, settings.seed))
            return train(environment, task, scale, settings)

        monkeypatch.setattr(examination, "train", interruptible)
        return trained

    return trainings


SEEDED = ["parity", "--framework=first,second", "--task=gru", "--seeds=5", "--scale=smoke"]


@pytest.mark.slow
def test_an_interrupted_accuracy_rung_continues_with_the_next_seed(trainings, tmp_path, capsys):
    trainings(7)
    assert entry_point.main(SEEDED) == 130
    assert store.load_all(tmp_path / ".stele/parity") == []  # the command has not ended
    trained = trainings(100)
    assert entry_point.main(SEEDED) == 0
    assert trained == [("second", seed) for seed in (102, 103, 104)]
    assert len(store.load_all(tmp_path / ".stele/parity")) == 10
    trained = trainings(100)
    assert entry_point.main(SEEDED) == 0  # a command that has ended does not stand for the next one
    assert len(trained) == 10


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        lambda run: {"framework": structs.replace(run.framework, versions={"scripted": "0.9"})},
        lambda run: {"scale": "quick"},
        lambda run: {"content": {"code": "0"}},
        lambda run: {"content": None},
    ],
    ids=["release", "scale", "code", "no content"],
)
def test_a_run_of_another_release_scale_or_content_is_not_continued(trainings, tmp_path, capsys, change):
    trainings(5)
    assert entry_point.main(SEEDED) == 130
    folder = tmp_path / ".stele/parity" / store.UNFINISHED
    for path in folder.iterdir():
        run = store.load(path)
        changed = structs.replace(run, **change(run))
        path.unlink()
        store.save(changed, folder)
    trained = trainings(100)
    assert entry_point.main(SEEDED) == 0
    assert len(trained) == 10


@pytest.mark.slow
def test_accuracies_are_tested_twice_and_not_in_between(add_environment, monkeypatch):
    """Testing after every seed would raise the chance of false agreement."""
    add_environment("steady", seconds=[0.5, 0.1], accuracy=0.5, numbers=correct_numbers("gru"))
    counts = []
    monkeypatch.setattr(accuracy, "entry", lambda *of: accuracy.BandEntry(REFERENCE, "ten seeds"))
    monkeypatch.setattr(
        ladder, "accuracy", lambda values, _: counts.append(len(values)) or Finding(10, "differs", "no")
    )
    assert entry_point.main(["parity", "--framework=steady", "--task=gru", "--seeds=5", "--scale=smoke"]) == 1
    assert counts == [5, 10]


@pytest.mark.slow
@pytest.mark.parametrize(
    "value, seeds, ending",
    [
        (0.85, 5, "rung 10  all rungs agree"),
        (0.90, 10, "10 seeds average 90.00%, the published results 84.5% to 86.2%"),
    ],
)
def test_at_scale_paper_on_official_data_accuracies_are_compared_with_the_published_range(
    add_environment, monkeypatch, tmp_path, capsys, value, seeds, ending
):
    add_environment("steady", seconds=[0.5, 0.1], accuracy=value, numbers=correct_numbers("gru"))
    official = {"data": None, "data_origin": Origin(origin="official", fingerprint="0123456789abcdef")}
    monkeypatch.setattr(measure, "inputs", lambda task: (official, None))
    options = ["--framework=steady", "--task=gru", "--seeds=5", "--scale=paper"]
    assert entry_point.main(["parity", *options]) == (0 if value == 0.85 else 1)
    assert ending in capsys.readouterr().out
    assert len(store.load_all(tmp_path / ".stele/parity")) == seeds


def test_four_seeds_are_too_few_for_the_accuracy_rung(capsys):
    assert entry_point.main(["parity", "--seeds=4"]) == 2
    assert "--seeds 4 is too small: the comparison of accuracies needs at least 5." in capsys.readouterr().err
