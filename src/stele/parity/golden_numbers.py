"""The golden numbers: the oracle's results, ``recipes/<task>/numpy.py`` in float64, on a small fixed batch.

``golden/<task>.npz``, or ``<task>-<form>.npz`` for an alternative form of the Task, contains a worker's answer to
``parity`` (see ``stele_worker.agreement``): logits and layers; and with dropout off the first loss, the gradients, the
updates of all parameters after one and ten optimiser steps, and twenty losses. Gradients, updates and layers are
sketches: three numbers for each array. An array has the path of its number as its name, such as
``updates/10/conv1.weight``. ``load`` adds the norms of the initial parameters.
"""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

import numpy

import stele_suite
from stele import files, schema
from stele.errors import SteleError
from stele.measuring import answers
from stele.measuring.answers import Numbers
from stele_suite import tasks

FOLDER = Path(stele_suite.__file__).parent / "golden"

KINDS = ("task", "logits", "layers", "loss", "gradients", "updates", "losses")
DEPTHS = {"layers": 2, "gradients": 2, "updates": 3}  # parts of a path; of the other kinds 1


class OfTask(TypedDict):
    task: str


class Golden(OfTask, total=False):
    """The numbers of a Task by kind, as a worker answers them."""

    logits: list[list[float]]
    layers: dict[str, list[float]]
    loss: float
    gradients: dict[str, list[float]]
    updates: dict[str, dict[str, list[float]]]
    losses: list[float]


def file(task: str, form: str | None, folder: Path | None) -> Path:
    """Return the path of the golden numbers of a Task, or of one of its forms."""
    return (folder or FOLDER) / (f"{task}.npz" if form is None else f"{task}-{form}.npz")


def load(task: str, form: str | None = None, folder: Path | None = None) -> Numbers:
    """Return the golden numbers of a Task, or of one of its forms. Raises SteleError if they cannot be read."""
    path = file(task, form, folder)
    try:
        with numpy.load(io.BytesIO(files.read_bytes(path)), allow_pickle=False) as arrays:
            numbers = as_tree({name: arrays[name].tolist() for name in arrays.files})
        numbers = {**numbers, "norms": norms(task, form)}
        check(numbers)
    except Exception as error:  # a damaged archive raises errors of many kinds
        raise SteleError(f"No golden numbers for '{task}': {error}. Create them with: stele parity --rebase") from None
    return numbers


def save(task: str, form: str | None, numbers: Numbers, folder: Path | None = None) -> Path:
    """Write the oracle's numbers, and return the path."""
    path = file(task, form, folder)
    content = {kind: numbers[kind] for kind in KINDS if kind in numbers}
    arrays: dict[str, Any] = {
        name: numpy.array(value) for kind, tree in content.items() for name, value in leaves(kind, tree)
    }
    files.write(path, lambda file: numpy.savez_compressed(file, **arrays))
    return path


def leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the numbers of a tree of dicts, each with its path."""
    if isinstance(value, dict):
        for name, below in value.items():
            yield from leaves(f"{path}/{name}", below)
    else:
        yield path, value


def as_tree(numbers: Numbers) -> Numbers:
    """Return a tree of dicts from the numbers by their paths. Raises ValueError if a path has too few parts."""
    tree: dict[str, Any] = {}
    for path, value in numbers.items():
        depth = DEPTHS.get(path.partition("/")[0], 1)
        *above, name = path.split("/", depth - 1)
        if len(above) != depth - 1:
            raise ValueError(f"it has no name in {path!r}")
        place = tree
        for part in above:
            place = place.setdefault(part, {})
        place[name] = value
    return tree


def check(numbers: Numbers) -> None:
    """Raise ValueError if golden numbers are not of the right form, or lack the norm of a parameter that is updated."""
    schema.convert(numbers, Golden)
    answers.check_sketches(numbers)
    updated = {name for of_step in numbers.get("updates", {}).values() for name in of_step}
    without = sorted(updated - numbers.get("norms", {}).keys())
    if without:
        raise ValueError(f"it has no norm of {without[0]!r}")
    if numpy.array(numbers.get("logits", 0), numpy.float64).size == 0:  # or the rows have different lengths
        raise ValueError("it has no logits")
    if {} in numbers.values() or [] in numbers.values():
        raise ValueError("it has a list or an object without content")


def seed(task: str) -> int:
    """Return the seed of the weights and the batch of a Task's golden numbers."""
    value: int = tasks.load(task).PARITY_SEED
    return value


def norms(task: str, form: str | None) -> dict[str, float]:
    """Return the Euclidean norm of each initial parameter, which bounds the rounding error of storing it in float32."""
    changes = {"seed": seed(task)} if form is None else {"seed": seed(task), "form": form}
    arrays = tasks.weights(tasks.make(task, "parity", **changes))
    return {name: float(numpy.linalg.norm(array.astype(numpy.float64))) for name, array in arrays.items()}
