"""A Run: the raw result of one measurement and the facts about its conditions.

This module reads no files and decides no verdicts.
"""

import itertools
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from statistics import median
from typing import Any

from stele import schema
from stele.errors import SteleError
from stele.measuring.conditions import Conditions
from stele.measuring.content import Reads
from stele.measuring.settings import Settings
from stele_worker import tasks
from stele_worker.protocol import TIME_TO_ACCURACY

PHASES = ("train", "infer")
CLOSED = (
    "closed"  # the division in which every framework starts from the same weights and sees the same images
)
DIVISIONS = (CLOSED, "open")


@dataclass(frozen=True)
class Run:
    """One recipe measured in one launch of a fresh process. An unknown value is None, never 0."""

    when: str  # ISO 8601, UTC
    environment: str  # name
    label: str  # the environment's name in tables
    versions: dict[str, str | None]
    task: str
    phase: str  # one of PHASES, or TIME_TO_ACCURACY
    scale: str
    settings: dict[str, Any]  # requested
    flags: dict[str, Any]  # in effect, read back from the framework
    plan: dict[str, Any]
    machine: dict[str, Any]
    data: dict[str, str]  # origin and fingerprint
    weights: str  # "seeded", or the origin of pretrained weights
    import_seconds: float
    seconds: tuple[float, ...]  # of every step, including the first
    warmup: int  # number of leading steps that are not counted
    steady: bool  # whether the step durations had no trend after the warm-up
    batch: int  # samples per step
    host_memory: int | None  # peak, bytes
    device_memory: int | None  # peak of the arrays that the framework allocated, bytes
    losses: tuple[float | None, ...] = ()  # None: not finite
    blocks: tuple[float, ...] = ()  # seconds per step of each block of steps with one wait at its end
    returned: tuple[float, ...] = ()  # seconds until a call of the step returned, the mean of each block
    new_batch: float | None = None  # seconds of the first step with another number of samples
    sizes: dict[str, list[float]] | None = None  # seconds of steps, by their number of samples
    loader: dict[str, float] | None = None  # mean seconds of a batch "alone", and of a step that is "fed"
    profile: dict[str, Any] | None = None  # under a profiler: see stele_worker.measurement.profiled
    process_memory: int | None = None  # of the device, which the process held at the end, bytes, as NVML says
    accuracy: float | None = None  # fraction
    evaluated: int = 0  # samples
    mode: str | None = None  # of execution, one of the environment's
    in_force: dict[str, Any] | None = None  # what the framework reports about its mode
    conditions: dict[str, Any] | None = None  # of a launch that ran alone, as Conditions has them
    # of time-to-accuracy, as stele_worker.time_to_accuracy describes them
    accuracies: tuple[float, ...] = ()  # after each epoch
    evaluation_seconds: tuple[float, ...] = ()  # after each epoch
    compile_seconds: float | None = None
    data_seconds: float | None = None
    elapsed: float | None = None  # seconds from the first access to the data to the end
    missed: tuple[float, ...] = ()  # seconds of earlier trainings of the launch, which missed the target
    continued: bool = False  # whether another process began the training, so that no time counts
    energy: dict[str, float | None] | None = None  # joules by source, as measuring.energy has them
    start_seconds: float | None = (
        None  # of ``configure``: the import, the settings, and the start of all ranks
    )
    ranks: list[dict[str, int | None]] | None = None  # peak memory of each rank, bytes, if there are several
    # seconds of each step "with" communication between devices, of each "without", and of it "alone"
    communication: dict[str, list[float]] | None = None
    content: dict[str, str] | None = None  # hashes of what decided it, as measuring.content has them
    reads: Reads | None = field(default=None, compare=False)  # what a model has read; it is not stored

    @cached_property
    def counted_seconds(self) -> tuple[float, ...]:
        """The durations of the steps after the warm-up, in seconds."""
        return self.seconds[self.warmup :]

    @property
    def busy(self) -> bool:
        """Whether other processes used the machine during the launch. False if that is unknown."""
        return self.conditions is not None and Conditions(**self.conditions).busy

    @property
    def division(self) -> str:
        """Who draws the initial weights and the augmentation: "closed", the task; "open", the framework."""
        return str(self.plan.get("division", CLOSED))

    @property
    def first_step(self) -> float:
        """The duration of the first step, in seconds, including tracing, compilation and allocation."""
        return self.seconds[0]

    def epoch_seconds(self, step: float) -> float | None:
        """Return the duration of an epoch of the published size, in seconds, at ``step`` seconds per step.

        None for a model or a task of the user, which has no published size.
        """
        if self.task not in tasks.NAMES:
            return None
        task = tasks.make(self.task, "paper")
        samples = task.train if self.phase == "train" else task.test
        return step * (samples // self.batch)

    def total_seconds(self, step: float) -> float | None:
        """Return the duration of the complete published task, in seconds, at ``step`` seconds per step."""
        epoch = self.epoch_seconds(step)
        if epoch is None:
            return None
        return epoch * (tasks.make(self.task, "paper").epochs if self.phase == "train" else 1)

    def rates(self) -> dict[str, float | None]:
        """Return the median step duration, and what follows from it: samples/s and seconds per epoch and task."""
        step = median(self.counted_seconds)
        return {
            "median_step_seconds": step,
            "samples_per_second": self.batch / step,
            "epoch_seconds": self.epoch_seconds(step),
            "total_seconds": self.total_seconds(step),
        }

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "reads"}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Run":
        """Return the Run that ``to_dict`` described. Raises SteleError if a field is missing, unknown or impossible."""
        names = {field.name for field in fields(cls)}
        if set(values) - names:
            raise SteleError(f"Not a Run: unknown field {min(set(values) - names)!r}.")
        try:
            schema.check_fields(values, cls)
            for name, kind in (("settings", Settings), ("conditions", Conditions)):
                if values.get(name) is not None:
                    schema.check_fields(values[name], kind, name)
                    kind(**values[name])
            run = cls(**values)
        except (TypeError, ValueError) as error:
            raise SteleError(f"Not a Run: {error}.") from None
        for name in ("seconds", "losses", "blocks", "returned", "accuracies", "evaluation_seconds", "missed"):
            object.__setattr__(run, name, tuple(getattr(run, name)))
        check_values(run)
        return run


def check_values(run: Run) -> None:
    """Raise SteleError for a value that no measurement has."""
    if run.phase not in (*PHASES, TIME_TO_ACCURACY):
        expected = f"expected {', '.join(PHASES)} or {TIME_TO_ACCURACY}"
        raise SteleError(f"Not a Run: phase is {run.phase!r}, {expected}.")
    if run.batch < 1:
        raise SteleError(f"Not a Run: {run.batch} samples in a batch.")
    check_durations(run)
    if run.phase == TIME_TO_ACCURACY:
        check_epochs(run)


def check_epochs(run: Run) -> None:
    """Raise SteleError unless each epoch has an accuracy and an evaluation, and the training has its times."""
    if not len(run.seconds) == len(run.accuracies) == len(run.evaluation_seconds) == len(run.losses):
        raise SteleError("Not a Run: the epochs have not as many accuracies, evaluations and losses.")
    if None in (run.accuracy, run.compile_seconds, run.data_seconds, run.elapsed):
        raise SteleError("Not a Run: it has no accuracy, compile_seconds, data_seconds or elapsed.")
    if not all(0 <= accuracy <= 1 for accuracy in run.accuracies):
        raise SteleError("Not a Run: an accuracy is a fraction from 0 to 1.")


def check_durations(run: Run) -> None:
    """Raise SteleError unless each step has a duration, and some are after the warm-up.

    A clock that goes backwards gives negative durations. A comparison with them would have no result.
    """
    if not run.seconds:
        raise SteleError("Not a Run: there are no durations of steps.")
    single = (run.import_seconds, run.new_batch, run.data_seconds, run.elapsed, *(run.loader or {}).values())
    series = (run.seconds, run.blocks, run.returned, run.evaluation_seconds, run.missed)
    several = (*series, *(run.sizes or {}).values(), *(run.communication or {}).values())
    for value in itertools.chain(single, *several):
        if value is not None and not value > 0:
            raise SteleError(f"Not a Run: a duration of {value!r} s. Check the clock of the machine.")
    if not 0 <= run.warmup < len(run.seconds):
        raise SteleError(f"Not a Run: {run.warmup} warm-up steps of {len(run.seconds)}.")
