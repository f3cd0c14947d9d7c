"""The golden numbers: the oracle's results, ``recipes/<task>/numpy.py`` in float64, on a small fixed batch.

``golden/<task>.json``, or ``<task>-<form>.json`` for an alternative form of the Task, contains a worker's answer to
``parity`` (see ``stele_worker.agreement``): logits and layers; and with dropout off the first loss, the gradients, the
updates of all parameters after one and ten optimiser steps, and twenty losses. Gradients, updates and layers are
sketches: three numbers for each array. The wheel contains these files, so they are small: long rows of logits are
sampled, numbers have only the digits that the ladder compares, the name of a parameter appears once, and a sketch is
stored as whole numbers. ``load`` adds the norms of the initial parameters.
"""

import json
import math
from pathlib import Path
from typing import Any, TypedDict

import numpy

from stele import files, schema
from stele.errors import SteleError
from stele.measuring import answers
from stele_worker import tasks

FOLDER = Path(__file__).parent / "golden"

KINDS = ("task", "logits", "layers", "loss", "gradients", "updates", "losses")

STEPS = "steps"  # of the optimizer, in a file
PARAMETERS = "parameters"  # in a file: the sketch of the gradient of each, and those of its updates
SKETCHED = ("layers", "gradients", "updates")

# significant digits of the stored numbers: their rounding is at most a tenth of the smallest tolerance of the ladder
DIGITS, FEW_DIGITS = 7, 5  # the second of gradients and updates
LARGEST = 300  # decimal places
COLUMNS = 128  # stored logits or features of an example, at most


class Golden(TypedDict, total=False):
    """The numbers of a Task by kind, as a worker answers them."""

    task: str
    logits: list[list[float]]
    layers: dict[str, list[float]]
    loss: float
    gradients: dict[str, list[float]]
    updates: dict[str, dict[str, list[float]]]
    losses: list[float]


class Stored(TypedDict, total=False):
    """The part of a file that ``by_kind`` converts."""

    layers: dict[str, list[int]]
    steps: list[str]
    parameters: dict[str, list[list[int]]]


def file(task: str, form: str | None, folder: Path | None) -> Path:
    """Return the path of the golden numbers of a Task, or of one of its forms."""
    return (folder or FOLDER) / (f"{task}.json" if form is None else f"{task}-{form}.json")


def load(task: str, form: str | None = None, folder: Path | None = None) -> dict[str, Any]:
    """Return the golden numbers of a Task, or of one of its forms. Raises SteleError if they cannot be read."""
    path = file(task, form, folder)
    try:
        numbers = by_kind(schema.convert_golden_numbers(schema.read(path)))
        numbers = {**numbers, "norms": norms(task, form)}
        check(numbers)
    except (OSError, ValueError) as error:
        raise SteleError(
            f"No golden numbers for '{task}': {error}. Create them with: stele parity --rebase"
        ) from None
    return numbers


def check(numbers: dict[str, Any]) -> None:
    """Raise ValueError if golden numbers are not of the right form, or lack the norm of a parameter that is updated."""
    schema.check(numbers, Golden, "it")
    answers.check_sketches(numbers)
    updated = {name for of_step in numbers.get("updates", {}).values() for name in of_step}
    without = sorted(updated - numbers.get("norms", {}).keys())
    if without:
        raise ValueError(f"it has no norm of {without[0]!r}")
    if numpy.array(numbers.get("logits", 0), numpy.float64).size == 0:  # or the rows have different lengths
        raise ValueError("it has no logits")
    if {} in numbers.values() or [] in numbers.values():
        raise ValueError("it has a list or an object without content")


def save(task: str, form: str | None, numbers: dict[str, Any], folder: Path | None = None) -> Path:
    """Write the oracle's numbers, one line for each kind, and return the path."""
    path = file(task, form, folder)
    content = {kind: numbers[kind] for kind in KINDS if kind in numbers}
    if "logits" in content:
        content["logits"] = sample_columns(content["logits"])
    stored = schema.wrap(by_parameter(content))
    lines = [f"{json.dumps(kind)}:{compact(value)}" for kind, value in stored.items()]
    files.write_text(path, "{\n" + ",\n".join(lines) + "\n}\n")
    return path


def by_parameter(numbers: dict[str, Any]) -> dict[str, Any]:
    """Return numbers as a file has them: STEPS and PARAMETERS in place of ``gradients`` and ``updates``."""
    result = {kind: value for kind, value in numbers.items() if kind not in SKETCHED}
    result = round_floats(result, DIGITS)
    if "layers" in numbers:
        result["layers"] = {name: to_integers(one, DIGITS) for name, one in numbers["layers"].items()}
    if "gradients" in numbers:
        updates = numbers["updates"]
        result[STEPS] = list(updates)
        result[PARAMETERS] = {
            name: [
                to_integers(one, FEW_DIGITS) for one in (gradient, *(step[name] for step in updates.values()))
            ]
            for name, gradient in numbers["gradients"].items()
        }
    return result


def by_kind(content: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a file with ``gradients`` and ``updates``. Raises ValueError if it is not of the form."""
    schema.check(content, Stored, "it")
    result = {kind: value for kind, value in content.items() if kind not in (STEPS, PARAMETERS)}
    if "layers" in content:
        result["layers"] = {name: to_floats(one) for name, one in content["layers"].items()}
    if PARAMETERS in content:
        steps, sketches = content.get(STEPS, []), content[PARAMETERS]
        uneven = [name for name, of_one in sketches.items() if len(of_one) != 1 + len(steps)]
        if uneven:
            raise ValueError(
                f"{uneven[0]!r} has {len(sketches[uneven[0]])} sketches, expected {1 + len(steps)}"
            )
        numbers = {name: [to_floats(one) for one in of_one] for name, of_one in sketches.items()}
        result["gradients"] = {name: of_one[0] for name, of_one in numbers.items()}
        result["updates"] = {
            step: {name: of_one[1 + at] for name, of_one in numbers.items()} for at, step in enumerate(steps)
        }
    return result


def to_integers(sketch: list[float], digits: int) -> list[int]:
    """Return whole numbers, and last their decimal places: with three digits, [0.25, -1.5] is [25, -150, 2]."""
    places = places_of(sketch, digits)
    return [*(round(number * 10**places) for number in sketch), places]


def to_floats(stored: list[int]) -> list[float]:
    """Return the numbers that ``to_integers`` converted. Raises ValueError if there are none, or too many places."""
    if not stored or not -LARGEST <= stored[-1] <= LARGEST:
        raise ValueError(f"{stored} is no sketch")
    return [float(f"{number}e{-stored[-1]}") for number in stored[:-1]]


def compact(value: Any) -> str:
    """Return JSON without spaces, because the wheel is small."""
    return json.dumps(value, separators=(",", ":"))


def sample_columns(logits: list[list[float]]) -> list[list[float]]:
    """Return at most COLUMNS numbers of each row, at equal distances. The sketch of a layer contains the others."""
    return [row[:: -(-len(row) // COLUMNS)] if is_long(row) else row for row in logits]


def is_long(row: Any) -> bool:
    """Return whether golden numbers contain a sample of this row of logits only."""
    return isinstance(row, list) and len(row) > COLUMNS


def seed(task: str) -> int:
    """Return the seed of the weights and the batch of a Task's golden numbers."""
    value: int = tasks.load(task).PARITY_SEED
    return value


def norms(task: str, form: str | None) -> dict[str, float]:
    """Return the Euclidean norm of each initial parameter, which bounds the rounding error of storing it in float32."""
    changes = {"seed": seed(task)} if form is None else {"seed": seed(task), "form": form}
    arrays = tasks.weights(tasks.make(task, "parity", **changes))
    return {name: float(numpy.linalg.norm(array.astype(numpy.float64))) for name, array in arrays.items()}


def round_floats(value: Any, digits: int) -> Any:
    """Return ``value`` with every float in it rounded to ``digits`` significant digits.

    The numbers of a list of floats have the resolution of its largest one, because their error is relative to it.
    """
    if isinstance(value, dict):
        return {key: round_floats(item, digits) for key, item in value.items()}
    if isinstance(value, list) and not all(isinstance(item, float) for item in value):
        return [round_floats(item, digits) for item in value]
    if isinstance(value, list):
        return round_together(value, digits)
    return round_together([value], digits)[0] if isinstance(value, float) else value


def round_together(numbers: list[float], digits: int) -> list[float]:
    """Return the numbers with the resolution that gives the largest of them ``digits`` significant digits."""
    places = places_of(numbers, digits)
    return [round(number, places) for number in numbers]


def places_of(numbers: list[float], digits: int) -> int:
    """Return the decimal places with which the largest of the numbers has ``digits`` significant digits."""
    largest = max(map(abs, numbers), default=0.0)
    return digits - 1 - math.floor(math.log10(largest)) if largest else 0
