"""Parity of a user's model: OLD is the reference, because there is no oracle for it.

How far two right answers may differ is measured for each model: OLD computes the same once more with another number
of threads, and with the batch in reverse order. Each quantity (a layer's output, a parameter's gradient) may differ by
ten times what it differs there, or by the tolerance of the ladder if that is larger.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy

from stele.parity import ladder
from stele.parity.ladder import LATER_FACTOR, TITLES, TOLERANCE, Finding, relative_error, step_errors

FACTOR = 10  # times the measured rounding
SMALLEST = 1e-30  # of a norm to divide by
KINDS = ("layers", "gradients")  # of an answer: {name: sketch}

Numbers = dict[str, Any]  # a worker's answers to ``parity``, merged
Errors = dict[int, dict[str, float]]  # by rung and quantity, relative to the reference


class Rounding(NamedTuple):
    """The errors of OLD against itself, by what was changed: "2 threads", "the batch reversed"."""

    by_change: dict[str, Errors]

    def of(self, rung: int, where: str) -> float:
        return max((errors.get(rung, {}).get(where, 0.0) for errors in self.by_change.values()), default=0.0)

    def message(self) -> str:
        """Return ``rounding: 1.2e-07 (2 threads), 2.3e-07 (the batch reversed)``, of the logits."""
        largest = {
            change: max(errors.get(3, {"": 0.0}).values()) for change, errors in self.by_change.items()
        }
        return "rounding: " + ", ".join(f"{error:.1e} ({change})" for change, error in largest.items())


def findings(new: Numbers, old: Numbers, rounding: Rounding, *, precision: str) -> list[Finding]:
    """Return a Finding for each rung of NEW's answers, compared with OLD's."""
    measured = errors(new, old)
    compared = [judge(rung, of_rung, rounding, precision) for rung, of_rung in measured.items()]
    return sorted([*alone(new), *compared], key=lambda finding: finding.rung)


def alone(numbers: Numbers) -> list[Finding]:
    """Return the findings that need no reference: rungs 1 and 8."""
    weights = [ladder.weights(1, 0.0, numbers, {})] if "unequal" in numbers else []
    return weights + ([ladder.inference(8, 0.0, numbers, {})] if "repeats" in numbers else [])


def errors(numbers: Numbers, reference: Numbers) -> Errors:
    """Return the relative error of each quantity that both have, by rung."""
    renamed = with_names_of(numbers, reference)
    found: Errors = {}
    if reference.get("layers") and renamed.get("layers"):
        common = {name: sketch for name, sketch in reference["layers"].items() if name in renamed["layers"]}
        found[2] = sketch_errors(renamed["layers"], common)
    if "logits" in reference:
        found[3] = {"": relative_error(renamed["logits"], reference["logits"])}
    if "loss" in reference:
        found[4] = {"": relative_error(renamed["loss"], reference["loss"])}
        found[5] = sketch_errors(renamed["gradients"], reference["gradients"])
        found[6] = update_errors(renamed["updates"], reference["updates"])
        found[7] = step_errors(renamed["losses"], reference["losses"])
    return found


def sketch_errors(numbers: Mapping[str, Any], reference: Mapping[str, Any]) -> dict[str, float]:
    """Return the error of each sketch relative to its norm; infinite for one that is missing on either side."""
    found = dict.fromkeys(numbers.keys() - reference.keys(), float("inf")) if reference else {}
    for name, expected in reference.items():
        found[name] = ladder.difference(numbers.get(name), expected) / max(expected[0], SMALLEST)
    return found


def update_errors(numbers: Mapping[str, Any], reference: Mapping[str, Any]) -> dict[str, float]:
    """Return the error of each update, by ``parameter after step 10``; later ones may differ more."""
    found = {}
    for steps, expected in reference.items():
        factor = 1 if int(steps) == 1 else LATER_FACTOR
        for name, error in sketch_errors(numbers.get(steps, {}), expected).items():
            found[f"{name} after step {steps}"] = error / factor
    return found


def with_names_of(numbers: Numbers, reference: Numbers) -> Numbers:
    """Return the answers under OLD's names of parameters, where a framework numbers its layers differently."""
    theirs, ours = list(numbers.get("gradients", ())), list(reference.get("gradients", ()))
    if theirs == ours or len(theirs) != len(ours) or set(theirs) == set(ours):
        return numbers
    names = dict(zip(theirs, ours, strict=True))

    def rename(values: Mapping[str, Any]) -> dict[str, Any]:
        return {names[name]: value for name, value in values.items()}

    updates = {steps: rename(of_step) for steps, of_step in numbers["updates"].items()}
    return {**numbers, "gradients": rename(numbers["gradients"]), "updates": updates}


def judge(rung: int, measured: Mapping[str, float], rounding: Rounding, precision: str) -> Finding:
    """Return the Finding of a rung: the first layer that differs, or the quantity nearest to its tolerance."""
    base = TOLERANCE[precision][rung]
    limits = {where: max(base, FACTOR * rounding.of(rung, where)) for where in measured}
    ratios = {where: ratio(error, limits[where]) for where, error in measured.items()}
    if rung == 2:  # in the order of the network: an error continues in the layers after it
        where = next((name for name, value in ratios.items() if not value <= 1), largest(ratios))
    else:
        where = largest(ratios)
    error, limit = measured[where], limits[where]
    status = "agrees" if ratios[where] <= 1 else "differs"
    message = (
        ""
        if status == "agrees"
        else f"{detail(rung, where)}relative error {error:.2g}, tolerance {limit:.2g}"
    )
    return Finding(rung, status, message, error, limit, where or None)


def ratio(error: float, limit: float) -> float:
    return error / limit if numpy.isfinite(error) else float("inf")


def largest(values: Mapping[str, float]) -> str:
    return max(values, key=lambda name: values[name])


def detail(rung: int, where: str) -> str:
    return {2: f"output of {where}: ", 5: f"gradient of {where}: ", 6: f"update of {where}: "}.get(
        rung, f"{where}: " if where else ""
    )


def summary(found: Iterable[Finding]) -> str:
    """Return ``largest relative error 3.4e-07 (gradients, conv3.weight; tolerance 1e-04)``."""
    compared = [finding for finding in found if finding.error is not None and finding.limit]
    if not compared:
        return "nothing could be compared"
    worst = max(compared, key=lambda finding: (finding.error or 0.0) / (finding.limit or 1.0))
    where = f", {worst.where}" if worst.where else ""
    return f"largest relative error {worst.error:.1e} ({TITLES[worst.rung - 1]}{where}; tolerance {worst.limit:.0e})"
