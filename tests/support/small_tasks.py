"""The oracle on small batches, with known causes of differences.

ResNet-50 has an eighth of its width here and reads small images; the GRU reads short reviews. The causes have the same
effect as on the full size.
"""

from contextlib import nullcontext
from functools import cache

import numpy
import pytest

from stele.parity import golden_numbers, ladder
from stele_suite import tasks
from stele_worker import agreement, causes, frameworks, recipes
from stele_worker.subjects import TaskSubject

NUMPY = frameworks.load("numpy")
STEPS, UPDATE_STEPS = {"resnet50": 1}, (1, 3)  # 3 for the other tasks

RESNET50 = tasks.load("resnet50")
NARROW = tuple((count, width // 8, stride) for count, width, stride in RESNET50.STAGES)
CHANGES = {
    "cnn": {"batch": 2},
    "gru": {"batch": 4, "length": 40},
    "chain": {"width": 4, "links": 5},
    "stack": {"width": 4, "depth": 2, "branches": 2, "segment": None, "batch": 8},
    "transformer": {"batch": 2, "length": 6, "layers": 2},
    "encoder": {"batch": 2, "length": 8, "layers": 2},
    "decoder": {"batch": 2, "length": 8, "layers": 2},
    "resnet50": {"batch": 1, "image": 48, "features": 4 * NARROW[-1][1]},
}
seeded_weights = tasks.weights


@cache
def weights(task):
    """Return the seeded weights, computed once."""
    return seeded_weights(task)


def compute(task, phase, *, cause=None, **changes):
    """Return the oracle's answer to ``parity`` for a real Task, with a known cause or with changed constants."""
    subject = tasks.make(task, "parity", **{"seed": golden_numbers.seed(task), **CHANGES[task], **changes})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RESNET50, "STAGES", NARROW)
        patch.setattr(agreement, "UPDATE_STEPS", UPDATE_STEPS)
        patch.setattr(tasks.load(task), "PARITY_STEPS", STEPS.get(task, 3))
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
