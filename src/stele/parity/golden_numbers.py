"""The golden numbers: what the oracle, ``recipes/<task>/numpy.py`` in float64, computes on a small fixed batch.

``baselines/parity/<task>.json``, or ``<task>-<form>.json`` for another form of the Task, holds what a worker answers to
``parity`` (see ``stele_worker.agreement``): logits and layers; and with dropout off the first loss, the gradients, the
updates of all parameters after one and ten optimiser steps, and twenty losses. Beside them ``norms``, of the initial
parameters. Gradients, updates and layers are sketches, three numbers an array.
"""

import json
from pathlib import Path
from typing import Any

import numpy

from stele import files, schema
from stele.errors import SteleError
from stele_worker import tasks

FOLDER = Path(__file__).parent / "golden"

# of weights and batch. With the CNN's, no input of a ReLU and no two rivals of a pool lie so close that a processor's
# own rounding decides between them, which updates whole gradients: seed 0 has a ReLU input of 3e-9
SEEDS = {"cnn": 27, "gru": 0, "resnet50": 0}
KEPT = ("task", "norms", "logits", "layers", "loss", "gradients", "updates", "losses")


def file(task: str, form: str | None, folder: Path | None) -> Path:
    return (folder or FOLDER) / (f"{task}.json" if form is None else f"{task}-{form}.json")


def load(task: str, form: str | None = None, folder: Path | None = None) -> dict[str, Any]:
    """The golden numbers of a Task, or of another form of it. Raises SteleError if they were never made."""
    path = file(task, form, folder)
    try:
        numbers = schema.golden_numbers(json.loads(path.read_text()))
    except (OSError, ValueError) as error:
        raise SteleError(
            f"No golden numbers for '{task}': {error}. Make them with: stele parity --rebase"
        ) from None
    return numbers


def save(task: str, form: str | None, numbers: dict[str, Any], folder: Path | None = None) -> Path:
    """Write what the oracle answered, rounded to the nine digits that tell two float32 apart: a line for each kind."""
    path = file(task, form, folder)
    kept = {kind: numbers[kind] for kind in KEPT if kind in numbers}
    lines = [
        f" {json.dumps(kind)}: {json.dumps(rounded(value))}" for kind, value in schema.stamped(kept).items()
    ]
    files.write_text(path, "{\n" + ",\n".join(lines) + "\n}\n")
    return path


def norms(task: str, form: str | None) -> dict[str, float]:
    """The Euclidean norm of each initial parameter, which bounds what storing it in float32 rounds off."""
    changes = {"seed": SEEDS[task]} if form is None else {"seed": SEEDS[task], "form": form}
    arrays = tasks.weights(tasks.make(task, "paper", **changes))
    return {name: float(numpy.linalg.norm(array.astype(numpy.float64))) for name, array in arrays.items()}


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value
