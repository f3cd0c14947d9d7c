"""The golden numbers, and what a recipe computed held against them.

``baselines/parity/<task>.json``, or ``<task>-<form>.json`` for another form of the Task, holds what the oracle,
``recipes/<task>/numpy.py`` in float64, computes from the Task's seeded weights on a small fixed batch: logits, and
with dropout off the first loss, the norm of every parameter's gradient, and the losses of ten optimiser steps.
"""

import json
from pathlib import Path
from typing import Any

import numpy

from stele import files
from stele.errors import SteleError

FOLDER = Path(__file__).parents[2] / "baselines" / "parity"

# of weights and batch. With the CNN's, no input of a ReLU and no two rivals of a pool lie so close that a processor's
# own rounding decides between them, which moves whole gradients: seed 0 has a ReLU input of 3e-9
SEEDS = {"cnn": 27, "gru": 0, "resnet50": 0}

# the largest relative error allowed, by precision; the sums of ResNet-50 are longer. Ten losses in fp32 differ by
# at most 5e-5 where all is well, and by 3e-4 where Adam's epsilon is ten times the Task's
TOLERANCE = {
    "fp32": {"logits": 1e-4, "loss": 1e-4, "gradient_norms": 1e-3, "losses": 2e-4},
    "tf32": {"logits": 1e-2, "loss": 1e-3, "gradient_norms": 2e-2, "losses": 1e-2},
    "bf16": {"logits": 5e-2, "loss": 1e-2, "gradient_norms": 1e-1, "losses": 5e-2},
}
RESNET50_FACTOR = 10


def file(task: str, form: str | None, folder: Path | None) -> Path:
    return (folder or FOLDER) / (f"{task}.json" if form is None else f"{task}-{form}.json")


def golden(task: str, form: str | None = None, folder: Path | None = None) -> dict[str, Any]:
    """The golden numbers of a Task, or of another form of it. Raises SteleError if they were never made."""
    path = file(task, form, folder)
    try:
        numbers: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise SteleError(
            f"No golden numbers for '{task}': {error}. Make them with: stele parity --rebase"
        ) from None
    return numbers


def save(task: str, form: str | None, numbers: dict[str, Any], folder: Path | None = None) -> Path:
    """Write golden numbers, rounded to the nine digits that tell two float32 apart."""
    path = file(task, form, folder)
    files.write_text(path, json.dumps(rounded(numbers), indent=1) + "\n")
    return path


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


def disagreements(
    task: str, numbers: dict[str, Any], expected: dict[str, Any], *, precision: str
) -> list[str]:
    """What in ``numbers``, a worker's answer to ``parity``, differs from the golden numbers: sentences.

    Errors are relative to the largest golden number of their kind; gradient norms each to their own.
    """
    if numbers["task"] != expected["task"]:
        return [
            f"the golden numbers of '{task}' are stale: the Task has changed. Make them anew: stele parity --rebase"
        ]
    allowed = TOLERANCE[precision]
    sentences = []
    for name, error in errors(numbers, expected).items():
        kind = name.partition(" ")[0]
        limit = allowed[kind] * (RESNET50_FACTOR if task == "resnet50" else 1)
        if not error <= limit:  # a NaN is no agreement
            sentences.append(f"{name} differ from the golden numbers by {error:.2g}, allowed are {limit:g}")
    return sentences


def errors(numbers: dict[str, Any], expected: dict[str, Any]) -> dict[str, float]:
    """The relative error of each kind of number that was computed; infinite where a number is missing."""
    found: dict[str, float] = {
        kind: relative_error(numbers[kind], expected[kind])
        for kind in ("logits", "loss", "losses")
        if kind in numbers
    }
    if "gradient_norms" in numbers:
        for name, norm in expected["gradient_norms"].items():
            found[f"gradient_norms of {name}"] = relative_error(numbers["gradient_norms"].get(name), norm)
        for name in numbers["gradient_norms"].keys() - expected["gradient_norms"].keys():
            found[f"gradient_norms of {name}, which is no parameter of the Task,"] = float("inf")
    return found


def relative_error(value: Any, expected: Any) -> float:
    """The largest absolute difference over the largest absolute expected number."""
    computed, target = numpy.array(value, numpy.float64), numpy.array(expected, numpy.float64)
    if computed.shape != target.shape or not numpy.isfinite(computed).all():
        return float("inf")
    return float(abs(computed - target).max() / abs(target).max())
