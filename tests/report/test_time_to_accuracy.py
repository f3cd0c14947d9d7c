"""The report of trainings to an accuracy."""

import json
from pathlib import Path

import pytest

from stele import __main__ as entry_point
from stele.measuring import content, store
from stele.report import page
from stele_suite import tasks
from tests.support.trainings import FOLDER, printed, results


def test_the_table_of_steps_has_no_epochs(measure_seeds, capsys):
    assert measure_seeds() == 0
    assert entry_point.main(["table", "--steps", f"--runs={FOLDER}"]) == 2
    assert "There are no Runs to show" in capsys.readouterr().err


@pytest.mark.slow
def test_runs_of_different_divisions_are_never_pooled_and_both_reports_name_the_division(
    measure_seeds, monkeypatch, capsys
):
    monkeypatch.setattr(tasks, "why_closed", lambda name, framework: None)
    monkeypatch.setattr(content, "of_environment", lambda *_, **__: {})  # whose script changes
    assert measure_seeds("--division=open", accuracies=[0.1, 0.11, 0.12], count=3) == 2  # saved, and unfinished
    for path in (FOLDER / store.UNFINISHED).glob("*.json"):
        assert json.loads(path.read_text())["run"]["options"]["division"] == "open"
    result, status = results(measure_seeds)
    assert status == 0 and result["division"] == "closed" and result["accuracies"][0] == 0.61
    capsys.readouterr()
    result, _ = results(measure_seeds, "--division=open", "--markdown=out.md", "--target=5%", count=3)
    assert result["division"] == "open" and result["accuracies"] == [0.1, 0.11, 0.12]
    assert "open division" in printed(capsys)
    assert "**cnn**, scale quick, open division, target 5.0%" in Path("out.md").read_text()


@pytest.mark.slow
def test_the_markdown_table_names_the_target_and_the_data(measure_seeds):
    assert measure_seeds("--markdown=out.md") == 0
    text = Path("out.md").read_text()
    assert "**cnn**, scale quick, closed division, target 60.0%, 3 epochs" in text and "Data: official." in text
    Path("page.md").write_text(f"{page.BEGIN}\nNot measured yet.\n{page.END}\n")
    assert measure_seeds("--write=page.md") == 0
    assert "3 epochs" in Path("page.md").read_text() and "Not measured" not in Path("page.md").read_text()


def test_a_page_may_have_a_part_for_each_task_and_scale(measure_seeds):
    own = page.BEGIN.replace(page.BY, "stele, cnn quick")
    Path("page.md").write_text(f"{page.BEGIN}\nAnother.\n{page.END}\n{own}\nNot measured yet.\n{page.END}\n")
    assert measure_seeds("--write=page.md") == 0
    before, after = Path("page.md").read_text().split(own)
    assert "Another." in before and "3 epochs" in after and "Not measured" not in after
