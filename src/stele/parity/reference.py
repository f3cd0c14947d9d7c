"""Parity of a user's model: OLD is the reference, because there is no oracle for it.

How far two right answers may differ is measured for each model: OLD computes the same once more with another number
of threads, and with the batch in reverse order. Each quantity (a layer's output, a parameter's gradient) may differ by
ten times what it differs there, or by the tolerance of the ladder if that is larger. There is an upper limit: what
changes more is not rounding.

The gradients of some parameters are zero except for rounding, such as those of a bias before batch normalisation. So
differences below the rounding of the largest gradient do not count.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy

from stele.models.inputs import Input
from stele.parity import ladder
from stele.parity.ladder import (
    EPSILON,
    FLOAT32,
    LATER_FACTOR,
    SMALLEST,
    TITLES,
    TOLERANCE,
    Finding,
    relative_error,
    step_errors,
)

FACTOR = 10  # times the measured rounding
# The upper limit of a tolerance, as a multiple of the ladder's. In fp32 it is 1 % of the logits: float32 has seven
# digits, so a model that rounding changes by more than 0.1 % does not compute a result that a release could keep.
# With 8 or 11 bits, rounding alone reaches several per cent.
LARGEST = {"fp32": 1000, "tf32": 10, "bf16": 5}
NOISE = 8  # times the unit in the last place of the largest gradient: no difference of any gradient
# what values of a pre-processing may differ by, by dtype of an input; integers may not
INPUT_ERRORS = {"float64": 1e-5, "float32": 1e-5, "float": 1e-5, "float16": 2.0**-9, "bfloat16": 2.0**-6}
FIRST_STEP = " after step 1"
KINDS = {3: "logits", 4: "loss", 5: "gradients", 7: "losses"}  # by rung: the key of an answer

Numbers = dict[str, Any]  # a worker's answers to ``parity``, merged
Errors = dict[int, dict[str, float]]  # by rung and quantity, relative to the reference


class Rounding(NamedTuple):
    """The errors of OLD against itself, by what was changed: "2 threads", "the batch reversed"."""

    by_change: dict[str, Errors]
    unusable: tuple[str, ...] = ()  # changes with which OLD computes something else
    precision: str = "fp32"  # of the upper limits

    def of(self, rung: int, where: str) -> float:
        errors = [errors.get(rung, {}).get(where, 0.0) for errors in self.by_change.values()]
        return max((error for error in errors if numpy.isfinite(error)), default=0.0)

    def limit(self, rung: int, where: str, precision: str) -> float:
        """Return by how much a quantity of NEW may differ."""
        allowed = tolerance(rung, where, precision)
        return max(allowed, min(FACTOR * self.of(rung, where), largest_limit(rung, self.precision)))

    def message(self) -> str:
        """Return ``Rounding in OLD: 1.2e-07 with 2 threads, 2.3e-07 with the batch reversed``, of the outputs."""
        usable = [f"{output_error(errors):.1e} with {change}" for change, errors in self.by_change.items()]
        others = [f"unknown with {change}, because OLD's results change" for change in self.unusable]
        return "Rounding in OLD: " + ", ".join(usable + others)


def largest_limit(rung: int, precision: str) -> float:
    return LARGEST[precision] * TOLERANCE[precision][rung]


def measure_rounding(
    changes: Mapping[str, Numbers], reference: Numbers, *, precision: str, half: bool = False
) -> Rounding:
    """Return the rounding by ``changes``: OLD's answers with another number of threads, or another order.

    A change is unusable if it changes the outputs by more than rounding: a model may depend on the order of its batch.
    ``half`` says that the parameters have fewer bits than float32.
    """
    limits = "bf16" if half else precision
    by_change = {
        change: errors(numbers, reference, precision=precision) for change, numbers in changes.items()
    }
    most = largest_limit(3, limits) / FACTOR
    usable = {
        change: without_moved(found, most)
        for change, found in by_change.items()
        if output_error(found) <= most
    }
    return Rounding(usable, tuple(change for change in by_change if change not in usable), limits)


def change_between_processes(again: Numbers, reference: Numbers, *, precision: str) -> str | None:
    """Return what OLD computes in another way in a second process in which everything is equal; None if nothing.

    With one thread and deterministic kernels the bits are equal. Atomic additions on a GPU change the last bits, far
    less than the ladder allows.
    """
    found = errors(again, reference, precision=precision)
    for rung in (3, 4, 7):
        allowed = TOLERANCE[precision][rung]
        for where, error in found.get(rung, {}).items():
            if not error <= allowed:
                return f"{TITLES[rung - 1]}: {detail(rung, where)}{describe(error, allowed)}"
    return None


def output_error(found: Errors) -> float:
    """Return the largest error of the logits, which are the main output, and of the loss."""
    return max(found.get(rung, {}).get("", 0.0) for rung in (3, 4))


def doubt(reference: Numbers, rounding: Rounding) -> str | None:
    """Return why OLD's answers are not a sufficient reference, or None."""
    for kind in KINDS.values():
        if kind in reference and not is_finite(reference[kind]):
            return not_finite(kind)
    if not rounding.by_change:
        return f"OLD differs from itself with {' and with '.join(rounding.unusable)}"
    return None


def useless_outputs(reference: Numbers) -> str | None:
    """Return that OLD's logits or loss are not finite, which no release can change; or None."""
    kinds = (kind for kind in ("logits", "loss") if kind in reference and not is_finite(reference[kind]))
    return next(map(not_finite, kinds), None)


def not_finite(kind: str) -> str:
    return f"the {kind} of OLD {'is' if kind == 'loss' else 'are'} not finite"


def findings(new: Numbers, old: Numbers, rounding: Rounding, *, precision: str) -> list[Finding]:
    """Return a Finding for each rung of NEW's answers, compared with OLD's."""
    measured = errors(new, old, precision=precision)
    compared = [judge(rung, of_rung, rounding, precision) for rung, of_rung in measured.items()]
    found = sorted([*alone(new), *compared], key=lambda finding: finding.rung)
    return found if new.get("repeats", True) else random_outputs(found)


def alone(numbers: Numbers) -> list[Finding]:
    """Return the findings that need no reference: rungs 1 and 8."""
    weights = [ladder.weights(1, 0.0, numbers, {})] if "unequal" in numbers else []
    return weights + ([ladder.inference(8, 0.0, numbers, {})] if "repeats" in numbers else [])


def random_outputs(found: list[Finding]) -> list[Finding]:
    """Return the findings if two calls differ: outputs are random, so they cannot be compared with OLD's."""
    layer = next((one.where for one in found if one.rung == 2 and one.status == "differs"), None)
    hint = "" if layer is None else f" The first layer that differs from OLD is {layer}."
    weights = [one for one in found if one.rung == 1]
    others = [
        Finding(one.rung, "absent", "two calls on one batch differ") for one in found if 1 < one.rung < 8
    ]
    calls = [one._replace(message=one.message + hint, where=layer) for one in found if one.rung == 8]
    return weights + others + calls


def errors(numbers: Numbers, reference: Numbers, *, precision: str) -> Errors:
    """Return the relative error of each quantity of the reference, by rung.

    Layers that only one side has, and numbers of the reference that are not finite, are left out.
    """
    numbers, reference = with_names_of(numbers, reference)
    noise = NOISE * EPSILON[precision]
    found: Errors = {2: layer_errors(numbers.get("layers") or {}, reference.get("layers") or {})}
    if is_finite(reference.get("logits")):
        found[3] = {
            "": relative_error(numbers.get("logits"), reference["logits"]),
            **output_errors(numbers, reference),
        }
    if is_finite(reference.get("loss")):
        found[4] = {"": relative_error(numbers.get("loss"), reference["loss"])}
    if is_finite(reference.get("gradients")):
        found[5] = sketch_errors(numbers.get("gradients", {}), reference["gradients"], noise)
    if is_finite(reference.get("updates")):
        found[6] = update_errors(numbers.get("updates", {}), reference, noise)
    if is_finite(reference.get("losses")):
        found[7] = step_errors(numbers.get("losses", []), reference["losses"])
    return {rung: of_rung for rung, of_rung in found.items() if of_rung}


def output_errors(numbers: Numbers, reference: Numbers) -> dict[str, float]:
    """Return the error of each output beside the main one, by ``output boxes``.

    It is infinite for another shape, and for one that is missing on either side.
    """
    ours, theirs = numbers.get("outputs") or {}, reference.get("outputs") or {}
    found = {f"output {name}": float("inf") for name in (*theirs, *ours)}
    for name, expected in theirs.items():
        if name in ours and ours[name]["shape"] == expected["shape"]:
            empty = 0 in expected["shape"]
            found[f"output {name}"] = (
                0.0 if empty else relative_error(ours[name]["numbers"], expected["numbers"])
            )
    return found


def without_moved(found: Errors, most: float) -> Errors:
    """Return the errors of a change without those of outputs beside the main one that are no rounding.

    The batch is not reversed in an output in which it has an unknown place.
    """
    return {
        rung: {where: error for where, error in of_rung.items() if rung != 3 or not where or error <= most}
        for rung, of_rung in found.items()
    }


def is_finite(value: Any) -> bool:
    """Return whether a number, or each number in lists and dicts, is finite. None stands for one that is not.

    False for a list without numbers, which cannot be compared with anything.
    """
    if isinstance(value, Mapping):
        return all(is_finite(item) for item in value.values())
    try:
        numbers = numpy.array(value, numpy.float64)
        return bool(numbers.size and numpy.isfinite(numbers).all())
    except (TypeError, ValueError):  # the rows have different lengths, or are no numbers
        return False


def layer_errors(numbers: Mapping[str, Any], reference: Mapping[str, Any]) -> dict[str, float]:
    """Return the error of each layer that both have, in the order of the network."""
    return {
        name: ladder.difference(numbers[name], expected) / max(expected[0], SMALLEST)
        for name, expected in reference.items()
        if name in numbers and is_finite(expected)
    }


def sketch_errors(
    numbers: Mapping[str, Any],
    reference: Mapping[str, Any],
    noise: float,
    stored: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """Return the error of each sketch relative to its norm; infinite for one that is missing on either side.

    Differences up to ``noise`` times the largest norm, plus what ``stored`` has of the name, do not count.
    """
    found = {name: float("inf") for name in numbers if name not in reference}
    largest = max((expected[0] for expected in reference.values()), default=0.0)
    for name, expected in reference.items():
        ignored = noise * largest + (stored or {}).get(name, 0.0)
        counted = max(ladder.difference(numbers.get(name), expected) - ignored, 0.0)
        found[name] = counted / max(expected[0], ignored, SMALLEST)
    return found


def update_errors(numbers: Mapping[str, Any], reference: Numbers, noise: float) -> dict[str, float]:
    """Return the error of each update, by ``parameter after step 10``, beyond that of storing the parameter."""
    found, norms = {}, reference.get("norms", {})
    for steps, expected in reference["updates"].items():
        stored = {name: FLOAT32 * int(steps) * norm for name, norm in norms.items()}
        for name, error in sketch_errors(numbers.get(steps, {}), expected, noise, stored).items():
            found[f"{name} after step {steps}"] = error
    return found


def with_names_of(numbers: Numbers, reference: Numbers) -> tuple[Numbers, Numbers]:
    """Return both answers under OLD's names of parameters, with the gradients and updates that can be compared.

    NEW says how it loaded OLD's weights. A parameter that it fuses from several, or lacks, is not compared.
    """
    theirs, ours = list(numbers.get("gradients", ())), list(reference.get("gradients", ()))
    loaded = numbers.get("weights")
    if loaded is not None:
        names = loaded["names"]
    elif len(theirs) == len(ours) and set(theirs) != set(ours):  # a framework numbers its layers differently
        names = dict(zip(theirs, ours, strict=True))
    else:
        return numbers, reference
    return renamed(numbers, names), renamed(reference, {name: name for name in names.values()})


def renamed(numbers: Numbers, names: Mapping[str, str]) -> Numbers:
    """Return the answers with other names of parameters, and only those that have one."""

    def rename(values: Mapping[str, Any]) -> dict[str, Any]:
        return {names[name]: value for name, value in values.items() if name in names}

    updates = {steps: rename(of_step) for steps, of_step in numbers.get("updates", {}).items()}
    kinds = {"gradients": rename(numbers.get("gradients", {})), "updates": updates}
    return {**numbers, **{kind: value for kind, value in kinds.items() if kind in numbers}}


WAYS = {
    "map": "--weights-map names {count} of NEW's parameters",
    "order": "{count} of NEW's parameters have other names, and were matched by order and shape",
    "shapes": "{count} of NEW's parameters have other names, and were matched by their shapes",
    "checkpoint": "NEW has other parameters, and read OLD's weights from a checkpoint that OLD's library saved",
}


def loading(numbers: Numbers) -> str | None:
    """Return how NEW got OLD's weights, if not by equal names."""
    loaded = numbers.get("weights")
    if loaded is None or loaded["way"] not in WAYS:
        return None
    count = sum(ours != theirs for ours, theirs in loaded["names"].items())
    return WAYS[loaded["way"]].format(count=count)


def input_differences(new: Numbers, again: Numbers, inputs: Iterable[Input]) -> tuple[list[str], list[str]]:
    """Return how the values of NEW's example_inputs() differ from OLD's, and what is only said about them."""
    errors = new.get("inputs") or {}
    if any(error != 0 for error in (again.get("inputs") or {}).values()):
        return [], ["example_inputs() returns other values in each process, so both arms compute with OLD's"]
    dtypes = {one.name or f"input {number}": one.dtype or one.kind for number, one in enumerate(inputs, 1)}
    return [
        f"{name} has other values in NEW: {describe_error(error)}"
        for name, error in errors.items()
        if error is None or error > INPUT_ERRORS.get(dtypes.get(name, "int"), 0.0)
    ], []


def weight_differences(new: Numbers, again: Numbers) -> tuple[list[str], list[str]]:
    """Return how the weights that NEW itself builds differ from OLD's, and what is only said about them.

    Random weights may differ: only those count that no seed changes, in a model that is built from files.
    """
    files = sorted({*(new.get("files") or ()), *(again.get("files") or ())})
    names = (new.get("weights") or {}).get("names", {})
    random = {name for name, error in (again.get("own") or {}).items() if exceeds(error)}
    fixed = set(again.get("fixed") or ()) if files else set()
    found, drawn = list[str](), list[str]()
    for name, error in (new.get("own") or {}).items():
        of_old = names.get(name, name)
        if of_old in random or not exceeds(error):
            continue
        if of_old in fixed:
            found.append(
                f"NEW reads {name} from {', '.join(files)} with other values: {describe_error(error)}"
            )
        else:
            drawn.append(name)
    return found, [
        f"NEW draws other initial weights from the same seed ({shortened(drawn)})"
    ] if drawn else []


def exceeds(error: float | None) -> bool:
    return error is None or error > TOLERANCE["fp32"][3]


def describe_error(error: float | None) -> str:
    return describe(float("inf") if error is None else error, 0.0).partition(", tolerance")[0]


def shortened(names: Iterable[str]) -> str:
    first, *more = sorted(names)
    return f"{first} and {len(more)} more" if more else first


def judge(rung: int, measured: Mapping[str, float], rounding: Rounding, precision: str) -> Finding:
    """Return the Finding of a rung: the first layer that differs, or the quantity nearest to its tolerance."""
    limits = {where: rounding.limit(rung, where, precision) for where in measured}
    ratios = {where: error / limits[where] for where, error in measured.items()}
    if rung == 2:  # in the order of the network: an error continues in the layers after it
        where = next((name for name, value in ratios.items() if value > 1), largest(ratios))
    else:
        where = largest(ratios)
    error, limit = measured[where], limits[where]
    status = "agrees" if ratios[where] <= 1 else "differs"
    reason = "" if status == "agrees" else f"{detail(rung, where)}{describe(error, limit)}"
    return Finding(rung, status, reason, error, limit, where or None)


def tolerance(rung: int, where: str, precision: str) -> float:
    later = rung == 6 and not where.endswith(FIRST_STEP)
    return TOLERANCE[precision][rung] * (LATER_FACTOR if later else 1)


def largest(values: Mapping[str, float]) -> str:
    return max(values, key=lambda name: values[name])


def describe(error: float, limit: float) -> str:
    if not numpy.isfinite(error):
        return "not finite, of another shape, or missing on one side"
    return f"relative error {error:.2g}, tolerance {limit:.2g}"


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
