"""The oracle on small batches, with known causes of differences.

ResNet-50 has an eighth of its width here and reads small images; the GRU reads short reviews. The causes have the same
effect as on the full size.
"""

from contextlib import nullcontext
from functools import cache

import numpy
import pytest

from stele.parity import golden_numbers, ladder
from stele_worker import agreement, causes, frameworks, recipes, tasks
from stele_worker.subjects import TaskSubject

NUMPY = frameworks.load("numpy")
BATCH, STEPS, UPDATE_STEPS = {"cnn": 2, "gru": 4, "resnet50": 1}, {"cnn": 3, "gru": 3, "resnet50": 1}, (1, 3)


RESNET50 = tasks.load("resnet50")
NARROW = tuple((count, width // 8, stride) for count, width, stride in RESNET50.STAGES)
CHANGES = {"resnet50": {"features": 4 * NARROW[-1][1]}}
PARTS = {"resnet50": (slice(None), slice(48), slice(48)), "gru": (slice(None), slice(-40, None))}
FULL = {name: tasks.load(name).example for name in PARTS}
seeded_weights = tasks.weights


def cropped(name):
    """Return a function that makes smaller examples of a task; its network accepts any size."""

    def example(batch, seed):
        x, y = FULL[name](batch, seed)
        return numpy.ascontiguousarray(x[PARTS[name]]), y

    return example


@cache
def weights(task):
    """Return the seeded weights, computed once."""
    arrays = seeded_weights(task)
    if task.name == "resnet50":
        arrays["fc.weight"] = arrays["fc.weight"][:, : task.features]
    return arrays


def compute(task, phase, *, cause=None, **changes):
    """Return the oracle's answer to ``parity`` for a real Task, with a known cause or with changed constants."""
    subject = tasks.make(
        task, "paper", **{"seed": golden_numbers.SEEDS[task], **CHANGES.get(task, {}), **changes}
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RESNET50, "STAGES", NARROW)
        patch.setattr(agreement, "UPDATE_STEPS", UPDATE_STEPS)
        patch.setattr(tasks.load(task), "PARITY_BATCH", BATCH[task])
        patch.setattr(tasks.load(task), "PARITY_STEPS", STEPS[task])
        for name in PARTS:
            patch.setattr(tasks.load(name), "example", cropped(name))
        patch.setattr(tasks, "weights", weights)
        patch.setattr(agreement, "fingerprint", lambda task, *arrays: repr(task))
        norms = {name: float(numpy.linalg.norm(array)) for name, array in weights(subject).items()}
        with causes.inject(task, cause) if cause else nullcontext():
            return {
                "norms": norms,
                **agreement.check(NUMPY, TaskSubject(subject, recipes.load(task, "numpy")), phase),
            }


@cache
def variant(task, phase, cause):
    """Return the oracle's answer with a known cause."""
    return compute(task, phase, cause=cause)


@cache
def golden(task, phase):
    """Return the oracle's correct answer. Call it before a test patches the oracle."""
    return compute(task, phase)


def climb(task, phase, numbers):
    """Compare ``numbers`` with the correct answer on the ladder."""
    return ladder.compare(numbers, golden(task, phase), task=task, precision="fp32")


def differing_rungs(task, phase, numbers):
    """Return the titles of the rungs that differ."""
    return {finding.title for finding in climb(task, phase, numbers) if finding.status == "differs"}
