"""The built-in tasks as a subject."""

import pytest

from stele.environments import ORACLE, arms
from stele.measuring.run import Options
from stele.subjects import Cell, Tasks, of_header
from stele.subjects.base import GOLDEN_NUMBERS


def test_the_cells_are_those_of_the_selected_tasks_in_one_phase_or_in_both():
    selected = Tasks(("cnn", "gru"))
    assert selected.cells("infer") == (Cell("cnn", "infer"), Cell("gru", "infer"))
    assert selected.cells()[:2] == (Cell("cnn", "train"), Cell("cnn", "infer"))


def test_tasks_need_an_environment_that_is_described_and_their_reference_is_a_part_of_stele():
    assert Tasks().needs == arms.TASKS and Tasks().tuned
    assert Tasks().reference == GOLDEN_NUMBERS and Tasks().as_request() is None


@pytest.mark.parametrize("scale", ["smoke", "gate"])
def test_a_plan_has_the_cell_the_scale_and_the_origin_of_the_data(scale):
    plan = Tasks(("chain",)).plan(Cell("chain", "infer"), scale, Options(steps=3, limit=2.0))
    assert (plan.task, plan.phase, plan.scale) == ("chain", "infer", scale)
    assert plan.options == Options(steps=3, limit=2.0) and plan.data_origin.origin
    assert plan.model is None


def test_the_data_of_each_task_has_its_origin():
    assert set(Tasks().data(["chain"])) == {"the data of chain"}


def test_synthetic_data_is_announced_once_for_each_task(monkeypatch):
    notices = {"cnn": "The images are synthetic.", "chain": None}
    monkeypatch.setattr("stele.measuring.measure.inputs", lambda name: ({}, notices[name]))
    said = []
    cells = [Cell("cnn", "train"), Cell("cnn", "infer"), Cell("chain", "infer")]
    subject = Tasks(("cnn", "chain"))
    in_old = subject.resolve(ORACLE, cells, timeout=1.0, say=said.append)
    assert said == ["stele: The images are synthetic."]
    assert in_old.compare(ORACLE).subject == subject and not in_old.compare(ORACLE).compared.differences


def test_the_header_of_a_record_names_its_tasks_or_its_model(tmp_path):
    cells = [["cnn", "train"], ["cnn", "infer"], ["gru", "train"]]
    assert of_header({"cells": cells}) == Tasks(("cnn", "gru"))
    model = of_header(
        {"cells": [["net.py:build", "train"]], "model": {"spec": "net.py:build", "folder": str(tmp_path)}}
    )
    assert model.names == ("net.py:build",) and model.words == ["--model", "net.py:build"]
