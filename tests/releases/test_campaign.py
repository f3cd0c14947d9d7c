"""What is measured of releases, what is saved, and what is measured again."""

import dataclasses
import json
import time
from pathlib import Path

import pytest

from stele.environments.arms import Extras
from stele.errors import SteleError
from stele.measuring import content, measure
from stele.measuring.content import Reads
from stele.measuring.measure import SideFailed
from stele.measuring.run import Origin
from stele.measuring.settings import Settings
from stele.measuring.worker import WorkerError
from stele.releases import campaign, frameworks, history, ledger, measuring
from stele.subjects import Cell
from stele.subjects.model.inputs import Input
from stele.subjects.model.spec import Model
from tests.support.histories import CELL, TAGS, request
from tests.support.runs import changed


def steps():
    return {tag: (history.numbers(tag, history.current_place()) or {}).get("step", {}).get(CELL) for tag in TAGS}


@pytest.mark.slow
def test_releases_are_measured_together_and_only_once(machine):
    timed = machine(dict(zip(TAGS, [1.0, 1.0, 1.1, 1.1], strict=True)))
    assert campaign.measure_releases(TAGS, request())
    assert timed == [TAGS] * 3
    assert steps() == pytest.approx(dict(zip(TAGS, [0.01, 0.01, 0.011, 0.011], strict=True)), rel=1e-6)
    assert campaign.measure_releases(TAGS, request())
    assert len(timed) == 3


OTHER_DATA = {"data": None, "data_origin": Origin(origin="official", fingerprint="1")}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda patch: patch.setattr(content, "of_package", lambda package: "0"), "Stele itself changed"),
        (
            lambda patch: patch.setattr(measure, "inputs", lambda task: (OTHER_DATA, None)),
            "the data of gru was",
        ),
        (lambda patch: None, "threads was 1 and is now 2"),
    ],
    ids=["code", "data", "options"],
)
def test_numbers_of_another_content_are_measured_again_and_are_no_anchor(machine, monkeypatch, change, message):
    timed, said = machine(dict.fromkeys(TAGS, 1.0)), []
    campaign.measure_releases(TAGS[:3], request())
    before = {tag: history.numbers(tag, history.current_place()) for tag in TAGS}
    change(monkeypatch)
    del timed[:]
    threads = 2 if message.startswith("threads") else 1
    again = request(say=said.append, settings=Settings(device="cpu", threads=threads))
    assert campaign.measure_releases(TAGS[1:], again)
    assert timed == [TAGS[1:]] * 3  # and not the oldest, whose number is of another content
    [line] = [line for line in said if line.startswith(f"{TAGS[1]}, gru infer: measured again, because ")]
    assert message in line
    new = [tag for tag in TAGS if history.has_more(history.numbers(tag, history.current_place()), before[tag])]
    assert new == TAGS[3:]
    assert campaign.measure_releases(TAGS[1:], again) and len(timed) == 3


@pytest.mark.slow
@pytest.mark.parametrize("damage", [None, [], {CELL: 3}, {CELL: {"code": "x"}}])
def test_a_number_whose_content_is_unknown_is_measured_again(machine, damage):
    timed = machine(dict.fromkeys(TAGS, 1.0))
    campaign.measure_releases(TAGS, request())
    for tag in TAGS:
        path = history.file(tag, history.current_place())
        path.write_text(json.dumps({**json.loads(path.read_text()), history.CONTENTS: damage}))
    assert campaign.measure_releases(TAGS, request()) and len(timed) == 6
    assert campaign.measure_releases(TAGS, request()) and len(timed) == 6


@pytest.mark.parametrize(
    "change",
    [
        {"inputs": (Input(None, "float", (1024, 8), None),)},
        {"optimizer": "optim:Own"},
        {"pretrained": Path("w.safetensors")},
        {"reads": Reads((Path("w.safetensors"),))},
        {"reads": Reads(variables=("HIDDEN",))},
        {"extras": Extras(requirements=("flax",))},
        {"metric": "error"},
        {"variable": "1"},
        {"description": "other"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_number_belongs_to_all_that_decides_it(abacus, monkeypatch, change):
    """``stele releases run --model`` with other options measures again."""
    monkeypatch.setenv("HIDDEN", "8")
    Path("w.safetensors").write_text("")
    release = frameworks.release_environment(TAGS[0], ledger.content(TAGS[0]))
    model, cell = Model("net.py:build", Path.cwd()), Cell("net.py:build", "train")

    def found(*, metric="step", extras=Extras(), variable="0", description="x", **changes):  # noqa: B008
        monkeypatch.setenv("XLA_FLAGS", variable)
        one = request(subject=dataclasses.replace(model, **changes), extras=extras, error="smoke")
        arm = dataclasses.replace(release, framework=description)
        return campaign.content_of(arm, cell, metric, one)

    assert content.changes(found(), found()) is None
    assert content.changes(found(), found(**change)) is not None


def test_the_error_of_another_scale_is_trained_again(machine, monkeypatch):
    trained = []
    monkeypatch.setattr(campaign, "has_cell", lambda *_: True)
    monkeypatch.setattr(measuring, "measure_error", lambda *_, scale, **__: trained.append(scale))
    release = frameworks.release_environment(TAGS[0], ledger.content(TAGS[0]))
    for scale in ("smoke", "smoke", "quick", "quick"):
        assert campaign.measure_errors([release], request(error=scale), history.current_place())
    assert trained == ["smoke", "quick"]


@pytest.mark.parametrize("name", ["XLA_FLAGS", "KERAS_BACKEND"])
def test_nothing_is_saved_if_something_changes_between_two_launches(machine, monkeypatch, name):
    machine(dict.fromkeys(TAGS, 1.0))
    side_by_side = measure.side_by_side

    def changing(*given, **named):
        monkeypatch.setenv(name, str(time.monotonic()))
        return side_by_side(*given, **named)

    monkeypatch.setattr(measure, "side_by_side", changing)
    with pytest.raises(SteleError, match=f"changed during the measurement: {name} was"):
        campaign.measure_releases(TAGS, request())
    assert set(steps().values()) == {None}


def test_launches_of_a_release_with_different_contents_are_not_pooled(machine, monkeypatch):
    machine(dict.fromkeys(TAGS, 1.0))
    side_by_side = measure.side_by_side

    def changing(*given, **named):
        runs = side_by_side(*given, **named)
        return {side: changed(run, content={"code": str(time.monotonic())}) for side, run in runs.items()}

    monkeypatch.setattr(measure, "side_by_side", changing)
    with pytest.raises(SteleError, match=r"The launches of abacus-1.\d cannot be compared, because Stele itself"):
        campaign.measure_releases(TAGS, request())


def test_memory_is_measured_with_an_allocator_that_returns_what_is_freed(machine, run):
    machine(dict.fromkeys(TAGS, 1.0))
    campaign.measure_releases(TAGS, request(settings=Settings(device="cpu", threads=1, malloc="steady")))
    numbers = history.numbers(TAGS[0], history.current_place())
    assert numbers["host_memory"][CELL] == run.memory.host


def test_a_line_stays_continuous_when_the_machine_becomes_slower(machine):
    machine(dict.fromkeys(TAGS, 1.0))
    campaign.measure_releases(TAGS[:2], request())
    timed = machine({**dict.fromkeys(TAGS, 1.0), TAGS[3]: 1.05}, speed=1.5)
    del timed[:]
    campaign.measure_releases(TAGS, request())
    assert timed == [[TAGS[0], *TAGS[2:]]] * 3  # the oldest is the anchor
    assert steps() == pytest.approx(dict(zip(TAGS, [0.01, 0.01, 0.01, 0.0105], strict=True)), rel=1e-6)


def test_all_numbers_stay_continuous_when_the_machine_becomes_slower(machine):
    machine(dict.fromkeys(TAGS, 1.0))
    campaign.measure_releases(TAGS[:2], request())
    machine(dict.fromkeys(TAGS, 1.0), speed=1.5)  # all first steps take 1.5 times as long
    campaign.measure_releases(TAGS, request())
    first_steps = [history.numbers(tag, history.current_place())["first_step"] for tag in TAGS]
    assert first_steps == [first_steps[0]] * 4


def test_a_release_that_fails_does_not_affect_the_others(machine):
    timed = machine(dict.fromkeys(TAGS[:1] + TAGS[2:], 1.0))
    campaign.measure_releases(TAGS, request())
    assert [tag for tag, value in steps().items() if value is None] == [TAGS[1]]
    assert history.recorded_cells(TAGS[1], history.current_place(), "step") == {CELL}
    count = len(timed)
    campaign.measure_releases(TAGS, request())
    assert len(timed) == count  # the failed release is not tried again


def test_a_release_whose_first_cell_failed_is_measured_in_the_other_cells(abacus):
    """A campaign may stop between two cells."""
    cells = (Cell("gru", "infer"), Cell("resnet50", "infer"))
    place, release = history.current_place(), frameworks.release_environment(TAGS[0], ledger.content(TAGS[0]))
    found = {f"{cell} tuned": campaign.content_of(release, cell, "step", request(cells=cells)) for cell in cells}
    failed = {"step": {"gru infer tuned": None}, "error": {"gru infer tuned": None}}
    history.save(TAGS[0], place, failed, contents=found)
    assert not campaign.is_complete(TAGS[0], place, request(cells=cells))
    history.save(TAGS[0], place, {"step": {"resnet50 infer tuned": 0.1}})
    assert campaign.is_complete(TAGS[0], place, request(cells=cells))


def test_a_release_that_cannot_be_built_is_complete(abacus):
    place = history.current_place()
    history.save(TAGS[0], place, {}, failure="no solution")
    assert campaign.is_complete(TAGS[0], place, request())


def test_a_training_that_fails_is_saved(machine, monkeypatch):
    def crash(release, cell, settings, scale, subject):
        attempts.append(release.name)
        raise SideFailed(release.name, WorkerError("it crashed"))

    attempts = []
    monkeypatch.setattr(campaign, "has_cell", lambda *_: True)
    monkeypatch.setattr(measuring, "measure_error", crash)
    release = frameworks.release_environment(TAGS[0], ledger.content(TAGS[0]))
    for _ in range(2):
        assert campaign.measure_errors([release], request(error="quick"), history.current_place())
    assert attempts == [TAGS[0]]


def test_a_release_that_cannot_be_built_is_saved_as_a_failure(machine, monkeypatch):
    def make(environment):
        if environment.name == TAGS[0]:
            raise campaign.Unsolvable("no solution")
        return True

    machine(dict.fromkeys(TAGS, 1.0))
    monkeypatch.setattr(campaign.builds, "make", make)
    assert campaign.measure_releases(TAGS, request())
    metrics = history.numbers(TAGS[1], history.current_place())
    assert history.numbers(TAGS[0], history.current_place()) == {metric: {} for metric in metrics}


def test_a_release_that_could_not_be_built_for_now_is_tried_again(machine, monkeypatch):
    def make(environment):
        raise campaign.SteleError("the package index did not answer")

    timed = machine(dict.fromkeys(TAGS, 1.0))
    with monkeypatch.context() as patch:
        patch.setattr(campaign.builds, "make", make)
        campaign.measure_releases(TAGS, request())
    campaign.measure_releases(TAGS, request())
    assert timed == [TAGS] * 3


def test_nothing_is_measured_after_the_deadline(machine):
    timed = machine(dict.fromkeys(TAGS, 1.0))
    assert not campaign.measure_releases(TAGS, request(deadline=0.0))
    assert timed == []


def test_the_error_is_measured_only_with_the_first_mode():
    no_release = [None]  # whose use would be an exception
    assert campaign.measure_errors(no_release, request(modes=("slow",), error="smoke"), None)


def test_a_different_machine_starts_a_new_line(machine, monkeypatch):
    machine(dict.fromkeys(TAGS, 1.0))
    campaign.measure_releases(TAGS, request())
    monkeypatch.setattr("stele.measuring.machine.processor", lambda: "Abacus 3000")
    assert set(steps().values()) == {None}
