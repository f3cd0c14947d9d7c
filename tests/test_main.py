import argparse
import json
from datetime import date

import pytest

from fakes import well
from stele import __main__ as door
from stele import environments
from stele.commands import parity as climbs
from stele.measuring import measure, store
from stele.measuring.settings import Settings
from stele.parity import accuracy, examination, golden_numbers, ladder
from stele.parity.ladder import Finding, LadderResult
from stele.report import page


def test_tables_are_written_between_the_markers(run, tmp_path, capsys):
    store.save(run, tmp_path / "runs")
    readme = tmp_path / "README.md"
    readme.write_text(f"# Title\n{page.BEGIN}\n{page.END}\nrest\n")
    assert door.main(["table", "--steps", f"--runs={tmp_path / 'runs'}", f"--write={readme}"]) == 0
    assert "| PyTorch |" in readme.read_text()
    assert readme.read_text().startswith("# Title\n")
    assert readme.read_text().endswith("rest\n")


def test_tables_are_printed(run, tmp_path, capsys):
    store.save(run, tmp_path)
    assert door.main(["table", "--steps", f"--runs={tmp_path}"]) == 0
    assert "| PyTorch |" in capsys.readouterr().out


def test_an_error_is_one_sentence_and_status_two(tmp_path, capsys):
    assert door.main(["table", "--steps", f"--runs={tmp_path}"]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("stele: There are no Runs to show.")
    assert "Traceback" not in captured.err


def subcommands(parser, words=()):
    """The words of every command, and of every command below it."""
    yield list(words)
    for action in parser._actions:
        for status, below in action.choices.items() if isinstance(action, argparse._SubParsersAction) else ():
            yield from subcommands(below, (*words, status))


@pytest.mark.parametrize("words", list(subcommands(door.parser())), ids=" ".join)
def test_every_command_says_what_it_takes(words, capsys):
    with pytest.raises(SystemExit) as end:
        door.main([*words, "--help"])
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith(" ".join(["usage: stele", *words]))


def test_an_unknown_command_is_a_usage_error(capsys):
    with pytest.raises(SystemExit) as ending:
        door.main(["polish"])
    assert ending.value.code == 2


def test_rebasing_writes_what_the_oracle_answers_for_each_form(monkeypatch, tmp_path, capsys):
    """That it answers the committed numbers is seen in test_parity."""
    committed = {form: golden_numbers.load("gru", form) for form in (None, "one-bias")}
    monkeypatch.setattr(examination, "parity_answers", lambda live, task, form, phases: committed[form])
    monkeypatch.setattr(golden_numbers, "FOLDER", tmp_path / "parity")
    monkeypatch.chdir(tmp_path)
    assert door.main(["parity", "--rebase", "--task", "gru"]) == 0
    for form, numbers in committed.items():
        assert golden_numbers.load("gru", form, tmp_path / "parity") == numbers


def test_a_band_is_measured_over_seeds(row, monkeypatch, tmp_path, capsys):
    row("steady", seconds=[0.5, 0.1], accuracy=0.5)
    monkeypatch.setattr(accuracy, "FILE", tmp_path / "accuracy.json")
    assert door.main(["band", "--task=gru", "--scale=smoke", "--framework=steady", "--seeds=5"]) == 0
    [entry] = accuracy.read(tmp_path / "accuracy.json")["gru"]["smoke"].values()
    assert entry["accuracies"] == [0.5] * 5
    assert entry["source"].startswith("5 seeds of scripted 1.0")


def test_a_band_goes_on_after_the_seeds_that_were_measured(row, monkeypatch, tmp_path, capsys):
    row("steady", seconds=[0.5, 0.1], accuracy=0.5)
    monkeypatch.setattr(accuracy, "FILE", tmp_path / "accuracy.json")
    asked = ["band", "--task=gru", "--scale=smoke", "--framework=steady", "--seeds=5"]
    assert door.main(asked) == 0
    content = json.loads((tmp_path / "accuracy.json").read_text())["bands"]
    [entry] = content["gru"]["smoke"].values()
    entry["accuracies"] = [0.25, 0.25, 0.25]
    (tmp_path / "accuracy.json").write_text(json.dumps(content))
    assert door.main(asked) == 0
    [entry] = accuracy.read(tmp_path / "accuracy.json")["gru"]["smoke"].values()
    assert entry["accuracies"] == [0.25, 0.25, 0.25, 0.5, 0.5]

    entry.update(accuracies=[0.25], source="1 seeds of scripted 0.9")
    content["gru"]["smoke"] = dict.fromkeys(content["gru"]["smoke"], entry)
    (tmp_path / "accuracy.json").write_text(json.dumps(content))
    assert door.main(asked) == 2
    assert "begun with 1 seeds of scripted 0.9, this is scripted 1.0" in capsys.readouterr().err


def test_a_recipe_climbs_the_ladder(row, tmp_path, capsys):
    row("steady", numbers=well("gru"))
    (tmp_path / "page.md").write_text(f"{page.BEGIN}\n{page.END}\n")
    options = [f"--json={tmp_path / 'rungs.json'}", f"--write={tmp_path / 'page.md'}"]
    assert door.main(["parity", "--framework=steady", "--task=gru", *options]) == 0
    assert capsys.readouterr().out == "steady  gru  rung 9  all hold\n"
    content = json.loads((tmp_path / "rungs.json").read_text())
    [recipe] = content["recipes"]
    assert [(rung["rung"], rung["status"]) for rung in recipe["rungs"]] == [
        (n, "agrees") for n in range(1, 10)
    ]
    shown = (tmp_path / "page.md").read_text()
    assert f"| Steady | scripted 1.0 | {date.today()} | exact |" in shown

    (tmp_path / "page.md").write_text(f"{page.BEGIN}\n{page.END}\n")
    merged = ["parity", f"--write={tmp_path / 'page.md'}", "--merge", str(tmp_path / "rungs.json")]
    assert door.main(merged) == 0
    assert (tmp_path / "page.md").read_text() == shown
    content["settings"]["seed"] = 1
    (tmp_path / "other.json").write_text(json.dumps(content))
    assert door.main([*merged, str(tmp_path / "other.json")]) == 2
    assert "under different settings" in capsys.readouterr().err
    assert door.main([*merged, str(tmp_path / "page.md")]) == 2
    assert "page.md is not what --json wrote" in capsys.readouterr().err


def test_a_recipe_that_breaks_ends_with_one_and_says_where_and_why(row, capsys):
    row("wrong", numbers={**well("cnn"), "logits": [[0.0] * 10] * 16})
    assert door.main(["parity", "--framework=wrong", "--task=cnn"]) == 1
    assert (
        "wrong  cnn  rung 2  broken at rung 3, logits: the error of the logits is 1"
        in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    "later, release, left",
    [
        ([Finding(9, "agrees")], "2.13.0", [(9, "agrees"), (10, "agrees")]),
        ([Finding(9, "agrees")], "2.14.0", [(9, "agrees")]),
        ([Finding(9, "agrees"), Finding(10, "differs")], "2.13.0", [(9, "agrees"), (10, "differs")]),
        ([Finding(1, "differs")], "2.13.0", [(1, "differs")]),
    ],
)
def test_what_is_climbed_anew_keeps_its_accuracy(later, release, left, tmp_path):
    """Unless it breaks, has another, or is of another release."""
    files = [tmp_path / name for name in ("earlier.json", "later.json", "merged.json")]
    earlier = [Finding(9, "agrees"), Finding(10, "agrees", "5 seeds average 30.08%")]
    ascents = (
        LadderResult(earlier, {"torch": "2.13.0"}, "2026-11-21"),
        LadderResult(later, {"torch": release}, "2026-11-22"),
    )
    for path, result in zip(files, ascents, strict=False):
        found = {(environments.load("torch"), "gru"): result}
        path.write_text(json.dumps(climbs.facts(found, Settings(device="cpu"))))
    door.main(["parity", "--merge", str(files[0]), str(files[1]), f"--json={files[2]}"])
    [recipe] = json.loads(files[2].read_text())["recipes"]
    assert [(rung["rung"], rung["status"]) for rung in recipe["rungs"]] == left
    assert (recipe["versions"], recipe["day"]) == ({"torch": release}, "2026-11-22")


def test_a_worker_that_crashes_breaks_at_the_first_rung(row, capsys):
    row("broken", parity="segfault")
    assert door.main(["parity", "--framework=broken", "--task=gru"]) == 1
    assert (
        "broken  gru  rung 0  broken at rung 1, weights: Worker 'broken' crashed" in capsys.readouterr().out
    )


REFERENCE = [0.48, 0.49, 0.50, 0.51, 0.52, 0.50, 0.49, 0.51, 0.50, 0.50]


@pytest.mark.parametrize(
    "reached, seeds, ending",
    [(0.50, 5, "rung 10  all hold"), (0.45, 10, "broken at rung 10, accuracy: 10 seeds")],
)
def test_accuracies_are_trained_for_until_they_tell(
    row, monkeypatch, tmp_path, capsys, reached, seeds, ending
):
    row("steady", seconds=[0.5, 0.1], accuracy=reached, numbers=well("gru"))
    monkeypatch.setattr(accuracy, "entry", lambda *of: {"accuracies": REFERENCE, "source": "ten seeds"})
    options = ["--framework=steady", "--task=gru", "--seeds=5", "--scale=smoke"]
    assert door.main(["parity", *options]) == (0 if reached == 0.50 else 1)
    assert ending in capsys.readouterr().out
    runs = store.load_all(tmp_path / ".stele/parity")
    assert sorted(run.settings["seed"] for run in runs) == list(range(100, 100 + seeds))


def test_accuracies_are_looked_at_twice_and_not_in_between(row, monkeypatch):
    """Else the test would end as soon as chance is kind."""
    row("steady", seconds=[0.5, 0.1], accuracy=0.5, numbers=well("gru"))
    looked = []
    monkeypatch.setattr(accuracy, "entry", lambda *of: {"accuracies": REFERENCE, "source": "ten seeds"})
    monkeypatch.setattr(
        ladder, "accuracy", lambda values, _: looked.append(len(values)) or Finding(10, "differs", "no")
    )
    assert door.main(["parity", "--framework=steady", "--task=gru", "--seeds=5", "--scale=smoke"]) == 1
    assert looked == [5, 10]


@pytest.mark.parametrize(
    "reached, seeds, ending",
    [
        (0.85, 5, "rung 10  all hold"),
        (0.90, 10, "10 seeds average 90.00%, the published rows lie from 84.5% to 86.2%"),
    ],
)
def test_at_paper_scale_on_official_data_accuracies_lie_among_the_published(
    row, monkeypatch, tmp_path, capsys, reached, seeds, ending
):
    row("steady", seconds=[0.5, 0.1], accuracy=reached, numbers=well("gru"))
    official = {"data": None, "data_origin": {"origin": "official", "fingerprint": "0123456789abcdef"}}
    monkeypatch.setattr(measure, "inputs", lambda task: (official, None))
    options = ["--framework=steady", "--task=gru", "--seeds=5", "--scale=paper"]
    assert door.main(["parity", *options]) == (0 if reached == 0.85 else 1)
    assert ending in capsys.readouterr().out
    assert len(store.load_all(tmp_path / ".stele/parity")) == seeds


def test_four_seeds_are_refused_for_the_last_rung(capsys):
    assert door.main(["parity", "--seeds=4"]) == 2
    assert "--seeds 4: fewer than 5 seeds say nothing about an accuracy." in capsys.readouterr().err


def test_defaults_are_recorded_and_compared(row, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("stele.parity.defaults.FOLDER", tmp_path / "defaults")
    row("old", table={"epsilon": 1e-7, "GRU form": "reset before"}, release="2.3")
    row("new", table={"epsilon": 1e-7, "GRU form": "reset after"}, release="3.0")
    assert door.main(["defaults", "old"]) == 0
    assert "GRU form             reset before" in capsys.readouterr().out
    assert len(list((tmp_path / "defaults").iterdir())) == 1
    assert door.main(["defaults", "old", "new"]) == 0
    shown = capsys.readouterr().out
    assert "GRU form             reset before  →  reset after" in shown
    assert "epsilon" not in shown


def test_capabilities_are_a_page_and_a_wrong_one_ends_with_one(row, tmp_path, capsys):
    row("able", numbers=[12.0])
    (tmp_path / "page.md").write_text(f"{page.BEGIN}\n{page.END}\n")
    assert door.main(["capabilities", "--framework=able", f"--write={tmp_path / 'page.md'}"]) == 1
    assert "able  second-order gradient            yes" in capsys.readouterr().out
    assert "| Able | yes | **wrong** |" in (tmp_path / "page.md").read_text()


def test_a_band_over_four_seeds_is_refused(capsys):
    assert door.main(["band", "--task=cnn", "--scale=smoke", "--seeds=4"]) == 2
    assert "--seeds 4: a band needs at least 5." in capsys.readouterr().err
