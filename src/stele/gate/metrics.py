"""The metrics of a Run: how each is computed, its thresholds, and the kinds of launch that measure it.

Long launches time the steps. Short launches measure memory; they are cheap, so there can be many. Their allocator
returns what is freed. One that keeps freed memory makes step times repeatable, but makes memory differ by a third from
launch to launch. With the C library's allocator as it is, the peak of JAX has several levels, which differ by a tenth:
what the allocator keeps depends on which of its threads frees first. Every launch measures the first step and the
import. The metrics of MORE have launches of their own, and are judged only if they are selected.

Two thresholds are fractions of growth. ``tolerance``: growth that is accepted. ``margin``: growth
that has to be ruled out before the metric passes; never below the tolerance.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy

from stele import statistics
from stele.errors import SteleError
from stele.measuring.run import PHASES, Options, Run
from stele.measuring.settings import Settings
from stele.text import COUNT, DURATION, HIGHER, LOWER, SIZE, Words, unknown_message
from stele.time_to_accuracy.summary import dawnbench_seconds
from stele_worker.protocol import TIME_TO_ACCURACY

Value = float | int | None
MIN_STEPS = 8  # that are compared
SHORT_SCALE = "smoke"  # of short launches
SHORT_STEPS = 3  # the optimizer has its state after one
LONG, SHORT, LATENCY, BLOCKS, WARM, NEW_BATCH = "long", "short", "latency", "blocks", "warm", "new-batch"
SIZES, PROFILED, LOADER, PEAK, TRAININGS = "sizes", "profiled", "loader", "peak", "trainings"
MOST_TRAININGS = 5  # of a launch, until one reaches the target


class Kind(NamedTuple):
    """How a launch differs from a long one."""

    short: bool = False  # a small scale, SHORT_STEPS, and another allocator: see ``launch_settings``
    steps: int | None = None  # None: chosen from their durations
    plain: bool = False  # the C library's allocator as it is
    options: Options = Options()  # of the worker's request
    cached: bool = False  # the framework finds the compilations of an earlier launch
    trains: bool = False  # to a target, at the scale of the trainings, each launch from seeds of its own
    shared: bool = False  # a launch measures all phases of a task, one after the other


KINDS = {
    LONG: Kind(shared=True),
    SHORT: Kind(short=True, shared=True),
    LATENCY: Kind(steps=200, options=Options(batch=1)),
    BLOCKS: Kind(steps=16, options=Options(blocks=8)),
    WARM: Kind(short=True, cached=True),
    NEW_BATCH: Kind(short=True, options=Options(new_batch=True)),
    SIZES: Kind(steps=SHORT_STEPS, options=Options(sizes=16)),
    PROFILED: Kind(steps=SHORT_STEPS, options=Options(profile=20)),
    LOADER: Kind(steps=SHORT_STEPS, options=Options(loader=24)),
    PEAK: Kind(steps=SHORT_STEPS, plain=True),
    TRAININGS: Kind(options=Options(attempts=MOST_TRAININGS), trains=True),
}


class Metric(NamedTuple):
    """A number of a Run, of which less is better."""

    name: str
    unit: str
    meaning: str  # a sentence: how to read it
    tolerance: float
    margin: float
    noise: float  # the expected relative standard deviation of a launch, used until launches show it
    value: Callable[[Run], Value]
    kinds: tuple[str, ...] = (LONG, SHORT)  # of launches that measure it
    phases: tuple[str, ...] = PHASES
    by_turn: bool = False  # whether the steps of launches that took turns are compared turn by turn
    least: Callable[[Run], Value] | None = None  # of a Run without a number: it has at least this
    words: Words = DURATION  # how a change is said

    def values(self, runs: Mapping[str, Run]) -> dict[str, float] | None:
        """Return the logarithm of each Run's number, comparable within these Runs; None if one is unknown.

        If some Runs have a number, the others count with their ``least``, which makes the difference too small.
        """
        if self.by_turn and all(run.options.turn for run in runs.values()):
            return compare_steps(runs)
        numbers = {side: self.value(run) for side, run in runs.items()}
        if self.least is not None and any(numbers.values()):
            numbers = {side: number or self.least(runs[side]) for side, number in numbers.items()}
        logarithms = {side: math.log(number) for side, number in numbers.items() if number}
        return logarithms if len(logarithms) == len(numbers) else None

    def difference(self, old: Run, new: Run) -> float | None:
        """Return log(new) - log(old) of two Runs; None if one of them has no number."""
        values = self.values({"old": old, "new": new})
        return None if values is None else values["new"] - values["old"]


def step_seconds(run: Run) -> float:
    """Return the tenth percentile of the counted steps, in seconds.

    Other processes can only make a step longer, so the low end varies least between launches. It misses events that
    affect few steps; the record holds all steps. If a long warm-up left too few, the last steps count, without the
    first, which compiles.
    """
    later = run.steps.seconds[1:] or run.steps.seconds
    counted = run.counted_seconds if len(run.counted_seconds) >= MIN_STEPS else later[-MIN_STEPS:]
    return float(numpy.percentile(counted, 10))


def compare_steps(runs: Mapping[str, Run]) -> dict[str, float]:
    """Return the median of log(seconds) over the steps of each Run, less the mean of the Runs in the same turn.

    The Runs took turns, so a disturbance that lasts longer than a step slows all of them. If fewer than MIN_STEPS
    steps count, the last ones do, without the first, which compiles. If the Runs have different numbers of steps, the
    steps that all have are compared.
    """
    return dict(zip(runs, medians_of_turns(turns_of(list(runs.values()))), strict=True))


def turns_of(runs: Sequence[Run]) -> statistics.Array:
    """Return the seconds of the steps that are compared: shape (launches, turns)."""
    count = min(len(run.steps.seconds) for run in runs)
    first = max(min(max(run.steps.warmup for run in runs), count - MIN_STEPS), min(1, count - 1))
    return numpy.array([run.steps.seconds[first:count] for run in runs])


def medians_of_turns(seconds: statistics.Array) -> list[float]:
    """Return the median of log(seconds) less the mean of the launches in the same turn, for each launch."""
    logarithms = numpy.log(seconds)
    return [float(median) for median in numpy.median(logarithms - logarithms.mean(0), axis=1)]


def middle(values: tuple[float, ...]) -> float | None:
    return float(numpy.median(values)) if values else None


def slowest(run: Run) -> float:
    """Return the 99th percentile of the counted steps, in seconds."""
    return float(numpy.percentile(run.counted_seconds, 99))


def overhead(run: Run) -> float | None:
    """Return the seconds of a step without samples, from steps of several sizes; None if a line has nothing there."""
    if not run.sizes:
        return None
    low = {int(size): float(numpy.percentile(seconds, 10)) for size, seconds in run.sizes.items()}
    seconds = statistics.intercept(low)
    return seconds if seconds > 0 else None


def idle(run: Run) -> float | None:
    """Return the part of a step under the profiler that is outside of operations; None if it is unknown, or nothing."""
    if run.profile is None or not run.profile.busy:
        return None
    outside = 1 - run.profile.busy / run.profile.step
    return outside if outside > 0 else None


def time_spent(run: Run) -> float:
    """Return the seconds of all trainings of a launch, without evaluation and compilation."""
    return sum(run.epochs.missed if run.epochs else ()) + (dawnbench_seconds(run) or 0.0)


def time_to_target(run: Run) -> float | None:
    """Return the seconds until a training reached the target, with those that missed it; None if none did.

    Its arithmetic mean over launches is the expected time to the target: a training that misses is repeated with
    another seed. The gate compares geometric means, so it shows less of a changed probability: see docs/gate.md.
    """
    accuracy, target = run.learning.accuracy, run.options.target
    return time_spent(run) if accuracy is not None and target is not None and accuracy >= target else None


# what frameworks report of a mode that counts compilations; those that were repeated count, too
COMPILATIONS = ("graphs", "traces", "compilations", "programs", "schedules")


def compilations(run: Run) -> int | None:
    """Return how often a process compiled a step; None if it compiled nothing, or if the framework does not tell."""
    return sum((run.in_force or {}).get(name, 0) for name in COMPILATIONS) or None


METRICS = (
    Metric(
        name="step",
        unit="s",
        meaning="The duration of a step. Launches that take turns are compared step by step; of others, the "
        "tenth percentile counts.",
        tolerance=0.01,
        margin=0.05,
        noise=0.01,
        value=step_seconds,
        kinds=(LONG,),
        by_turn=True,
    ),
    Metric(
        name="first-step",
        unit="s",
        meaning="The first step of a process: it traces, compiles and allocates.",
        tolerance=0.05,
        margin=0.25,
        noise=0.1,
        value=lambda run: run.first_step,
    ),
    Metric(
        name="import",
        unit="s",
        meaning="The import of the framework.",
        tolerance=0.05,
        margin=0.25,
        noise=0.1,
        value=lambda run: run.framework.import_seconds,
        phases=(*PHASES, "call"),
    ),
    Metric(
        name="host-memory",
        unit="bytes",
        meaning="The most memory that the process used.",
        tolerance=0.01,
        margin=0.03,
        noise=0.005,
        value=lambda run: run.memory.host,
        kinds=(SHORT,),
        phases=(*PHASES, "call", "command"),
        words=SIZE,
    ),
    Metric(
        name="device-memory",
        unit="bytes",
        meaning="The most memory that the framework used on the device.",
        tolerance=0.01,
        margin=0.03,
        noise=0.005,
        value=lambda run: run.memory.device,
        kinds=(SHORT,),
        words=SIZE,
    ),
)
MORE = (
    Metric(
        name="latency",
        unit="s",
        meaning="The answer to one sample: the median of inference with a batch of one.",
        tolerance=0.01,
        margin=0.05,
        noise=0.01,
        value=lambda run: middle(run.counted_seconds),
        kinds=(LATENCY,),
        phases=("infer",),
        by_turn=True,
    ),
    Metric(
        name="latency-p99",
        unit="s",
        meaning="The answer to one sample, of which one in a hundred takes longer.",
        tolerance=0.05,
        margin=0.25,
        noise=0.1,
        value=slowest,
        kinds=(LATENCY,),
        phases=("infer",),
    ),
    Metric(
        name="throughput",
        unit="s",
        meaning="A step of a block of steps with one wait at its end: steps may overlap.",
        tolerance=0.01,
        margin=0.05,
        noise=0.02,
        value=lambda run: middle(run.blocks.seconds) if run.blocks else None,
        kinds=(BLOCKS,),
    ),
    Metric(
        name="dispatch",
        unit="s",
        meaning="The time until a call of the step returns; the device may still compute.",
        tolerance=0.05,
        margin=0.25,
        noise=0.05,
        value=lambda run: middle(run.blocks.returned) if run.blocks else None,
        kinds=(BLOCKS,),
    ),
    Metric(
        name="first-step-cached",
        unit="s",
        meaning="The first step of a process that finds the compilations of an earlier one.",
        tolerance=0.05,
        margin=0.25,
        noise=0.1,
        value=lambda run: run.first_step,
        kinds=(WARM,),
    ),
    Metric(
        name="first-step-new-batch",
        unit="s",
        meaning="The first step with another number of samples: some frameworks compile again.",
        tolerance=0.05,
        margin=0.25,
        noise=0.1,
        value=lambda run: run.new_batch,
        kinds=(NEW_BATCH,),
    ),
    Metric(
        name="compilations",
        unit="count",
        meaning="How often a process compiles for a batch and then for a batch of another size.",
        tolerance=0.05,
        margin=0.25,
        noise=0.01,
        value=compilations,
        kinds=(NEW_BATCH,),
        words=COUNT,
    ),
    Metric(
        name="overhead",
        unit="s",
        meaning="A step without samples: a line through steps of several sizes, at zero samples.",
        tolerance=0.05,
        margin=0.25,
        noise=0.05,
        value=overhead,
        kinds=(SIZES,),
    ),
    Metric(
        name="idle",
        unit="fraction",
        meaning="The part of a step under the framework's profiler in which no operation runs.",
        tolerance=0.05,
        margin=0.25,
        noise=0.05,
        value=idle,
        kinds=(PROFILED,),
        words=SIZE,
    ),
    Metric(
        name="loader",
        unit="s",
        meaning="A batch of images with augmentation from the framework's own loader, without a step.",
        tolerance=0.05,
        margin=0.25,
        noise=0.05,
        value=lambda run: run.loader.alone if run.loader else None,
        kinds=(LOADER,),
        phases=("train",),
    ),
    Metric(
        name="fed-step",
        unit="s",
        meaning="A training step with a batch from that loader: loading may overlap computing.",
        tolerance=0.05,
        margin=0.25,
        noise=0.05,
        value=lambda run: run.loader.fed if run.loader else None,
        kinds=(LOADER,),
        phases=("train",),
    ),
    Metric(
        name="peak-memory",
        unit="bytes",
        meaning="The most memory, of the device or the process, at the scale of the timed launches.",
        tolerance=0.01,
        margin=0.03,
        noise=0.005,
        value=lambda run: run.memory.device or run.memory.host,
        kinds=(PEAK,),
        words=SIZE,
    ),
    Metric(
        name="time-to-target",
        unit="s",
        meaning="Training until the target accuracy; a training that misses it is repeated.",
        tolerance=0.05,
        margin=0.25,
        noise=0.1,
        value=time_to_target,
        kinds=(TRAININGS,),
        phases=("train",),
        least=time_spent,
    ),
)
# of programs of the user
ROUND = Metric(
    name="round",
    unit="s",
    meaning="The duration of a call in a benchmark of pytest-benchmark or asv. Launches take turns, round by round.",
    tolerance=0.01,
    margin=0.05,
    noise=0.01,
    value=step_seconds,
    kinds=(LONG,),
    phases=("benchmark",),
    by_turn=True,
)
CALL = ROUND._replace(
    name="call",
    meaning="The duration of a call of a function, until its result is computed. Launches take turns, round by round.",
    phases=("call",),
)
FIRST_CALL = Metric(
    name="first-call",
    unit="s",
    meaning="The first call of a function in a process: it may trace, compile and allocate.",
    tolerance=0.05,
    margin=0.25,
    noise=0.1,
    value=lambda run: run.first_step,
    kinds=(LONG,),
    phases=("call",),
)
WALL_TIME = Metric(
    name="wall-time",
    unit="s",
    meaning="The duration of a command.",
    tolerance=0.01,
    margin=0.05,
    noise=0.02,
    value=lambda run: run.first_step,
    kinds=(LONG,),
    phases=("command",),
)
PROCESSOR_TIME = WALL_TIME._replace(
    name="processor-time",
    meaning="The time that all processes of a command computed.",
    value=lambda run: (run.numbers or {}).get("processor-time"),
)
MEMORY = Metric(
    name="memory",
    unit="bytes",
    meaning="What a memory benchmark of asv returns.",
    tolerance=0.01,
    margin=0.03,
    noise=0.005,
    value=lambda run: (run.numbers or {}).get("memory"),
    kinds=(LONG,),
    phases=("memory",),
    words=SIZE,
)
PROGRAMS = (ROUND, MEMORY, CALL, FIRST_CALL, WALL_TIME, PROCESSOR_TIME)
ALL = (*METRICS, *MORE, *PROGRAMS)
NAMES = tuple(metric.name for metric in ALL)
LESS, MORE_OF = "lower", "higher"  # which direction of a number is better
CLOCKS = ("step", "round", "call", "wall-time")  # metrics whose numbers say whether two launches of OLD agree
ACCURACY_MARGIN = 0.01  # one percentage point
MOST_GROWTH = 100.0  # per cent, of a threshold


def of_subject(metrics: Iterable[Metric], *, tuned: bool) -> tuple[Metric, ...]:
    """Return the metrics as they are measured. Of what is not ``tuned``, long launches measure memory, too.

    A short launch of a task has a smaller scale, but that of a user's model would differ by nothing but its steps.
    """
    if tuned:
        return tuple(metrics)
    return tuple(metric._replace(kinds=(LONG,)) if metric.kinds == (SHORT,) else metric for metric in metrics)


def reported(name: str, better: str) -> Metric:
    """Return the metric of a number that a command reports; ``better`` is LESS or MORE_OF."""

    def value(run: Run) -> float | None:
        number = (run.numbers or {}).get(name)
        if number is None or number <= 0:
            return None
        return 1 / number if better == MORE_OF else number

    words = LOWER if better == LESS else HIGHER
    return WALL_TIME._replace(
        name=name, unit="", meaning=f"Reported by the command; {better} is better.", value=value, words=words
    )


def with_reported(
    metrics: Sequence[Metric], directions: Mapping[str, str], selected: Collection[str] = ()
) -> list[Metric]:
    """Return the metrics of a program, with those that it reports. ``selected`` are those that are judged; empty: all.

    Those among ``metrics`` that are not in ALL only say the thresholds of what it may report. Raises SteleError if it
    does not report one of them.
    """
    thresholds = {metric.name: (metric.tolerance, metric.margin) for metric in metrics}
    for name in (*thresholds, *selected):
        if name not in NAMES and name not in directions:
            listed = f"It reports {', '.join(directions)}." if directions else "It reports none."
            raise SteleError(f"The command reports no metric {name!r} with a direction. {listed}")
    each = {name: reported(name, better) for name, better in directions.items() if not selected or name in selected}
    usual = WALL_TIME.tolerance, WALL_TIME.margin
    for name, metric in each.items():
        tolerance, margin = thresholds.get(name, usual)
        each[name] = metric._replace(tolerance=tolerance, margin=margin)
    return [*(metric for metric in metrics if metric.name in NAMES), *each.values()]


def phase_of(kind: Kind, phase: str) -> str:
    """Return the phase of a Run of this kind, in a cell with this phase."""
    return TIME_TO_ACCURACY if kind.trains else phase


def launch_settings(kind: str, scale: str, settings: Settings, *, tuned: bool = True) -> tuple[str, Settings]:
    """Return the scale and the settings of a launch of this kind; ``scale`` and ``settings`` are of a long one.

    If the subject is not ``tuned``, the launches that measure memory have more steps, and the allocator is that of the
    user.
    """
    small = KINDS[kind].short and (tuned or kind != SHORT)
    plain = KINDS[kind].short or KINDS[kind].plain
    malloc = "mmap" if kind == SHORT and tuned else "plain" if plain else settings.malloc
    return SHORT_SCALE if small else scale, replace(settings, malloc=malloc)


def parse_thresholds(
    option: str, texts: Sequence[str], default: str = "step", *, reports: bool = False
) -> dict[str, float]:
    """Return the fractions in the texts of ``option``, by metric. Raises SteleError, which quotes the text.

    A text without a metric is that of the ``default``. ``reports``: a command may report a metric of any name.
    """
    values = {}
    for text in texts:
        match = re.fullmatch(r"(?:([^=%]+)=)?(\d{1,9}(?:\.\d+)?)%", text)
        if match is None:
            raise SteleError(f"{option} {text} is not a threshold. Use {option} 5% or {option} METRIC=5%.")
        name = match[1] or default
        if name not in NAMES and not reports:
            raise SteleError(unknown_message("metric", name, NAMES, of=f"in {option} {text}"))
        if float(match[2]) > MOST_GROWTH:
            raise SteleError(f"{option} {text} is too large: at most {MOST_GROWTH:g}% is possible.")
        values[name] = float(match[2]) / 100
    return values


def with_thresholds(tolerances: Mapping[str, float], margins: Mapping[str, float]) -> list[Metric]:
    """Return the metrics with these thresholds. A margin that is not given is raised to the tolerance.

    A name that is not in ALL is that of a metric that a command may report. Raises SteleError if a given margin is
    below the tolerance.
    """
    metrics = []
    others = [reported(name, LESS) for name in {**tolerances, **margins} if name not in NAMES]
    for metric in (*ALL, *others):
        tolerance = tolerances.get(metric.name, min(metric.tolerance, margins.get(metric.name, metric.tolerance)))
        margin = margins.get(metric.name, max(metric.margin, tolerance))
        if margin < tolerance or margin == 0:
            name, least = metric.name, max(tolerance, 0.01)
            raise SteleError(
                f"--margin {name}={100 * margin:g}% is below --tolerance {name}={100 * tolerance:g}%, or 0. "
                f"Raise it to at least {100 * least:g}%."
            )
        metrics.append(metric._replace(tolerance=tolerance, margin=margin))
    return metrics
