"""A Run: the raw result of one measurement and the facts about its conditions.

The types here are the only definition of a Run and of what a worker answers to ``configure``, ``train``, ``infer`` and
``time-to-accuracy``: JSON is checked with them, and docs/schemas.md, docs/protocol.md and the JSON Schema are made of
them. This module reads no files and decides no verdicts.
"""

import itertools
from collections.abc import Iterable
from functools import cached_property
from statistics import median
from typing import Annotated, Any

import msgspec

from stele.measuring.conditions import Conditions
from stele.measuring.content import NOTHING, Reads
from stele.measuring.machine import Machine
from stele.measuring.settings import Settings
from stele.schema import about
from stele_suite import tasks
from stele_worker.protocol import TIME_TO_ACCURACY

PHASES = ("train", "infer")
OF_PROGRAMS = ("benchmark", "memory", "call", "command")  # phases of the items of a user's program
CLOSED = "closed"  # the division in which every framework starts from the same weights and sees the same images
DIVISIONS = (CLOSED, "open")

Seconds = tuple[float, ...]


class Framework(msgspec.Struct, frozen=True, kw_only=True):
    """A framework that was imported and configured."""

    import_seconds: Annotated[float, about("import of the framework, and of the user's module", "s")]
    versions: Annotated[dict[str, str | None], about("of the framework and the libraries that compute for it")]
    flags: Annotated[
        dict[str, Any],
        about(
            "the active settings, read back from the framework; the names depend on it, but for `device`, "
            "`processors` (numbers of the processors that the process may use, or null), `python` and `numpy`"
        ),
    ]
    start_seconds: Annotated[float | None, about("from the start of the import until all devices are ready", "s")] = (
        None
    )

    def __post_init__(self) -> None:
        require_positive([self.import_seconds])


class Steps(msgspec.Struct, frozen=True, kw_only=True):
    """The steps of a launch. In `time-to-accuracy`, a step is an epoch."""

    seconds: Annotated[
        Seconds, about("duration of every step, including the first; of an epoch, with gathering and augmentation", "s")
    ]
    warmup: Annotated[int, about("number of leading steps that do not count; 0 in `time-to-accuracy`, else at least 1")]
    steady: Annotated[bool, about("whether the durations had no trend after the warm-up")]
    batch: Annotated[int, about("samples per step")]

    def __post_init__(self) -> None:
        if not self.seconds:
            raise ValueError("there are no durations of steps")
        require_positive(self.seconds)
        if not 0 <= self.warmup < len(self.seconds):
            raise ValueError(f"{self.warmup} warm-up steps of {len(self.seconds)}")
        if self.batch < 1:
            raise ValueError(f"{self.batch} samples in a batch")


class RankMemory(msgspec.Struct, frozen=True, kw_only=True):
    """The peak memory of one of several ranks."""

    host: Annotated[int | None, about("peak resident memory", "byte")]
    device: Annotated[int | None, about("peak memory of the device", "byte")]


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """The memory that a launch used."""

    host: Annotated[int | None, about("peak resident memory of the process", "byte")]
    device: Annotated[
        int | None, about("peak memory of the arrays that the framework allocated on the device; null on a CPU", "byte")
    ]
    ranks: Annotated[tuple[RankMemory, ...] | None, about("of each rank, if there are several devices")] = None
    process: Annotated[
        int | None,
        about(
            "memory of the device that the process held at the end, its context and caches included, as NVML says; "
            "the host measures it",
            "byte",
        ),
    ] = None


class Learning(msgspec.Struct, frozen=True, kw_only=True):
    """How well a training learned. Inference has none of it."""

    losses: Annotated[
        tuple[float | None, ...], about("loss of every step, null for one that is not finite; the mean of an epoch")
    ] = ()
    accuracy: Annotated[
        float | None,
        about(
            "of the test samples, after the last step, that are classified correctly, or the score of the Task, such "
            "as the mean area under the ROC curve of `densenet121`; null if the Task's labels are random",
            "fraction",
        ),
    ] = None
    evaluated: Annotated[int, about("number of these samples: the whole batches of the test set")] = 0


class Epochs(msgspec.Struct, frozen=True, kw_only=True):
    """The times and accuracies of a training to a target accuracy."""

    accuracies: Annotated[tuple[float, ...], about("accuracy after each epoch", "fraction")]
    evaluation_seconds: Annotated[
        Seconds, about("duration of the evaluation after each epoch, without compilation", "s")
    ]
    compile_seconds: Annotated[
        float,
        about(
            "by how much the first step and the first evaluated batch exceeded the mean of the others, and the first "
            "augmentation, which is repeated; other durations do not contain it",
            "s",
        ),
    ]
    data_seconds: Annotated[
        float, about("from the first access to the data until the training data is on the device", "s")
    ]
    elapsed: Annotated[
        float, about("from the first access to the data to the end of the last evaluation, without pauses", "s")
    ]
    missed: Annotated[
        Seconds, about("`data_seconds` and steps of each earlier training of the launch, which missed the target", "s")
    ] = ()
    continued: Annotated[bool, about("whether another process began the training; then none of its times counts")] = (
        False
    )

    def __post_init__(self) -> None:
        require_positive([self.data_seconds, self.elapsed, *self.evaluation_seconds, *self.missed])
        if not all(0 <= accuracy <= 1 for accuracy in self.accuracies):
            raise ValueError("an accuracy is a fraction from 0 to 1")


class Blocks(msgspec.Struct, frozen=True, kw_only=True):
    """Blocks of steps, each with one wait at its end."""

    seconds: Annotated[
        Seconds,
        about("time per step in each block, from the first call until the device has finished the last step", "s"),
    ]
    returned: Annotated[Seconds, about("time until a call of the step returned, the mean of each block", "s")]

    def __post_init__(self) -> None:
        require_positive([*self.seconds, *self.returned])


class Loader(msgspec.Struct, frozen=True, kw_only=True):
    """The framework's own loader of images."""

    alone: Annotated[float, about("mean time of a batch", "s")]
    fed: Annotated[float, about("mean time of a training step with such a batch", "s")]

    def __post_init__(self) -> None:
        require_positive([self.alone, self.fed])


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """A step under the profiler of the framework, which makes it slower."""

    step: Annotated[float, about("mean time of a step", "s")]
    busy: Annotated[float | None, about("its time in operations; null if that is unknown", "s")] = None
    operations: Annotated[dict[str, tuple[float, float]], about("by operation: seconds and calls in a step")]
    kernels: Annotated[
        dict[str, str], about("by operation: the implementations that were selected, and how often in all steps")
    ] = {}


class Communication(msgspec.Struct, frozen=True, kw_only=True, rename={"with_": "with"}):
    """Steps of several devices, on the slowest rank."""

    with_: Annotated[Seconds, about("durations of steps that communicate", "s")]
    without: Annotated[Seconds, about("durations of steps that do not", "s")]
    alone: Annotated[Seconds, about("durations of the communication", "s")]

    def __post_init__(self) -> None:
        require_positive([*self.with_, *self.without, *self.alone])


class Preparation(msgspec.Struct, frozen=True, kw_only=True):
    """What a launch does before its first step."""

    data: Annotated[float, about("the samples are loaded, and copied to the device", "s")]
    network: Annotated[float, about("the network and its step are made, and the weights are loaded", "s")]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a worker to `train`, `infer` and `time-to-accuracy`."""

    steps: Steps
    memory: Memory
    preparation: Annotated[Preparation | None, about("null if the worker does not tell it")] = None
    in_force: Annotated[
        dict[str, Any] | None,
        about(
            "what the framework reports about its mode, such as the number of graphs, graph breaks and "
            "recompilations; with `new_batch`, after that step"
        ),
    ] = None
    learning: Learning = Learning()
    epochs: Annotated[Epochs | None, about("of `time-to-accuracy`")] = None
    blocks: Annotated[Blocks | None, about("with the option `blocks`")] = None
    new_batch: Annotated[
        float | None, about("with the option `new_batch`: the first step with another number of samples", "s")
    ] = None
    sizes: Annotated[
        dict[str, Seconds] | None,
        about('with the option `sizes`: durations of steps by their number of samples, such as `"16"`', "s"),
    ] = None
    loader: Annotated[
        Loader | None,
        about("with the option `loader`; null if the task or the framework has no loader"),
    ] = None
    profile: Annotated[Profile | None, about("with the option `profile`")] = None
    communication: Annotated[Communication | None, about("with the option `communication`")] = None
    numbers: Annotated[
        dict[str, float] | None,
        about(
            "of a command of the user: `processor-time` in s, and what it reports; of an asv suite: `memory` in byte"
        ),
    ] = None

    def __post_init__(self) -> None:
        require_positive([self.new_batch, *itertools.chain(*(self.sizes or {}).values())])
        if self.epochs is not None:
            require_epochs(len(self.steps.seconds), self.epochs, self.learning)


class Warmup(msgspec.Struct, frozen=True, kw_only=True):
    """The rule that says which steps are steady."""

    window: Annotated[int, about("number of steps whose medians are compared")]
    tolerance: Annotated[float, about("difference of the medians below which steps are steady", "fraction")]
    most: Annotated[int, about("greatest number of steps of warm-up")]
    seconds: Annotated[
        float, about("on a GPU, the least duration of the warm-up, and of what is measured after it", "s")
    ] = 0.0


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What was requested of a launch, beside the settings. What was not requested is null or false."""

    warmup: Annotated[Warmup | None, about("the rule for steady steps")] = None
    form: Annotated[str | None, about("a variant of the Task, one of its `FORMS`")] = None
    turn: Annotated[int | None, about("number of steps between two pauses")] = None
    together: Annotated[
        bool,
        about(
            "other launches imported, and made the first step, at the same time on the same processor; the time of "
            "both does not contain the time in which the launch waited for the processor"
        ),
    ] = False
    steps: Annotated[int | None, about("stop after so many steps, the warm-up included, and do not evaluate")] = None
    limit: Annotated[
        float | None,
        about(
            "stop when the steps after the first took so many seconds, and at least one did; the same in each kind "
            "of steps below; only with `steps`",
            "s",
        ),
    ] = None
    batch: Annotated[int | None, about("samples of a step, in place of those of the Task")] = None
    blocks: Annotated[int | None, about("time so many blocks of steps, with one wait each")] = None
    new_batch: Annotated[bool, about("time a step with another number of samples")] = False
    sizes: Annotated[int | None, about("time so many steps with each of several numbers of samples")] = None
    loader: Annotated[
        int | None, about("time so many batches of the framework's own loader, alone and with a step each")
    ] = None
    profile: Annotated[int | None, about("run so many steps under the profiler")] = None
    communication: Annotated[int | None, about("time so many steps with and without communication of the devices")] = (
        None
    )
    epochs: Annotated[int | None, about("number of epochs, in place of that of the Task")] = None
    tricks: Annotated[tuple[str, ...] | None, about("names of tricks of the Task, in place of all")] = None
    division: Annotated[
        str | None,
        about("`open`: the framework draws the initial weights, crops, flips and squares; null: the Task does"),
    ] = None
    target: Annotated[float | None, about("accuracy to reach", "fraction")] = None
    attempts: Annotated[int | None, about("greatest number of trainings, until one reaches the target")] = None

    @property
    def changes(self) -> dict[str, object]:
        """What replaces values of the Task in a training to a target."""
        values = {"epochs": self.epochs, "tricks": self.tricks, "division": self.division}
        return {name: value for name, value in values.items() if value is not None}

    def as_request(self) -> dict[str, object]:
        """Return the fields of a request: what was not requested is left out, but for what each request has."""
        fields = msgspec.to_builtins(self)
        always = ("warmup", "form", "turn")
        return {name: value for name, value in fields.items() if name in always or value not in (None, False)}


NO_OPTIONS = Options()


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where the samples come from."""

    origin: Annotated[str, about("`official`, `synthetic`, `seeded noise`, or the file of a user's task")]
    fingerprint: Annotated[str, about("hash of the data, or `none`")]

    @property
    def text(self) -> str:
        return f"{self.origin} {self.fingerprint}"


class Lifetime(msgspec.Struct, frozen=True, kw_only=True):
    """The time of a launch on the clock of the host. If it gave an earlier Run, this is the time since then."""

    start: Annotated[
        float, about("from the first request until the process answered; 0 if it gave an earlier Run", "s")
    ]
    waiting: Annotated[
        float,
        about("without a request: before the first one, and at pauses, while other launches had their turns", "s"),
    ]
    total: Annotated[float, about("from the start of the process until its last answer", "s")]

    def since(self, earlier: "Lifetime") -> "Lifetime":
        """Return the time since an earlier Run of the same launch."""
        return Lifetime(
            start=self.start - earlier.start, waiting=self.waiting - earlier.waiting, total=self.total - earlier.total
        )


class Run(Outcome, frozen=True, kw_only=True, dict=True):
    """One recipe measured in one launch of a fresh process."""

    when: Annotated[str, about("end of the launch", "ISO 8601, UTC")]
    environment: Annotated[str, about("name of the environment")]
    label: Annotated[str, about("its name in tables")]
    mode: Annotated[str | None, about("mode of execution, such as `compile`: one of the environment's")] = None
    task: Annotated[str, about("task, or the spec of a model")]
    phase: Annotated[str, about("`train`, `infer` or `time-to-accuracy`")]
    scale: Annotated[str, about("how much is computed")]
    settings: Annotated[Settings, about("requested")]
    options: Annotated[Options, about("requested")]
    framework: Framework
    machine: Machine
    data: Origin
    weights: Annotated[str, about("`seeded`, or the origin of pretrained weights")]
    lifetime: Annotated[Lifetime | None, about("of the process; null if it was not measured")] = None
    conditions: Annotated[Conditions | None, about("null if the launch took turns with others")] = None
    energy: Annotated[
        dict[str, float | None] | None,
        about("by source, `processors` and `gpu`: a number, or null if it cannot be read", "J"),
    ] = None
    content: Annotated[dict[str, str] | None, about("hashes of the groups of *Content* that decided this launch")] = (
        None
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        phases = (*PHASES, *OF_PROGRAMS, TIME_TO_ACCURACY)
        if self.phase not in phases:
            expected = f"expected {', '.join(phases[:-1])} or {phases[-1]}"
            raise ValueError(f"phase is {self.phase!r}, {expected}")
        if self.phase == TIME_TO_ACCURACY and self.epochs is None:
            raise ValueError(f"a Run of the phase {self.phase} has no epochs")

    @property
    def reads(self) -> Reads:
        """What the model has read. It is neither stored nor compared, so it is no field."""
        return self.__dict__.get("reads", NOTHING)

    def with_reads(self, reads: Reads, content: dict[str, str]) -> "Run":
        """Return the Run of a launch that has read this, and that this content decided."""
        run = msgspec.structs.replace(self, content=content)
        run.__dict__["reads"] = reads
        return run

    @cached_property
    def counted_seconds(self) -> Seconds:
        """The durations of the steps after the warm-up, in seconds."""
        return self.steps.seconds[self.steps.warmup :]

    @property
    def busy(self) -> bool:
        """Whether other processes used the machine during the launch. False if that is unknown."""
        return self.conditions is not None and self.conditions.busy

    @property
    def continued(self) -> bool:
        """Whether another process began the training, so that none of its times counts."""
        return self.epochs is not None and self.epochs.continued

    @property
    def division(self) -> str:
        """Who draws the initial weights and the augmentation: "closed", the task; "open", the framework."""
        return self.options.division or CLOSED

    @property
    def first_step(self) -> float:
        """The duration of the first step, in seconds, including tracing, compilation and allocation."""
        return self.steps.seconds[0]

    def epoch_seconds(self, step: float) -> float | None:
        """Return the duration of an epoch of the published size, in seconds, at ``step`` seconds per step.

        None for a model or a task of the user, which has no published size.
        """
        if self.task not in tasks.NAMES:
            return None
        task = tasks.make(self.task, "paper")
        samples = task.train if self.phase == "train" else task.test
        return step * (samples // self.steps.batch)

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
            "samples_per_second": self.steps.batch / step,
            "epoch_seconds": self.epoch_seconds(step),
            "total_seconds": self.total_seconds(step),
        }


class RunFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file with one Run."""

    run: Run


def require_positive(durations: Iterable[float | None]) -> None:
    """Raise ValueError for a duration that no clock measures. A comparison with it would have no result."""
    for value in durations:
        if value is not None and not value > 0:
            raise ValueError(f"a duration of {value!r} s. Check the clock of the machine")


def require_epochs(count: int, epochs: Epochs, learning: Learning) -> None:
    """Raise ValueError unless each of ``count`` epochs has an accuracy, an evaluation and a loss."""
    if not count == len(epochs.accuracies) == len(epochs.evaluation_seconds) == len(learning.losses):
        raise ValueError("each epoch needs an accuracy, an evaluation and a loss")
    if learning.accuracy is None:
        raise ValueError("a training to a target has no accuracy")
