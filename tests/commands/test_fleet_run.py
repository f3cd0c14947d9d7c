"""``stele fleet run``: what identifies a command, so that an equal one continues it."""

import dataclasses

import pytest

from stele.commands import fleet_run
from stele.environments import ORACLE, packages
from stele.fleet import node
from stele.fleet.work import NodeLacks
from stele.measuring import content, measure
from stele.measuring.run import Origin
from tests.support.command_lines import parse
from tests.support.gates import INPUTS


@pytest.fixture
def fleet(add_environment, monkeypatch):
    """fleet() -> what identifies ``stele fleet run``: an equal command continues it."""
    monkeypatch.setattr(measure, "inputs", lambda task: (INPUTS, None))
    chosen = parse("fleet", "run", "--framework=fake", "--task=gru", "--phase=infer", "--threads=1")

    def fleet(**script):
        add_environment("fake", **script)
        return fleet_run.request_from(chosen)

    return fleet


def test_a_campaign_of_a_fleet_is_continued_only_with_the_same_content(fleet, monkeypatch):
    assert fleet() == (before := fleet())
    assert fleet(seconds=[1.0]) != before  # another description
    other = {**INPUTS, "data_origin": Origin(origin="official", fingerprint="1")}
    monkeypatch.setattr(measure, "inputs", lambda task: (other, None))
    assert fleet() != before


def test_a_campaign_belongs_to_the_variables_of_the_user_and_not_to_the_device_that_it_gives(fleet, monkeypatch):
    before = fleet()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert fleet() == before
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_use_thunk_runtime=false")
    assert fleet() != before


@pytest.mark.parametrize("change", ["variable", "description"])
def test_a_node_with_another_content_answers_that_it_lacks_it(fleet, monkeypatch, change):
    [work] = fleet_run.works_of(fleet(), 1.0)
    if change == "variable":
        monkeypatch.setenv("XLA_FLAGS", "1")
    else:
        fleet(seconds=[1.0])
    message = "XLA_FLAGS was absent and is now 1" if change == "variable" else "the description of fake changed"
    with pytest.raises(NodeLacks, match=f"something else than the command's machine: {message} here"):
        node.measure_cell(work.request)


def test_a_campaign_belongs_to_the_packages_of_this_interpreter(monkeypatch):
    before = content.of_description(ORACLE)
    assert content.of_description(ORACLE) == before
    monkeypatch.setattr(packages, "installed", lambda one: packages.Listing("3.11.7", {}, ()))
    assert content.of_description(ORACLE) != before


def test_a_campaign_belongs_to_the_lock_file_of_an_environment(tmp_path):
    lock = tmp_path / "abacus.lock"
    lock.write_text("abacus==1")
    environment = dataclasses.replace(ORACLE, python="==3.11.*", lock=lock)
    before = content.of_description(environment)
    lock.write_text("abacus==2.0")
    assert content.of_description(environment) != before
