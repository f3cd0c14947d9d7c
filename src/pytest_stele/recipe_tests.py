"""The tests of a recipe file. ``collect`` makes an item of each of them for each environment."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pytest

from pytest_stele.replay import clock

if TYPE_CHECKING:
    from pytest_stele.collect import Recipe
    from pytest_stele.fixtures import Inspect
    from pytest_stele.session import Session
    from stele.environments import Environment
    from stele.measuring.run import Run
    from stele.measuring.settings import Settings
    from stele.subjects import Subject

Measure = Callable[[str], list["Run"]]
Record = Callable[[Sequence["Run"]], None]


@pytest.mark.benchmark(timer=clock)
def train(
    stele_measure: Measure,
    stele_assert_parity: Callable[[str], None],
    stele_assert_accuracy: Record,
    stele_record: Record,
    stele_assert_baseline: Record,
) -> None:
    """Time the steps of training. Losses have to be finite, and weights have to read back as loaded."""
    runs = stele_measure("train")
    stele_assert_parity("train")
    stele_assert_accuracy(runs)
    stele_record(runs)
    stele_assert_baseline(runs)


@pytest.mark.benchmark(timer=clock)
def infer(
    stele_measure: Measure,
    stele_assert_parity: Callable[[str], None],
    stele_record: Record,
    stele_assert_baseline: Record,
) -> None:
    """Time the steps of inference. Two calls have to agree."""
    runs = stele_measure("infer")
    stele_assert_parity("infer")
    stele_record(runs)
    stele_assert_baseline(runs)


def parity(
    stele_environment: "Environment",
    stele_subject: "Subject",
    stele_task: str,
    stele_session: "Session",
    stele_settings: "Settings",
    stele_inspect: "Inspect",
    stele_reference: "Recipe | None",
) -> None:
    """Compare the recipe with that of the first framework; the first one, or one without weights, with itself."""
    from stele.errors import SteleError
    from stele.parity import ladder, recipes

    arm = recipes.Arm(*stele_inspect(stele_environment, stele_subject))
    options = {"timeout": stele_session.worker_timeout}
    findings = recipes.alone(arm, stele_settings, **options)
    doubt = None
    if stele_reference is not None:
        other = recipes.Arm(*stele_inspect(stele_reference.environment, stele_reference.subject))
        compared, doubt = recipes.against(arm, other, stele_settings, **options)
        findings = sorted([*findings, *compared], key=lambda finding: finding.rung)
    first = ladder.first_difference(findings)
    if first is not None:
        raise SteleError(f"{arm.environment.name} {stele_task}: {ladder.message(first)}")
    if doubt is not None:
        pytest.skip(doubt)


TESTS = (train, infer, parity)
