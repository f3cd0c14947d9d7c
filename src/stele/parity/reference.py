"""Parity of a user's model: OLD is the reference, because there is no oracle for it.

How far two right answers may differ is measured for each model: OLD computes the same once more with another number
of threads, and with the batch in reverse order. Each quantity (a layer's output, a parameter's gradient) may differ by
ten times what it differs there, or by the tolerance of the ladder if that is larger. There is an upper limit: a
quantity in which OLD differs from itself by more than a tenth of it has no reference, so it is left out.

The gradients of some parameters are zero except for rounding, such as those of a bias before batch normalisation. So
differences below the rounding of the largest gradient do not count, and the updates of these parameters are left out:
Adam divides a gradient by its size.

The tolerances follow the dtypes in which OLD computes: a model may be in half precision whatever the setting.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy

from stele.measuring.answers import Numbers, mask_of
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
from stele.text import first_of

Value = TypeVar("Value")

FACTOR = 10  # times the measured rounding
# The upper limit of a tolerance, as a multiple of the ladder's. In fp32 it is 1 % of the logits: float32 has seven
# digits, so a model that rounding changes by more than 0.1 % does not compute a result that a release could keep.
# With 8 or 11 bits, rounding alone reaches several per cent.
LARGEST = {"fp32": 1000, "tf32": 10, "bf16": 5}
MOST = 0.5  # of every tolerance: an error above it compares nothing
HALF = {"float16": "tf32", "bfloat16": "bf16"}  # the precision with as many digits
STORED = {"float16": 2.0**-11, "bfloat16": 2.0**-8}  # relative rounding error of storing a parameter
NOISE = 8  # times the unit in the last place of the largest gradient: no difference of any gradient
STEP = " after step "
FIRST_STEP = f"{STEP}1"
# the keys of an answer whose numbers must be finite, and what they are
FINITE = {
    "logits": "the logits of OLD are",
    "loss": "the loss of OLD is",
    "gradients": "the gradients of OLD are",
    "losses": "the losses of OLD are",
    "trained": "the logits of OLD after its training are",
}
NO_REFERENCE = "OLD differs from itself"
SHOWN = 3  # quantities in a message
REVERSED = "the batch reversed"
UNEQUAL = 1e30  # the error of whole numbers and texts that are not equal: no tolerance reaches it

Errors = dict[int, dict[str, float]]  # by rung and quantity, relative to the reference


class Precision(NamedTuple):
    """The arithmetic in which OLD computes, as precisions of the ladder."""

    narrowest: str = "fp32"
    layers: Mapping[str, str] = {}  # of each layer's output, which the layers before it have rounded, too

    def of(self, rung: int, where: str) -> str:
        return self.layers.get(where, self.narrowest) if rung == 2 else self.narrowest


def precision_of(reference: Numbers, setting: str) -> Precision:
    """Return the arithmetic of OLD: that of the setting, or of the dtypes of its numbers if these have fewer digits."""
    dtypes = reference.get("dtypes") or {"parameters": {}, "layers": {}, "others": []}
    narrowest, layers = setting, dict[str, str]()
    for name, dtype in dtypes["layers"].items():
        narrowest = layers[name] = narrower(narrowest, dtype)
    for dtype in (*dtypes["parameters"].values(), *dtypes["others"]):
        narrowest = narrower(narrowest, dtype)
    return Precision(narrowest, layers)


def narrower(precision: str, dtype: str) -> str:
    """Return a precision, or that of a dtype if it has fewer digits."""
    return max(precision, HALF.get(dtype, precision), key=lambda name: EPSILON[name])


class Rounding(NamedTuple):
    """The errors of OLD against itself, by what was changed: "2 threads", "the batch reversed"."""

    by_change: Mapping[str, Errors]
    unusable: tuple[str, ...] = ()  # changes with which OLD computes something else
    precision: Precision = Precision()
    again: Mapping[int, dict[str, float]] = {}  # in a second process in which everything is equal

    def of(self, rung: int, where: str) -> float:
        errors = [errors.get(rung, {}).get(where, 0.0) for errors in (*self.by_change.values(), self.again)]
        return max((error for error in errors if numpy.isfinite(error)), default=0.0)

    def hides(self, rung: int, where: str) -> bool:
        """Return whether OLD differs from itself too much to be a reference of a quantity."""
        if rung == 6 and self.hides(5, where.rpartition(STEP)[0]):
            return True
        return self.of(rung, where) > largest_limit(rung, self.precision.of(rung, where)) / FACTOR

    def limit(self, rung: int, where: str) -> float:
        """Return by how much a quantity of NEW may differ."""
        allowed = tolerance(rung, where, self.precision.of(rung, where))
        return min(max(allowed, FACTOR * self.of(rung, where)), MOST)

    def message(self) -> str:
        """Return ``Rounding in OLD: 1.2e-07 with 2 threads, 2.3e-07 with the batch reversed``, of the outputs."""
        usable = [f"{output_error(errors):.1e} with {change}" for change, errors in self.by_change.items()]
        others = [f"unknown with {change}, because OLD's results change" for change in self.unusable]
        return "Rounding in OLD: " + ", ".join(usable + others)


def largest_limit(rung: int, precision: str) -> float:
    return LARGEST[precision] * TOLERANCE[precision][rung]


def measure_rounding(
    changes: Mapping[str, Numbers], reference: Numbers, *, precision: str, again: Numbers | None = None
) -> Rounding:
    """Return the rounding by ``changes``: OLD's answers with another number of threads, or another order.

    A change is unusable if it changes the outputs by more than rounding: a model may depend on the order of its batch.
    ``again`` are OLD's answers in a second process. ``precision`` is that of the settings.
    """
    of_old = precision_of(reference, precision)
    by_change = {change: errors(numbers, reference, of_old) for change, numbers in changes.items()}
    most = largest_limit(3, of_old.narrowest) / FACTOR
    usable = {
        change: without_moved(errors_of_change, most) if change == REVERSED else errors_of_change
        for change, errors_of_change in by_change.items()
        if output_error(errors_of_change) <= most
    }
    unusable = tuple(change for change in by_change if change not in usable)
    return Rounding(usable, unusable, of_old, {} if again is None else errors(again, reference, of_old))


def change_between_processes(again: Numbers, reference: Numbers, *, precision: str) -> str | None:
    """Return what OLD computes in another way in a second process in which everything is equal; None if nothing.

    With one thread and deterministic kernels the bits are equal. Atomic additions on a GPU change the last bits, far
    less than the ladder allows.
    """
    differences = errors(again, reference, Precision(precision))
    for rung in (3, 4, 7):
        allowed = TOLERANCE[precision][rung]
        for where, error in differences.get(rung, {}).items():
            if not error <= allowed:
                return f"{TITLES[rung - 1]}: {detail(rung, where)}{describe(error, allowed)}"
    return None


def output_error(by_rung: Errors) -> float:
    """Return the largest error of the logits, which are the main output, and of the loss."""
    return max(by_rung.get(rung, {}).get("", 0.0) for rung in (3, 4))


def doubt(reference: Numbers, rounding: Rounding, findings: Iterable[Finding] = ()) -> str | None:
    """Return why OLD's answers are not a sufficient reference of the findings, or None."""
    for kind in FINITE:
        if kind in reference and not is_finite(reference[kind]):
            return not_finite(kind)
    if not rounding.by_change:
        return f"OLD differs from itself with {' and with '.join(rounding.unusable)}"
    lost = [TITLES[finding.rung - 1] for finding in findings if finding.message == NO_REFERENCE]
    return f"OLD differs from itself in all {' and '.join(lost)}" if lost else None


def useless_outputs(reference: Numbers) -> str | None:
    """Return that OLD's logits or loss are not finite, which no release can change; or None."""
    kinds = (kind for kind in ("logits", "loss") if kind in reference and not is_finite(reference[kind]))
    return next(map(not_finite, kinds), None)


def not_finite(kind: str) -> str:
    return f"{FINITE[kind]} not finite"


def findings(new: Numbers, old: Numbers, rounding: Rounding) -> list[Finding]:
    """Return a Finding for each rung of NEW's answers, compared with OLD's."""
    by_rung = errors(new, old, rounding.precision)
    compared = [judge(rung, of_rung, rounding) for rung, of_rung in by_rung.items()]
    result = sorted([*alone(new), *compared], key=lambda finding: finding.rung)
    return result if new.get("repeats", True) else random_outputs(result)


def left_out(new: Numbers, old: Numbers, rounding: Rounding) -> str | None:
    """Return which quantities are not compared, because in OLD they are rounding or differ from process to process."""
    by_rung = errors(new, old, rounding.precision)
    names = [
        f"{detail(rung, where) or TITLES[rung - 1]}".removesuffix(": ")
        for rung, of_rung in by_rung.items()
        for where in of_rung
        if rounding.hides(rung, where)
    ]
    names += [f"update of {name}" for name in rounded_gradients(*with_names_of(new, old), rounding.precision)]
    if not names:
        return None
    return f"Not compared, because rounding decides it in OLD: {first_of(names, SHOWN)}"


def incomparable(new: Numbers, old: Numbers) -> str | None:
    """Return which outputs of either arm are not compared because of their type."""
    names = sorted({*(old.get("ignored") or ()), *(new.get("ignored") or ())})
    if not names:
        return None
    return f"Not compared, because they are no arrays, numbers or texts: output {', output '.join(names)}"


def alone(numbers: Numbers) -> list[Finding]:
    """Return the findings that need no reference: rungs 1 and 8."""
    weights = [ladder.weights(1, 0.0, numbers, {})] if "unequal" in numbers else []
    return weights + ([ladder.inference(8, 0.0, numbers, {})] if "repeats" in numbers else [])


def random_outputs(findings: list[Finding]) -> list[Finding]:
    """Return the findings if two calls differ: outputs are random, so they cannot be compared with OLD's."""
    layer = next((finding.where for finding in findings if finding.rung == 2 and finding.status == "differs"), None)
    hint = "" if layer is None else f" The first layer that differs from OLD is {layer}."
    weights = [finding for finding in findings if finding.rung == 1]
    others = [
        Finding(finding.rung, "absent", "two calls on one batch differ") for finding in findings if 1 < finding.rung < 8
    ]
    calls = [
        msgspec.structs.replace(finding, message=finding.message + hint, where=layer)
        for finding in findings
        if finding.rung == 8
    ]
    return weights + others + calls


def errors(numbers: Numbers, reference: Numbers, precision: Precision) -> Errors:
    """Return the relative error of each quantity of the reference, by rung.

    Layers that only one side has, and numbers of the reference that are not finite, are left out.
    """
    numbers, reference = with_names_of(numbers, reference)
    noise = NOISE * EPSILON[precision.narrowest]
    by_rung: Errors = {2: layer_errors(numbers.get("layers") or {}, reference.get("layers") or {})}
    if is_finite(reference.get("logits")):
        by_rung[3] = {
            "": relative_error(numbers.get("logits"), reference["logits"]),
            **output_errors(numbers, reference),
        }
    if is_finite(reference.get("loss")):
        by_rung[4] = {"": relative_error(numbers.get("loss"), reference["loss"])}
    if is_finite(reference.get("gradients")):
        by_rung[5] = sketch_errors(numbers.get("gradients", {}), reference["gradients"], noise)
    if "updates" in reference:
        by_rung[6] = update_errors(numbers, reference, precision)
    if is_finite(reference.get("losses")):
        by_rung[7] = step_errors(numbers.get("losses", []), reference["losses"])
        if is_finite(reference.get("trained")):
            error = relative_error(numbers.get("trained"), reference["trained"])
            by_rung[7][f"inference{STEP}{len(reference['losses'])}"] = error
    return {rung: of_rung for rung, of_rung in by_rung.items() if of_rung}


def output_errors(numbers: Numbers, reference: Numbers) -> dict[str, float]:
    """Return the error of each output beside the main one, by ``output boxes``.

    It is infinite for another shape, and for one that is missing on either side.
    """
    ours, theirs = numbers.get("outputs") or {}, reference.get("outputs") or {}
    errors = {f"output {name}".strip(): float("inf") for name in (*theirs, *ours)}
    for name, expected in theirs.items():
        if name in ours and ours[name]["shape"] == expected["shape"]:
            errors[f"output {name}".strip()] = output_difference(ours[name], expected)
    return errors


def output_difference(ours: Mapping[str, Any], expected: Mapping[str, Any]) -> float:
    if ours.get("exact") or expected.get("exact"):
        return 0.0 if ours["numbers"] == expected["numbers"] else UNEQUAL
    return 0.0 if 0 in expected["shape"] else relative_error(ours["numbers"], expected["numbers"])


def without_moved(by_rung: Errors, most: float) -> Errors:
    """Return the errors of the reversed batch without those of outputs beside the main one that are no rounding.

    The batch is not reversed in an output in which it has an unknown place.
    """
    return {
        rung: {where: error for where, error in of_rung.items() if rung != 3 or not where or error <= most}
        for rung, of_rung in by_rung.items()
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
    errors = {name: float("inf") for name in numbers if name not in reference}
    largest = max((expected[0] for expected in reference.values()), default=0.0)
    for name, expected in reference.items():
        ignored = noise * largest + (stored or {}).get(name, 0.0)
        errors[name] = error_beyond(ignored, numbers.get(name), expected)
    return errors


def error_beyond(ignored: float, value: Any, expected: Any) -> float:
    """Return the error of a sketch relative to its norm, of which ``ignored`` does not count."""
    counted = max(ladder.difference(value, expected) - ignored, 0.0)
    return counted / max(expected[0], ignored, SMALLEST)


def update_errors(numbers: Numbers, reference: Numbers, precision: Precision) -> dict[str, float]:
    """Return the error of each update, by ``parameter after step 10``, beyond that of storing the parameter.

    Of what has no gradient, such as running statistics, only that is compared which both have.
    """
    noise, norms = NOISE * EPSILON[precision.narrowest], reference.get("norms", {})
    skipped = rounded_gradients(numbers, reference, precision)
    trained = {*reference.get("gradients", ()), *numbers.get("gradients", ())} - skipped
    dtypes = (reference.get("dtypes") or {}).get("parameters", {})
    errors = dict[str, float]()
    for steps, expected in reference["updates"].items():
        theirs = numbers.get("updates", {}).get(steps, {})
        stored = {name: STORED.get(dtypes.get(name, ""), FLOAT32) * int(steps) * norm for name, norm in norms.items()}
        finite = {name: sketch for name, sketch in expected.items() if is_finite(sketch)}
        of_new, of_old = (
            {name: sketch for name, sketch in each.items() if name in trained} for each in (theirs, finite)
        )
        of_step = sketch_errors(of_new, of_old, noise, stored)
        states = finite.keys() & theirs.keys() - trained - skipped
        for name in sorted(states):
            sizes = (
                max(norms.get(state, 0.0), finite[state][0]) for state in states if layer_of(state) == layer_of(name)
            )
            ignored = noise * max(sizes) + stored.get(name, 0.0)
            of_step[name] = error_beyond(ignored, theirs[name], finite[name])
        errors.update((f"{name}{STEP}{steps}", error) for name, error in of_step.items())
    return errors


def layer_of(name: str) -> str:
    """Return ``1`` of ``1.running_mean``, and ``norm`` of ``norm/moving_mean``."""
    return re.split(r"[./][^./]*$", name)[0]


def rounded_gradients(numbers: Numbers, reference: Numbers, precision: Precision) -> set[str]:
    """Return the names of the parameters whose gradients are not above the rounding of the largest one, in both arms.

    A gradient that is exactly zero in both is none of them.
    """
    ours, theirs = reference.get("gradients") or {}, numbers.get("gradients") or {}
    if not is_finite(ours):
        return set()
    noise = NOISE * EPSILON[precision.narrowest] * max((sketch[0] for sketch in ours.values()), default=0.0)
    both = {name: max(sketch[0], theirs[name][0]) for name, sketch in ours.items() if is_finite(theirs.get(name))}
    return {name for name, norm in both.items() if 0 < norm <= noise}


def with_names_of(numbers: Numbers, reference: Numbers) -> tuple[Numbers, Numbers]:
    """Return both answers under OLD's names of parameters, with the gradients and updates that can be compared.

    NEW says how it loaded OLD's weights. A parameter that it fuses from several is not compared.
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

    def rename(values: Mapping[str, Value]) -> dict[str, Value]:
        return {names[name]: value for name, value in values.items() if name in names}

    updates = {steps: rename(of_step) for steps, of_step in numbers.get("updates", {}).items()}
    kinds = {"gradients": rename(numbers.get("gradients", {})), "updates": updates}
    return {**numbers, **{kind: value for kind, value in kinds.items() if kind in numbers}}


OPERATIONS = 4  # in a message
WAYS = {
    "map": "--weights-map names {count} of NEW's parameters",
    "order": "{count} of NEW's parameters have other names, and were matched by order and shape",
    "shapes": "{count} of NEW's parameters have other names, and were matched by their shapes",
    "checkpoint": "NEW has other parameters, and read OLD's weights from a checkpoint that OLD's library saved",
}


def operations_message(new: Numbers, old: Numbers, again: Numbers) -> str | None:
    """Return which operations a step of NEW calls more or less often than one of OLD; None if it is unknown.

    It is unknown if a profiler does not say it, or says something else in another process of OLD.
    """
    same, parts = [], []
    for phase in ("inference", "training"):
        calls, before, repeated = (of_arm.get(f"{phase}_operations") for of_arm in (new, old, again))
        if not calls or not before or before != repeated:
            continue
        changes = {name: calls.get(name, 0) - before.get(name, 0) for name in sorted({*calls, *before})}
        names = [f"{name} {count:+d}" for name, count in changes.items() if count]
        if names:
            counts = f"{sum(calls.values())} operations, {sum(before.values())} in OLD"
            parts.append(f"A step of {phase} calls {counts}: {first_of(names, OPERATIONS)}")
        else:
            same.append(phase)
    parts += [f"A step of {' and of '.join(same)} calls the same operations"] if same else []
    return ". ".join(parts) or None


def loading(numbers: Numbers) -> str | None:
    """Return how NEW got OLD's weights, if not by equal names."""
    loaded = numbers.get("weights")
    if loaded is None or loaded["way"] not in WAYS:
        return None
    count = sum(ours != theirs for ours, theirs in loaded["names"].items())
    return WAYS[loaded["way"]].format(count=count)


def is_guess(numbers: Numbers) -> bool:
    """Return whether NEW got OLD's weights in one of several possible ways."""
    return bool((numbers.get("weights") or {}).get("guess"))


def input_differences(new: Numbers, again: Numbers) -> tuple[list[str], list[str]]:
    """Return how the values of NEW's example_inputs() differ from OLD's, and what is only said about them.

    ``again`` is OLD in a second process: an input that differs there is random, and not compared. The worker has
    decided what is rounding.
    """

    def differing(numbers: Numbers) -> dict[str, float | None]:
        return {name: error for name, error in (numbers.get("inputs") or {}).items() if error != 0}

    random = differing(again)
    remark = "example_inputs() returns other values of {} in each process, so both arms compute with OLD's"
    return [
        f"{name} has other values in NEW: {describe_error(error)}"
        for name, error in differing(new).items()
        if name not in random
    ], [remark.format(first_of(sorted(random), 1))] if random else []


def own_weights(new: Numbers, again: Numbers) -> dict[str, str]:
    """Return {parameter of NEW: its name in OLD} of those that NEW itself builds with other values than OLD.

    ``again`` is OLD in a second process: what differs there in all elements is random, and left out.
    """
    names = (new.get("weights") or {}).get("names", {})
    random = changed(again) - {*(again.get("places") or ())}
    return {name: names.get(name, name) for name in changed(new) if names.get(name, name) not in random}


def weight_differences(new: Numbers, again: Numbers, seeded: Numbers) -> tuple[list[str], list[str]]:
    """Return which of ``own_weights`` no seed explains, and what is only said about the others.

    ``seeded`` is OLD with other seeds: the elements that they do not change must be equal in NEW. An array that NEW
    fuses from several has no name in OLD: such arrays have at most as many numbers as those of OLD that another seed
    changes.
    """
    files = sorted({*(new.get("files") or ()), *(again.get("files") or ())})
    drawn_in_old, sizes = changed(seeded), seeded.get("sizes") or {}
    names_in_old = {*(seeded.get("own") or ()), *(seeded.get("equal") or ())}
    own_names, errors = own_weights(new, again), new.get("own") or {}
    messages = [
        f"{name} has other values in NEW, and another seed does not change it: {describe_error(errors[name])}"
        for name, of_old in own_names.items()
        if of_old in names_in_old - drawn_in_old
    ]
    partly = {
        name: fixed_elements(new, name, seeded, own_names[name])
        for name in own_names
        if own_names[name] in drawn_in_old
    }
    messages += [
        f"{name} has other values in NEW, also where another seed does not change it ({count:,} of its "
        f"{sizes[own_names[name]]:,} numbers): {describe_error(errors[name])}"
        for name, count in partly.items()
        if count
    ]
    fused = [name for name, of_old in own_names.items() if of_old not in names_in_old]
    names = (new.get("weights") or {}).get("names", {})
    paired = {names.get(name, name) for name in (*errors, *(new.get("equal") or ()))}
    count = sum((new.get("sizes") or {}).get(name, 0) for name in fused)
    room = sum(sizes.get(name, 0) for name in drawn_in_old - paired)
    if count > room:
        messages.append(
            f"{first_of(sorted(fused), 1)} have other values in NEW, and of these {count:,} numbers, another seed "
            f"changes only {room:,} in OLD"
        )
    if messages and files:
        messages[-1] += f" (weights are read from {', '.join(files)})"
    drawn = [name for name, count in partly.items() if not count] + (fused if count <= room else [])
    remark = f"NEW draws other initial weights from the same seed ({first_of(sorted(drawn), 1)})"
    return messages, [remark] if drawn else []


def fixed_elements(new: Numbers, name: str, seeded: Numbers, of_old: str) -> int:
    """Return how many elements of a parameter differ in NEW although no seed changes them in OLD."""
    sizes = [(numbers.get("sizes") or {}).get(parameter) for numbers, parameter in ((new, name), (seeded, of_old))]
    if of_old not in (seeded.get("places") or {}) or sizes[0] != sizes[1]:
        return 0
    return int((mask_of(new, name) & ~mask_of(seeded, of_old)).sum())


def changed(numbers: Numbers) -> set[str]:
    """Return the parameters that an arm itself builds with other values than those that it has loaded."""
    return {*(numbers.get("own") or ())}


def describe_error(error: float | None) -> str:
    return describe(float("inf") if error is None else error, 0.0).partition(", tolerance")[0]


def judge(rung: int, by_place: Mapping[str, float], rounding: Rounding) -> Finding:
    """Return the Finding of a rung: the first layer that differs, or the quantity nearest to its tolerance."""
    by_place = {where: error for where, error in by_place.items() if not rounding.hides(rung, where)}
    if not by_place:
        return Finding(rung, "absent", NO_REFERENCE)
    limits = {where: rounding.limit(rung, where) for where in by_place}
    ratios = {where: error / limits[where] for where, error in by_place.items()}
    if rung == 2:  # in the order of the network: an error continues in the layers after it
        where = next((name for name, value in ratios.items() if value > 1), largest(ratios))
    else:
        where = largest(ratios)
    error, limit = by_place[where], limits[where]
    status = "agrees" if ratios[where] <= 1 else "differs"
    reason = "" if status == "agrees" else f"{detail(rung, where)}{describe(error, limit)}"
    return Finding(rung, status, reason, error, limit, where or None)


def tolerance(rung: int, where: str, precision: str) -> float:
    later = rung == 6 and not where.endswith(FIRST_STEP)
    return min(TOLERANCE[precision][rung] * (LATER_FACTOR if later else 1), MOST)


def largest(values: Mapping[str, float]) -> str:
    return max(values, key=lambda name: values[name])


def describe(error: float, limit: float) -> str:
    if error == UNEQUAL:
        return "not equal"
    if not numpy.isfinite(error):
        return "not finite, of another shape, or missing on one side"
    return f"relative error {error:.2g}, tolerance {limit:.2g}"


def detail(rung: int, where: str) -> str:
    return {2: f"output of {where}: ", 5: f"gradient of {where}: ", 6: f"update of {where}: "}.get(
        rung, f"{where}: " if where else ""
    )


def summary(findings: Iterable[Finding]) -> str:
    """Return ``largest relative error 3.4e-07 (gradients, conv3.weight; tolerance 1e-04)``."""
    compared = [finding for finding in findings if finding.error is not None and finding.limit]
    if not compared:
        return "nothing could be compared"
    worst = max(compared, key=lambda finding: (finding.error or 0.0) / (finding.limit or 1.0))
    where = f", {worst.where}" if worst.where else ""
    return f"largest relative error {worst.error:.1e} ({TITLES[worst.rung - 1]}{where}; tolerance {worst.limit:.0e})"
