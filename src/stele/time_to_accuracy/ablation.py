"""Add the tricks of a Task one after the other: what does each change in speed and in accuracy?

A trick makes training faster, or lets it reach the target in fewer epochs. So each is measured twice: with the epochs
of the step before, which shows its effect on the accuracy, and with its own, which shows its effect on the time.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from stele.environments import Environment
from stele.measuring.run import Run
from stele.time_to_accuracy.seeds import Training
from stele.time_to_accuracy.summary import Summary
from stele_suite import tasks

# seconds on one V100 for the baseline and after each trick, as published: "How to train your ResNet", David Page, 2019,
# with the accuracy that its author gives. The article adds "ema" and "schedule" in one step, so "ema" has no number
PUBLISHED_SECONDS = {
    tasks.BASELINE: 75.0,
    "device-augmentation": 70.0,
    "pool-first": 64.0,
    "label-smoothing": 59.0,
    "celu": 52.0,
    "ghost-norm": 46.0,
    "frozen-scale": 43.0,
    "whitening": 36.0,
    "schedule": 34.0,
    "flip": 26.0,
}
PUBLISHED_ACCURACY = 0.941


class TrickStep(NamedTuple):
    """A trick that is added to those before it. ``before`` is the number of epochs before it, None for the baseline."""

    trick: str
    tricks: tuple[str, ...]  # all that are on
    before: int | None
    epochs: int
    absent: str | None  # why the framework does not have it; then it is left out of all following steps


class Effect(NamedTuple):
    """What was measured of a step; None if the framework does not have the trick, or for the baseline's ``old``."""

    step: TrickStep
    old: Summary | None  # with the epochs of the step before
    new: Summary | None  # with its own epochs


def steps(task: str, scale: str, framework: str) -> Iterator[TrickStep]:
    """Yield the steps of a Task at a scale in their order."""
    on: tuple[str, ...] = ()
    before = None
    for trick, epochs in tasks.tricks(task, scale).items():
        absent = tasks.why_without(task, framework, trick)
        if trick != tasks.BASELINE and absent is None:
            on = (*on, trick)
        yield TrickStep(trick, on, before, epochs, absent)
        before = epochs


def trainings(step: TrickStep, training: Training) -> dict[str, Training]:
    """Return what a step trains: "old" with the epochs before it, "new" with its own. The two may be the same."""
    if step.absent is not None:
        return {}
    epochs = {"old": step.before, "new": step.epochs}
    return {
        name: replace(training, tricks=step.tricks, epochs=count) for name, count in epochs.items() if count is not None
    }


def all_trainings(environment: Environment, training: Training) -> list[Training]:
    """Return what the steps train in a framework, each once, in the order in which it is measured."""
    of_steps = steps(training.task, training.scale, environment.framework)
    return list(dict.fromkeys(trained for step in of_steps for trained in trainings(step, training).values()))


def effects(environment: Environment, training: Training, summary_of: Mapping[Training, Summary]) -> list[Effect]:
    """Return the Effect of each step of a framework from the Summaries of ``all_trainings``."""
    results = []
    for step in steps(training.task, training.scale, environment.framework):
        summaries = {name: summary_of[trained] for name, trained in trainings(step, training).items()}
        results.append(Effect(step, summaries.get("old"), summaries.get("new")))
    return results


def runs_of(effects: Sequence[Effect]) -> list[Run]:
    return [run for effect in effects if effect.new is not None for run in effect.new.runs]
