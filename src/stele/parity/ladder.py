"""The ladder: a recipe's numbers held against the golden ones, rung by rung, from its weights to its losses.

1 weights      what was loaded is read back, bit for bit
2 layers       the outputs of single layers, where the framework lets one look inside
3 logits       or features
4 loss         at the start: of ten classes about ln 10, of two about ln 2
5 gradients    of every parameter
6 updates        of every parameter, after one optimiser step and after ten
7 losses       of twenty steps
8 inference    is inference: two calls agree, no dropout, nothing kept for a gradient
9 repetition   the same seed gives the same bits in another process, dropout and all
10 accuracy    of networks trained from several seeds is that of the reference

Contains tolerances and messages, but no worker. Errors are relative: to the largest expected number for logits and
losses, to the norm of each array for gradients, updates and layers. ``ulp`` is the unit in the last place.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy

from stele import statistics
from stele.errors import SteleError

TITLES = (
    "weights", "layers", "logits", "loss", "gradients", "updates", "losses", "inference", "repetition", "accuracy",
)  # fmt: skip
PHASE = {1: "infer", 2: "infer", 3: "infer", 4: "train", 5: "train", 6: "train", 7: "train", 8: "infer"}

# the largest relative error allowed, by precision and rung
TOLERANCE = {
    "fp32": {2: 1e-5, 3: 1e-5, 4: 1e-5, 5: 1e-4, 6: 1e-4, 7: 1e-4},
    "tf32": {2: 1e-2, 3: 1e-2, 4: 1e-3, 5: 2e-2, 6: 2e-2, 7: 1e-2},
    "bf16": {2: 5e-2, 3: 5e-2, 4: 1e-2, 5: 3e-1, 6: 3e-1, 7: 5e-2},
}
# how much more some may be off: the sums of ResNet-50 are longer; and of the millions of ReLUs and pools that the CNN
# goes through in twenty steps, and ResNet-50 in one, rounding decides a few, which turns gradients by some per cent
FACTOR = {"resnet50": {2: 10, 3: 10, 4: 10, 5: 1000, 6: 1000}, "cnn": {7: 10}}
LATER = 100  # the same, for updates after the first step
EPSILON = {"fp32": 2.0**-23, "tf32": 2.0**-10, "bf16": 2.0**-7}
SIGNIFICANCE = 0.05  # of the equivalence of accuracies
FLOAT32 = 2.0**-24  # what storing a parameter rounds off, relative, in every precision


class Finding(NamedTuple):
    """How a recipe stands on one rung: "agrees", "differs", or "absent" where there is nothing to hold."""

    rung: int
    status: str
    message: str = ""
    error: float | None = None  # relative, the largest
    limit: float | None = None
    where: str | None = None  # the parameter or layer of the largest error

    @property
    def title(self) -> str:
        return TITLES[self.rung - 1]


class LadderResult(NamedTuple):
    """A recipe's way up: what it found, of which releases, and the day, as ISO 8601 has it."""

    findings: list[Finding]
    versions: dict[str, str | None]
    day: str


def compare(numbers: dict[str, Any], golden: dict[str, Any], *, task: str, precision: str) -> list[Finding]:
    """A Finding for each rung that ``numbers``, one or more answers of a worker to ``parity`` put together, can show.

    Raises SteleError where the golden numbers are stale.
    """
    if numbers["task"] != golden["task"]:
        raise SteleError(
            f"the golden numbers of '{task}' are stale: the Task has changed. Make them anew: stele parity --rebase"
        )
    return [
        check(rung, limit(rung, task, precision), numbers, golden)
        for rung, (kind, check) in RUNGS.items()
        if kind in numbers
    ]


def limit(rung: int, task: str, precision: str) -> float:
    """The largest relative error that a rung allows; 0 for one that is held bit for bit."""
    return TOLERANCE[precision].get(rung, 0.0) * FACTOR.get(task, {}).get(rung, 1)


def first_difference(findings: Iterable[Finding]) -> Finding | None:
    """The first rung that breaks."""
    return next((finding for finding in findings if finding.status == "differs"), None)


def highest_rung(findings: Iterable[Finding]) -> int:
    """The highest rung below the first that breaks; 0 if there is none."""
    highest = 0
    for finding in findings:
        if finding.status == "differs":
            break
        highest = finding.rung if finding.status == "agrees" else highest
    return highest


def message(finding: Finding) -> str:
    """``broken at rung 3, logits: the error of the logits is 0.3, at most 1e-05 is allowed``"""
    return f"broken at rung {finding.rung}, {finding.title}: {finding.message}"


# a check is of (rung, limit, numbers, golden)


def weights(rung: int, limit: float, numbers: dict[str, Any], golden: dict[str, Any]) -> Finding:
    unequal = numbers["unequal"]
    if not unequal:
        return Finding(rung, "agrees", error=0.0)
    name, facts = next(iter(unequal.items()))
    more = f", and {len(unequal) - 1} more parameters" if len(unequal) > 1 else ""
    return Finding(
        rung, "differs", f"{name} reads back otherwise than loaded: {how(facts)}{more}", where=name
    )


def how(facts: dict[str, Any]) -> str:
    """What became of a parameter on its way in and out."""
    if facts["deviation"] is None:
        return "it is missing"
    if facts["order"]:
        return "the same numbers in another order, so in another layout or gate order"
    return (
        f"{facts['differ']:,} of {facts['of']:,} numbers differ, their standard deviation {facts['deviation']:.3g} "
        f"in place of {facts['expected']:.3g}, as from another initialiser"
    )


def layers(rung: int, limit: float, numbers: dict[str, Any], golden: dict[str, Any]) -> Finding:
    if numbers["layers"] is None:
        return Finding(rung, "absent", "the recipe's layers are one function")
    ours = {name: golden["layers"][name] for name in golden["layers"] if name in numbers["layers"]}
    errors = sketch_errors(numbers["layers"], ours)
    # in the order of the network: what goes wrong in one layer goes on in those after it
    first = next(({name: error} for name, error in errors.items() if not error <= limit), errors)
    return judged(rung, limit, first, "the output of {}")


def logits(rung: int, limit: float, numbers: dict[str, Any], golden: dict[str, Any]) -> Finding:
    return judged(rung, limit, {"": relative_error(numbers["logits"], golden["logits"])}, "the logits")


def loss(rung: int, limit: float, numbers: dict[str, Any], golden: dict[str, Any]) -> Finding:
    error = relative_error(numbers["loss"], golden["loss"])
    detail = f"the loss at the start, {numbers['loss']} in place of {golden['loss']:.6g},"
    return judged(rung, limit, {"": error}, detail)


def gradients(rung: int, limit: float, numbers: dict[str, Any], golden: dict[str, Any]) -> Finding:
    return judged(rung, limit, sketch_errors(numbers["gradients"], golden["gradients"]), "the gradient of {}")


def updates(rung: int, limit: float, numbers: dict[str, Any], golden: dict[str, Any]) -> Finding:
    """Relative to the move itself and to what storing a parameter rounds off; of the first step, if the later hold."""
    found = []
    for steps, expected in golden["updates"].items():
        allowed = limit if int(steps) == 1 else LATER * limit
        slack = {name: FLOAT32 * int(steps) * golden["norms"][name] / allowed for name in expected}
        errors = sketch_errors(numbers["updates"].get(steps, {}), expected, slack)
        found.append(judged(rung, allowed, errors, f"the update of {{}} in {steps} steps"))
    return first_difference(found) or found[0]


def losses(rung: int, limit: float, numbers: dict[str, Any], golden: dict[str, Any]) -> Finding:
    if numbers["losses"][:1] == numbers["losses"]:
        return Finding(rung, "absent", "one step is all that a batch of two images bears")
    errors = step_errors(numbers["losses"], golden["losses"])
    return judged(rung, limit, errors, "the loss of {}")


def inference(rung: int, limit: float, numbers: dict[str, Any], golden: dict[str, Any]) -> Finding:
    if not numbers["repeats"]:
        return Finding(rung, "differs", "two calls on one batch differ: dropout, or another chance, is on")
    if numbers["tracked"]:
        return Finding(rung, "differs", "the logits still hold on to what a gradient would need")
    return Finding(rung, "agrees")


Check = Callable[[int, float, dict[str, Any], dict[str, Any]], Finding]
# by rung: the field of an answer that shows it, and its check
RUNGS: dict[int, tuple[str, Check]] = {
    1: ("unequal", weights),
    2: ("layers", layers),
    3: ("logits", logits),
    4: ("loss", loss),
    5: ("gradients", gradients),
    6: ("updates", updates),
    7: ("losses", losses),
    8: ("repeats", inference),
}


def repetition(answers: list[dict[str, Any]], *, promised: str | None) -> Finding:
    """Rung 9, of two answers to the phase "repeat"; ``promised`` is why a framework promises no such thing, or None."""
    if promised is not None:
        return Finding(9, "absent", promised)
    first, second = answers
    if first["losses"] != second["losses"]:
        step = next(
            i
            for i, pair in enumerate(zip(first["losses"], second["losses"], strict=True), 1)
            if len(set(pair)) > 1
        )
        return Finding(9, "differs", f"two launches from one seed part at the loss of step {step}")
    if first["digest"] != second["digest"]:
        return Finding(9, "differs", "two launches from one seed have the same losses, but other parameters")
    return Finding(9, "agrees", error=0.0)


def accuracy(values: list[float], reference: list[float]) -> Finding:
    """Rung 10: equivalent by TOST at 5 %, the margin being two standard deviations of the reference's seeds."""
    margin = 2 * float(numpy.std(reference, ddof=1))
    p = statistics.equivalence(values, reference, margin=margin)
    ours, theirs = statistics.trimmed_mean(values), statistics.trimmed_mean(reference)
    said = f"{len(values)} seeds average {ours:.2%}, the reference {theirs:.2%}"
    if p < SIGNIFICANCE:
        return Finding(10, "agrees", said, error=abs(ours - theirs), limit=margin)
    return Finding(
        10,
        "differs",
        f"{said}: not shown to lie within {margin:.2%} of it, p {p:.2g}",
        abs(ours - theirs),
        margin,
    )


def within(values: list[float], low: float, high: float) -> Finding:
    """Rung 10, where accuracies of single runs were published: the average lies among them."""
    average = statistics.trimmed_mean(values)
    said = f"{len(values)} seeds average {average:.2%}, the published rows lie from {low:.1%} to {high:.1%}"
    return Finding(10, "agrees" if low <= average <= high else "differs", said)


def judged(rung: int, limit: float, errors: dict[str, float], noun: str) -> Finding:
    """The largest of ``errors``, each under its name, held against ``limit``."""
    where = max(errors, key=lambda name: errors[name])
    error = errors[where]
    if error <= limit:  # a NaN is no agreement
        return Finding(rung, "agrees", error=error, limit=limit, where=where)
    said = f"the error of {noun.format(where)} is {error:.2g}, at most {limit:g} is allowed"
    return Finding(rung, "differs", said, error, limit, where)


def sketch_errors(
    numbers: dict[str, Any], golden: dict[str, Any], slack: dict[str, float] | None = None
) -> dict[str, float]:
    """The relative error of each sketch; infinite where one is missing, or is of nothing that the Task has."""
    found = dict.fromkeys(numbers.keys() - golden.keys(), float("inf"))
    for name, expected in golden.items():
        scale = expected[0] + (slack[name] if slack else 0.0)
        found[name] = difference(numbers.get(name), expected) / scale
    return found


def step_errors(numbers: list[Any], golden: list[float]) -> dict[str, float]:
    """The relative error of the loss of each step."""
    if len(numbers) != len(golden):
        return {f"steps: {len(numbers)} in place of {len(golden)}": float("inf")}
    pairs = enumerate(zip(numbers, golden, strict=True), 1)
    return {f"step {step}": relative_error(value, expected) for step, (value, expected) in pairs}


def relative_error(value: Any, expected: Any) -> float:
    """The largest absolute difference over the largest absolute expected number."""
    return difference(value, expected) / float(abs(numpy.array(expected, numpy.float64)).max())


def difference(value: Any, expected: Any) -> float:
    """The largest absolute difference; infinite where shapes differ, or a number is missing or not finite."""
    computed, target = numpy.array(value, numpy.float64), numpy.array(expected, numpy.float64)
    if computed.shape != target.shape or not numpy.isfinite(computed).all():
        return float("inf")
    return float(abs(computed - target).max())
