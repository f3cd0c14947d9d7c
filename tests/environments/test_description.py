"""Descriptions of environments, and what is wrong in one."""

import json
from pathlib import Path

import pytest

from stele import environments
from stele.environments import description
from stele.errors import SteleError
from stele_worker import frameworks


@pytest.mark.parametrize("facts", [{"label": "Toy\x1b[31m"}, {"label": "two\nlines"}])
def test_a_description_with_control_characters_is_refused(tmp_path, facts):
    path = tmp_path / "toy.toml"
    path.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in facts.items()) + 'framework = "a"\n')
    with pytest.raises(SteleError, match=r"toy\.toml .*label .*control characters"):
        description.read(path)


def test_a_description_whose_file_name_has_control_characters_is_refused(tmp_path):
    path = tmp_path / "toy\x1b[31m.toml"
    path.write_text('label = "Toy"\nframework = "a"\n')
    with pytest.raises(SteleError, match="name .*control characters"):
        description.read(path)


@pytest.mark.parametrize("name", environments.names())
def test_every_description_is_complete(name):
    environment = environments.load(name)
    assert environment.label and environment.framework
    assert all(
        reason
        for reason in [
            *environment.requirements.values(),
            *environment.support.absent.values(),
            *environment.programs.values(),
        ]
    )


def test_an_invalid_description_is_an_error_with_its_path_and_the_cause(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('label = "Mine"\nframwork = "typo"')
    with pytest.raises(SteleError, match=r"mine\.toml does not describe an environment: .*framwork"):
        description.read(path)


def test_each_mode_after_the_first_is_an_environment(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'label = "Mine"\nframework = "mine"\ndevices = ["cpu", "cuda"]\n[modes.eager]\nlabel = "eager"\n'
        '[modes.graph]\nlabel = "compiled"\nreason = "faster"\ndevices = ["cuda"]\nphases = ["infer"]\n'
        'variables = { A = "1" }\nprograms = { cc = "install it" }\nvaries = "no seed"\n'
    )
    eager, graph = description.read(path)
    assert (eager.name, eager.label, eager.mode, eager.base) == ("mine", "Mine", "eager", None)
    assert (graph.name, graph.label, graph.mode, graph.base) == (
        "mine-graph",
        "Mine, compiled",
        "graph",
        "mine",
    )
    assert (graph.support.devices, graph.variables, graph.programs) == (("cuda",), {"A": "1"}, {"cc": "install it"})
    assert (eager.varies, graph.varies) == (None, "no seed")
    where = {"device": "cuda", "precision": "fp32"}
    assert graph.why_absent("gru", "train", **where) == "Mine, compiled has infer only: faster"
    assert graph.why_absent("gru", "infer", **where) is None


def test_an_environment_without_modes_may_have_one_phase(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('label = "Mine"\nframework = "mine"\nphases = ["infer"]')
    [mine] = description.read(path)
    assert mine.why_absent("gru", "train", device="cpu", precision="fp32") == "Mine has infer only"


@pytest.mark.parametrize("mode", ["label = 3", 'reason = "no label"', 'label = "x"\nspeed = 3'])
def test_a_mode_that_is_not_one_is_refused(tmp_path, mode):
    path = tmp_path / "mine.toml"
    path.write_text(f'label = "Mine"\nframework = "mine"\n[modes.eager]\n{mode}\n')
    with pytest.raises(SteleError, match=r"does not describe an environment: modes.*eager"):
        description.read(path)


@pytest.mark.parametrize("name", sorted(set(environments.names()) - set(environments.first_modes())))
def test_every_mode_of_a_python_framework_is_one_that_its_module_knows(name):
    environment = environments.load(name)
    source = (Path(frameworks.__file__).parent / environment.framework / "framework.py").read_text()
    assert f'"{environment.mode}"' in source
    assert environment.modes[environment.mode]["reason"]
