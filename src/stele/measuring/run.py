"""A Run: the raw outcome of one measurement, with the facts it was taken under. Knows no file and no verdict."""

from dataclasses import asdict, dataclass, fields
from functools import cached_property
from statistics import median
from typing import Any

from stele.errors import SteleError
from stele_worker import tasks


@dataclass(frozen=True)
class Run:
    """One recipe measured in one launch of a fresh process. Unknown is None, never 0."""

    when: str  # ISO 8601, UTC
    environment: str  # its name
    label: str  # as tables call it
    versions: dict[str, str | None]
    task: str
    phase: str  # "train" or "infer"
    scale: str
    settings: dict[str, Any]  # asked for
    flags: dict[str, Any]  # in force, read back from the framework
    plan: dict[str, Any]
    machine: dict[str, Any]
    data: dict[str, str]  # origin and fingerprint
    weights: str  # "seeded", or the origin of pretrained ones
    import_seconds: float
    seconds: tuple[float, ...]  # of every step, the first included
    warmup: int  # leading steps that do not count
    steady: bool  # whether the steps had stopped trending by then
    batch: int  # samples per step
    host_memory: int | None  # peak, bytes
    device_memory: int | None  # peak, bytes
    losses: tuple[float | None, ...] = ()  # None: not finite
    accuracy: float | None = None  # fraction
    evaluated: int = 0  # samples

    @cached_property
    def counted(self) -> tuple[float, ...]:
        """Durations of the steps after the warm-up, in seconds."""
        return self.seconds[self.warmup :]

    @property
    def first_step(self) -> float:
        """Duration of the first step, in seconds: tracing, compiling and allocating included."""
        return self.seconds[0]

    def epoch_seconds(self, step: float) -> float:
        """What an epoch of the published size takes at ``step`` seconds a step, in seconds."""
        task = tasks.make(self.task, "paper")
        samples = task.train if self.phase == "train" else task.test
        return step * (samples // self.batch)

    def total_seconds(self, step: float) -> float:
        """What the whole published task takes at ``step`` seconds a step, in seconds."""
        epochs = tasks.make(self.task, "paper").epochs if self.phase == "train" else 1
        return epochs * self.epoch_seconds(step)

    def derived(self) -> dict[str, float]:
        """What follows from the median step: samples per second, and seconds for an epoch and the whole task."""
        step = median(self.counted)
        return {
            "median_step_seconds": step,
            "samples_per_second": self.batch / step,
            "epoch_seconds": self.epoch_seconds(step),
            "total_seconds": self.total_seconds(step),
        }

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Run":
        """The Run that ``to_dict`` described. Raises SteleError if fields are missing or not known."""
        known = {field.name for field in fields(cls)}
        if set(values) - known:
            raise SteleError(f"Not a Run: unknown field {min(set(values) - known)!r}.")
        try:
            run = cls(**values)
        except TypeError as error:
            raise SteleError(f"Not a Run: {error}.") from None
        object.__setattr__(run, "seconds", tuple(run.seconds))
        object.__setattr__(run, "losses", tuple(run.losses))
        return run
