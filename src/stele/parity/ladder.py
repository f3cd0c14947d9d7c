"""The ladder: compare a recipe's numbers with the golden numbers, rung by rung, from its weights to its losses.

1 weights      the values read back equal the values loaded, bit for bit
2 layers       the outputs of single layers, where the framework gives access to them
3 logits       or features
4 loss         before the first step: about ln 10 for ten classes, about ln 2 for two
5 gradients    of every parameter
6 updates      of every parameter, after one optimiser step and after ten
7 losses       of twenty steps
8 inference    two calls give equal results; no dropout, nothing stored for gradients
9 repetition   the same seed gives the same bits in a second process, with dropout
10 accuracy    of networks trained from several seeds, compared with the reference
11 devices     several devices compute the same from a batch as one device (``stele.parity.devices``)

Contains tolerances and messages, but no worker. Errors are relative: to the largest expected number for logits and
losses, to the norm of each array for gradients, updates and layers. ``ulp`` is the unit in the last place.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import zip_longest
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy

from stele import statistics
from stele.errors import SteleError
from stele.measuring.answers import Numbers
from stele.measuring.settings import Settings
from stele.schema import about
from stele_suite import tasks

TITLES = (
    "weights",
    "layers",
    "logits",
    "loss",
    "gradients",
    "updates",
    "losses",
    "inference",
    "repetition",
    "accuracy",
    "devices",
)
SINGULAR = ("loss", "inference", "repetition", "accuracy")
COMPARED = (2, 3, 4, 5, 6, 7)  # the rungs that need golden numbers
PHASE = {1: "infer", 2: "infer", 3: "infer", 4: "train", 5: "train", 6: "train", 7: "train", 8: "infer"}

# the largest accepted relative error, by precision and rung
TOLERANCE = {
    "fp32": {2: 1e-5, 3: 1e-5, 4: 1e-5, 5: 1e-4, 6: 1e-4, 7: 1e-4},
    "tf32": {2: 1e-2, 3: 1e-2, 4: 1e-3, 5: 2e-2, 6: 2e-2, 7: 1e-2},
    "bf16": {2: 5e-2, 3: 5e-2, 4: 1e-2, 5: 3e-1, 6: 3e-1, 7: 5e-2},
}
# the error of Winograd's F(4x4, 3x3) in float32 is 7 times that of a direct convolution (Lavin and Gray, 2016, table 3)
WINOGRAD_FACTOR = 10
LATER_FACTOR = 100  # on the tolerance of updates after more than one step
EPSILON = {"fp32": 2.0**-23, "tf32": 2.0**-10, "bf16": 2.0**-7}
SIGNIFICANCE = 0.05  # of the equivalence test of accuracies
FLOAT32 = 2.0**-24  # relative rounding error of storing a parameter, in every precision
SMALLEST = 1e-30  # a number to divide by
VANISHING = 1e-9  # a gradient of this part of the largest one is 0, but for the rounding of the oracle


class Finding(msgspec.Struct, frozen=True):
    """The result of one rung."""

    rung: Annotated[int, about("1 to 10")]
    status: Annotated[str, about("`agrees`, `differs`, or `absent` if there is nothing to compare")]
    message: Annotated[str, about("what differs, and the likely cause; may be empty")] = ""
    error: Annotated[
        float | None, about("largest error; of rung 10, the difference of the average accuracies", "relative")
    ] = None
    limit: Annotated[float | None, about("tolerance", "relative")] = None
    where: Annotated[str | None, about("parameter, layer or step of the largest error")] = None

    def __post_init__(self) -> None:
        if not 1 <= self.rung <= len(TITLES):
            raise ValueError(f"there is no rung {self.rung}")

    @property
    def title(self) -> str:
        return TITLES[self.rung - 1]


class NamedFinding(Finding, frozen=True, rename={"name": "title"}):
    """The result of one rung, with its name."""

    name: Annotated[str, about("name of the rung")] = ""


def named(finding: Finding) -> NamedFinding:
    """Return a finding with the name of its rung."""
    return NamedFinding(**msgspec.structs.asdict(finding) | {"name": finding.title})


class RecipeResult(msgspec.Struct, frozen=True):
    """The result of one recipe."""

    framework: Annotated[str, about("name of the environment")]
    versions: Annotated[dict[str, str | None], about("version or null by package")]
    day: Annotated[str, about("date of the measurement", "ISO 8601")]
    task: Annotated[str, about("task")]
    reached: Annotated[int, about("highest rung that agrees below the first difference; 0 if there is none")]
    rungs: Annotated[tuple[NamedFinding, ...], about("the rungs in their order")]


class LadderFile(msgspec.Struct, frozen=True):
    """`baselines/ladder.json` is an example. `stele parity --merge` reads it."""

    settings: Settings
    epsilon: Annotated[float, about("unit in the last place of the precision")]
    recipes: Annotated[tuple[RecipeResult, ...], about("one for each recipe")]


class LadderResult(NamedTuple):
    """The findings of a recipe, the versions of its framework, and the day in ISO 8601.

    ``failure`` says why a worker failed: then the findings say nothing about its numbers.
    """

    findings: list[Finding]
    versions: dict[str, str | None]
    day: str
    failure: str | None = None


def compare(numbers: Numbers, golden: Numbers, *, task: str, precision: str, device: str = "cpu") -> list[Finding]:
    """Return a Finding for each rung that ``numbers`` covers.

    ``numbers`` are a worker's answers to ``parity``, merged. Raises SteleError if the golden numbers are out of date.
    """
    if numbers.get("task") != golden.get("task"):
        raise SteleError(
            f"The golden numbers of '{task}' are out of date because the task changed. "
            "Regenerate them with: stele parity --rebase"
        )
    kinds = [RUNGS[rung][0] for rung in COMPARED]
    missing = [kind for kind in kinds if kind in numbers and kind not in golden]
    if missing:
        raise SteleError(
            f"The golden numbers of '{task}' have no {missing[0]}. Regenerate them with: stele parity --rebase"
        )
    return [
        check(rung, limit(rung, task, precision, device), numbers, golden)
        for rung, (kind, check) in RUNGS.items()
        if kind in numbers
    ]


def limit(rung: int, task: str, precision: str, device: str = "cpu") -> float:
    """Return the tolerance of a rung, a relative error; 0 for a rung that is compared bit for bit.

    A Task may have a factor on it, where its sums are long or rounding decides a branch. Convolutions on a GPU have
    one, because cuDNN may select Winograd's algorithm.
    """
    of_task = tasks.load(task)
    winograd = device != "cpu" and precision == "fp32" and of_task.UNIT == "images"
    factor = getattr(of_task, "FACTOR", {}).get(rung, 1) * (WINOGRAD_FACTOR if winograd else 1)
    return TOLERANCE[precision].get(rung, 0.0) * factor


def first_difference(findings: Iterable[Finding]) -> Finding | None:
    """Return the Finding of the lowest rung that differs, or None."""
    return next((finding for finding in findings if finding.status == "differs"), None)


def highest_rung(findings: Iterable[Finding]) -> int:
    """Return the highest rung that agrees below the first difference; 0 if there is none."""
    highest = 0
    for finding in findings:
        if finding.status == "differs":
            break
        highest = finding.rung if finding.status == "agrees" else highest
    return highest


def message(finding: Finding) -> str:
    """Return ``logits differ (rung 3): relative error 0.3, tolerance 1e-05``, or ``the output boxes differs ...``."""
    if finding.rung == 1 and finding.where is None:  # the worker failed, so there is no parameter
        return f"failed (rung 1): {finding.message}"
    output = f"{finding.where}: " if finding.rung == 3 and finding.where else ""
    if output and finding.message.startswith(output):  # of several outputs, one beside the logits
        return f"the {finding.where} differs (rung 3): {finding.message.removeprefix(output)}"
    verb = "differs" if finding.title in SINGULAR else "differ"
    return f"{finding.title} {verb} (rung {finding.rung}): {finding.message}"


# the checks: (rung, limit, numbers, golden) -> Finding


def weights(rung: int, limit: float, numbers: Numbers, golden: Numbers) -> Finding:
    unequal = numbers["unequal"]
    if not unequal:
        return Finding(rung, "agrees", error=0.0)
    name, facts = next(iter(unequal.items()))
    more = f" {len(unequal) - 1} more parameters differ." if len(unequal) > 1 else ""
    return Finding(rung, "differs", f"{name}: {describe_mismatch(facts)}{more}", where=name)


def describe_mismatch(facts: Mapping[str, Any]) -> str:
    """Return how the values of a parameter differ from the loaded ones, and the advice."""
    if facts["deviation"] is None:
        return "missing from the values read back. Check load()."
    if facts.get("rounded"):
        return f"read back rounded to {facts['rounded']}. Check the default dtype."
    if facts["order"]:
        return "values read back in a different order than loaded. Check the layout or the gate order in load()."
    return (
        f"{facts['differ']:,} of {facts['of']:,} values read back differ from those loaded; standard deviation "
        f"{facts['deviation']:.3g} instead of {facts['expected']:.3g}. Check for a different initialiser."
    )


def layers(rung: int, limit: float, numbers: Numbers, golden: Numbers) -> Finding:
    if numbers["layers"] is None:
        return Finding(rung, "absent", "the recipe's layers are one function")
    expected = {name: golden["layers"][name] for name in golden["layers"] if name in numbers["layers"]}
    errors = sketch_errors(numbers["layers"], expected)
    # in the order of the network: an error in one layer propagates to the later ones, so report the first
    decisive = next(({name: error} for name, error in errors.items() if not error <= limit), errors)
    return judge_errors(rung, limit, decisive, "output of {}: ")


def logits(rung: int, limit: float, numbers: Numbers, golden: Numbers) -> Finding:
    return judge_errors(rung, limit, {"": relative_error(numbers["logits"], golden["logits"])}, "")


def loss(rung: int, limit: float, numbers: Numbers, golden: Numbers) -> Finding:
    error = relative_error(numbers["loss"], golden["loss"])
    detail = f"{numbers['loss']} instead of {golden['loss']:.6g}: "
    return judge_errors(rung, limit, {"": error}, detail)


def gradients(rung: int, limit: float, numbers: Numbers, golden: Numbers) -> Finding:
    """Compare the gradients. A shift before a batch normalisation has none: its error is relative to the largest."""
    expected = golden["gradients"]
    errors = sketch_errors(numbers["gradients"], expected, slack_of_zeros(expected))
    return judge_errors(rung, limit, errors, "gradient of {}: ")


def updates(rung: int, limit: float, numbers: Numbers, golden: Numbers) -> Finding:
    """Compare the updates after one step and after ten; report the first that differs.

    Errors are relative to the norm of the update plus the rounding error of storing the parameter; those of a
    parameter without a gradient are relative to the largest update.
    """
    findings = []
    for steps, expected in golden["updates"].items():
        allowed = limit if int(steps) == 1 else LATER_FACTOR * limit
        slack = {
            name: size + FLOAT32 * int(steps) * golden["norms"][name] / allowed
            for name, size in slack_of_zeros(expected).items()
        }
        errors = sketch_errors(numbers["updates"].get(steps, {}), expected, slack)
        findings.append(judge_errors(rung, allowed, errors, f"update of {{}} after step {steps}: "))
    return first_difference(findings) or findings[0]


def losses(rung: int, limit: float, numbers: Numbers, golden: Numbers) -> Finding:
    if numbers["losses"][:1] == numbers["losses"]:
        return Finding(rung, "absent", "only one step: a batch of two images allows no more")
    errors = step_errors(numbers["losses"], golden["losses"])
    return judge_errors(rung, limit, errors, "{}: ")


def inference(rung: int, limit: float, numbers: Numbers, golden: Numbers) -> Finding:
    if not numbers["repeats"]:
        return Finding(rung, "differs", "two calls on one batch differ. Check that dropout is off.")
    if numbers.get("tracked"):
        return Finding(rung, "differs", "the logits keep data for gradients. Turn gradient recording off.")
    return Finding(rung, "agrees")


Check = Callable[[int, float, Numbers, Numbers], Finding]
# by rung: the key of a worker's answer that it needs, and its check
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


def repetition(answers: list[Numbers], *, nondeterminism: str | None) -> Finding:
    """Return the Finding of rung 9: two answers to the phase "repeat", compared bit for bit.

    ``nondeterminism`` is the reason why a framework does not promise repeatable results, or None.
    """
    if nondeterminism is not None:
        return Finding(9, "absent", nondeterminism)
    earlier, later = answers
    if earlier["losses"] != later["losses"]:
        pairs = enumerate(zip_longest(earlier["losses"], later["losses"]), 1)
        step = next(number for number, (first, second) in pairs if first != second)
        return Finding(9, "differs", f"two launches from one seed have different losses from step {step} on")
    if earlier["digest"] != later["digest"]:
        return Finding(9, "differs", "two launches from one seed have equal losses, but different parameters")
    return Finding(9, "agrees", error=0.0)


def accuracy(values: list[float], reference: list[float]) -> Finding:
    """Return the Finding of rung 10: are the accuracies equivalent to the reference (TOST at 5 %)?

    The margin is two standard deviations of the reference's seeds. Accuracies are fractions.
    """
    margin = 2 * float(numpy.std(reference, ddof=1))
    p = statistics.equivalence_p(values, reference, margin=margin)
    average, expected = statistics.trimmed_mean(values), statistics.trimmed_mean(reference)
    summary = f"{len(values)} seeds average {average:.2%}, the reference {expected:.2%}"
    if p < SIGNIFICANCE:
        return Finding(10, "agrees", summary, error=abs(average - expected), limit=margin)
    return Finding(
        10,
        "differs",
        f"{summary}: not shown to be equivalent (margin {margin:.2%}, p {p:.2g})",
        abs(average - expected),
        margin,
    )


def within_range(values: list[float], low: float, high: float) -> Finding:
    """Return the Finding of rung 10 where single results are published: is the average inside their range?"""
    average = statistics.trimmed_mean(values)
    summary = f"{len(values)} seeds average {average:.2%}, the published results {low:.1%} to {high:.1%}"
    return Finding(10, "agrees" if low <= average <= high else "differs", summary)


def judge_errors(rung: int, limit: float, errors: dict[str, float], prefix: str) -> Finding:
    """Return the Finding for the largest of ``errors``, by name, compared with ``limit``.

    ``prefix`` starts the message; "{}" in it is replaced by the name of the largest error.
    """
    if not errors:
        return Finding(rung, "absent", "there is nothing to compare")
    where = max(errors, key=lambda name: errors[name])
    error = errors[where]
    if error <= limit:  # false for NaN
        return Finding(rung, "agrees", error=error, limit=limit, where=where)
    reason = f"{prefix.format(where)}relative error {error:.2g}, tolerance {limit:g}"
    return Finding(rung, "differs", reason, error, limit, where)


def sketch_errors(numbers: Numbers, golden: Numbers, slack: dict[str, float] | None = None) -> dict[str, float]:
    """Return the relative error of each sketch; infinite if one is missing, or has no golden counterpart.

    ``slack`` is added to the norm that the error is relative to.
    """
    errors = dict.fromkeys(numbers.keys() - golden.keys(), float("inf"))
    for name, expected in golden.items():
        scale = max(expected[0] + (slack[name] if slack else 0.0), SMALLEST)
        errors[name] = difference(numbers.get(name), expected) / scale
    return errors


def slack_of_zeros(golden: Numbers) -> dict[str, float]:
    """Return the largest norm for each sketch that is 0 but for rounding, and 0 for the others."""
    largest = max((sketch[0] for sketch in golden.values()), default=0.0)
    return {name: largest if sketch[0] < VANISHING * largest else 0.0 for name, sketch in golden.items()}


def step_errors(numbers: list[Any], golden: list[float]) -> dict[str, float]:
    """Return the relative error of the loss of each step; infinite if the number of steps differs."""
    if len(numbers) != len(golden):
        return {f"{len(numbers)} steps instead of {len(golden)}": float("inf")}
    pairs = enumerate(zip(numbers, golden, strict=True), 1)
    return {f"step {step}": relative_error(value, expected) for step, (value, expected) in pairs}


def relative_error(value: Any, expected: Any) -> float:
    """Return the largest absolute difference over the largest absolute expected number."""
    largest = float(abs(numpy.array(expected, numpy.float64)).max())
    return difference(value, expected) / max(largest, SMALLEST)


def difference(value: Any, expected: Any) -> float:
    """Return the largest absolute difference; infinite if shapes differ, or a number is missing or not finite."""
    try:
        computed, target = numpy.array(value, numpy.float64), numpy.array(expected, numpy.float64)
    except (TypeError, ValueError):  # the rows have different lengths, or are no numbers
        return float("inf")
    if computed.shape != target.shape or not numpy.isfinite(computed).all():
        return float("inf")
    return float(abs(computed - target).max())
