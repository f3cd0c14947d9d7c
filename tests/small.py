"""The oracle's numbers on batches that are quickly computed, and what breaks against them.

ResNet-50 has an eighth of its width here, and reads small images; the GRU reads short reviews: what is planted into
them is the same.
"""

from contextlib import nullcontext
from functools import cache

import numpy
import pytest

from stele.parity import golden_numbers, ladder
from stele_worker import agreement, causes, frameworks, tasks

NUMPY = frameworks.load("numpy")
BATCH, STEPS, SHOWN = {"cnn": 2, "gru": 4, "resnet50": 1}, {"cnn": 3, "gru": 3, "resnet50": 1}, (1, 3)


RESNET50 = tasks.load("resnet50")
NARROW = tuple((count, width // 8, stride) for count, width, stride in RESNET50.STAGES)
CHANGES = {"resnet50": {"features": 4 * NARROW[-1][1]}}
PARTS = {"resnet50": (slice(None), slice(48), slice(48)), "gru": (slice(None), slice(-40, None))}
WHOLE = {name: tasks.load(name).example for name in PARTS}
seeded = tasks.weights


def cropped(name):
    """Examples of a task that are smaller: its network takes any size."""

    def example(batch, seed):
        x, y = WHOLE[name](batch, seed)
        return numpy.ascontiguousarray(x[PARTS[name]]), y

    return example


@cache
def weights(task):
    """The seeded ones, made once."""
    arrays = seeded(task)
    if task.name == "resnet50":
        arrays["fc.weight"] = arrays["fc.weight"][:, : task.features]
    return arrays


def computed(task, phase, *, cause=None, **changes):
    """What the oracle answers to ``parity`` of a real Task, with a known cause, or changed constants, in it."""
    subject = tasks.make(
        task, "paper", **{"seed": golden_numbers.SEEDS[task], **CHANGES.get(task, {}), **changes}
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RESNET50, "STAGES", NARROW)
        for name, value in (("BATCH", BATCH), ("STEPS", STEPS), ("SHOWN", SHOWN)):
            patch.setattr(agreement, name, value)
        for name in PARTS:
            patch.setattr(tasks.load(name), "example", cropped(name))
        patch.setattr(tasks, "weights", weights)
        patch.setattr(agreement, "fingerprint", lambda task, *arrays: repr(task))
        norms = {name: float(numpy.linalg.norm(array)) for name, array in weights(subject).items()}
        with causes.planted(task, cause) if cause else nullcontext():
            return {"norms": norms, **agreement.check(NUMPY, subject, phase)}


@cache
def variant(task, phase, cause):
    """What it answers with a known cause in it."""
    return computed(task, phase, cause=cause)


@cache
def golden(task, phase):
    """What it answers with nothing in it: to be asked for before anything is planted by other means."""
    return computed(task, phase)


def climbed(task, phase, numbers):
    return ladder.compare(numbers, golden(task, phase), task=task, precision="fp32")


def differing(task, phase, numbers):
    """The titles of the rungs that break."""
    return {finding.title for finding in climbed(task, phase, numbers) if finding.status == "differs"}
