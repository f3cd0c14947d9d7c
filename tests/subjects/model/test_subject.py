"""A model of the user as a subject: what every subject gives."""

from dataclasses import replace
from pathlib import Path

import pytest

from stele.environments import ORACLE, arms
from stele.errors import SteleError
from stele.measuring.content import Reads
from stele.subjects import Cell, Comparison, Model, Tasks
from stele.subjects.base import OLD as REFERENCE
from stele.subjects.model import comparison, inspection
from stele.subjects.model.inputs import Input
from stele.subjects.model.inspection import Inspection

CELLS = [Cell("net.py:build", "train"), Cell("net.py:build", "infer")]
ANSWER = Inspection("torch", (Input("x", "float", (2, 3)),), None, 64, True, "squared", "one input")


@pytest.fixture
def model(tmp_path):
    (tmp_path / "net.py").write_text("build = None\n")
    return Model("net.py:build", tmp_path)


def test_a_model_has_one_name_in_both_phases(model):
    assert model.cells() == tuple(CELLS)
    assert model.cells("infer") == (CELLS[1],)
    assert (model.parity_phase({"infer"}), model.parity_phase({"infer", "train"})) == ("infer", "all")


def test_a_model_runs_as_the_user_runs_it_and_its_reference_is_old(model):
    assert not model.needs.described and not model.tuned and model.reference == REFERENCE
    assert model.needs == arms.Needs() and Model("hf:bert", Path("/")).needs == arms.Needs(("transformers", "torch"))


def test_what_a_model_lacks_is_said_with_the_remedy(model):
    assert model.why_no_metric("time-to-target").startswith("needs a built-in task")
    assert model.why_no_metric("step") is None is Tasks().why_no_metric("time-to-target")
    assert model.one_device and Tasks().one_device is None


def test_the_files_of_a_model_are_its_own_and_those_that_it_has_read(model, tmp_path):
    read = model.with_reads(Reads((tmp_path / "layers.py",), variables=("SIZE",)))
    assert read.files(ORACLE) == [tmp_path / "layers.py", tmp_path / "net.py"]
    assert read.variables == ("SIZE",) and model.variables == ()
    assert any(path.name == "keras.json" for path in read.files(replace(ORACLE, framework="keras")))


def test_a_plan_has_the_request_of_the_model_and_its_files(model, tmp_path):
    plan = model.plan(CELLS[1], "quick")
    assert (plan.task, plan.phase, plan.scale) == ("net.py:build", "infer", "quick")
    assert plan.model == model.as_request() and plan.files == (tmp_path / "net.py",)


def test_a_name_that_the_file_lacks_is_found_before_anything_is_built(model):
    model.require()
    with pytest.raises(SteleError, match="has no 'missing'"):
        replace(model, spec="net.py:missing").require()


@pytest.fixture
def resolved(monkeypatch, model):
    monkeypatch.setattr(inspection, "inspect", lambda *_, **__: ANSWER)
    said = []
    in_old = model.resolve(ORACLE, CELLS, timeout=1.0, say=said.append)
    assert said == ["one input; loss: squared"]
    return in_old


def test_a_model_in_old_has_the_inputs_and_the_framework_that_the_worker_says(resolved):
    assert resolved.subject.inputs == ANSWER.inputs and resolved.subject.inspected
    assert resolved.old.framework == "torch"
    alone = resolved.alone(ORACLE)
    assert alone.new.framework == "torch" and alone.compared == Comparison()


def test_what_new_reads_belongs_to_the_model_from_then_on(monkeypatch, resolved):
    read = Reads((Path("/x/layers.py"),), variables=("SIZE",))
    monkeypatch.setattr(comparison, "ask_new", lambda *_, **__: (Comparison(("a",)), ANSWER._replace(reads=read)))
    both = resolved.compare(replace(ORACLE, name="new"))
    assert both.new.name == "new" and both.compared.differences == ("a",)
    assert both.subject.variables == both.reads.variables == ("SIZE",)
    assert Path("/x/layers.py") in both.subject.reads.files


def test_a_new_arm_that_fails_has_the_framework_of_old(monkeypatch, resolved):
    monkeypatch.setattr(comparison, "ask_new", lambda *_, **__: (Comparison(failure="no module"), None))
    both = resolved.compare(ORACLE)
    assert (both.new.framework, both.compared.failure) == ("torch", "no module")
    assert both.subject == resolved.subject
