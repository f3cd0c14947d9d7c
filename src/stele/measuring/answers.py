"""The types of a worker's messages and results, but for those of a measurement, which ``stele.measuring.run`` has.

Keys that a type does not have are left out: a worker of a newer release may say more.
"""

import base64
import binascii
import re
import zlib
from typing import Annotated, Any, TypedDict

import msgspec
import numpy

from stele.schema import about

Versions = dict[str, Any]  # text or null; workers in other languages may send a number or a boolean
Sketch = list[float | None]
Numbers = dict[str, Any]  # answers to ``parity``, merged: the keys of ``Parity``, and perhaps others
SKETCH = 3  # numbers


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a request is, between two steps."""

    phase: Annotated[str, about("`train`, `infer`, `evaluate` or `time-to-accuracy`")]
    done: Annotated[int, about("number of steps that are done; of epochs in `time-to-accuracy`")]
    of: Annotated[int, about("number of all")]
    loss: Annotated[float | None, about("after an epoch: its mean loss")] = None
    accuracy: Annotated[float | None, about("after an epoch: the accuracy", "fraction")] = None
    remaining: Annotated[float | None, about("after an epoch: the time until the end", "s")] = None


class Pause(msgspec.Struct, frozen=True, kw_only=True):
    """The worker waits, while another one computes."""

    done: Annotated[int, about("number of steps that are done")]


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """An error."""

    type: Annotated[str, about("the language's name for the kind of error")]
    message: Annotated[str, about("what happened; it quotes the wrong value")]
    traceback: Annotated[str, about("where, in the usual format of the language; may be empty")] = ""


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a worker: the number of the request, and one of the others."""

    id: Annotated[int | None, about("that of the request; null for a line that was no request")]
    progress: Annotated[Progress | None, about("see *Progress*")] = None
    pause: Annotated[Pause | None, about("see *Pause*")] = None
    error: Annotated[Failure | None, about("see *Failure*")] = None
    result: Annotated[dict[str, Any] | None, about("the result of the verb")] = None

    @property
    def is_empty(self) -> bool:
        return all(part is None for part in (self.progress, self.pause, self.error, self.result))


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """The result of ``hello``: facts about the process."""

    protocol: Annotated[Any, about("the version of the protocol")] = None
    python: Annotated[str | None, about("version; null in a worker that does not use it")] = None
    numpy: Annotated[str | None, about("version; null in a worker that does not use it")] = None


class Rounded(TypedDict, total=False):
    rounded: str | None  # the dtype to which the values were rounded, if nothing else is wrong


class Unequal(Rounded):
    """How a parameter that reads back differs from the one that was loaded."""

    differ: int
    of: int
    order: bool
    deviation: float | None
    expected: float | None


class Repetition(TypedDict):
    """The result of ``parity``, phase ``repeat``."""

    losses: list[float | None]
    digest: str


class Guess(TypedDict, total=False):
    guess: bool  # whether arrays were matched by their order, and other matches are possible


class Loaded(Guess):
    """How the weights of another arm were loaded: {parameter: array}."""

    names: dict[str, str]
    way: str


class Dtypes(TypedDict):
    """In which dtypes a user's model computes."""

    parameters: dict[str, str]
    layers: dict[str, str]
    others: list[str]


class Exactness(TypedDict, total=False):
    exact: bool  # whether the numbers must be equal


class Output(Exactness):
    """An output beside the main one, or a main one that must be equal: its numbers, or a text that stands for them."""

    shape: list[int]
    numbers: Any


class Parity(TypedDict, total=False):
    """The result of ``parity``, phases ``infer`` and ``train``. Logits are an array of any shape."""

    task: str
    unequal: dict[str, Unequal]
    layers: dict[str, Sketch] | None
    logits: Any
    outputs: dict[str, Output]
    ignored: list[str]
    loss: float | None
    gradients: dict[str, Sketch]
    updates: dict[str, dict[str, Sketch]]
    losses: list[float | None]
    repeats: bool
    tracked: bool | None
    weights: Loaded
    trained: Any
    dtypes: Dtypes
    own: dict[str, float | None]
    equal: list[str]
    sizes: dict[str, int]
    places: dict[str, str]
    files: list[str]
    inputs: dict[str, float | None]
    inference_operations: dict[str, int] | None
    training_operations: dict[str, int] | None


class OfRank(TypedDict):
    samples: str
    digest: str


class Devices(TypedDict):
    """The result of ``parity``, phase ``devices``."""

    losses: list[float | None]
    gradients: dict[str, Sketch]
    ranks: list[OfRank]
    statistics: str | None
    score: float | None


class Capability(TypedDict):
    numbers: list[float | None]


class Timing(TypedDict):
    """How long an item of a program takes, as it times itself."""

    seconds: Annotated[float, about("the shortest call", "s")]
    calls: Annotated[int, about("number of calls in a round")]
    rounds: Annotated[int, about("number of rounds")]


class OfArray(TypedDict, total=False):
    dtype: str
    shape: list[int]
    numbers: list[float | str]  # "nan", "inf" and "-inf" are texts
    digest: str  # of all numbers, if these are some of them
    text: str  # of a value that is no number


class Value(OfArray):
    """A value that an item of a program computed."""

    type: str


class ItemOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What an item of a program did in a launch."""

    status: Annotated[
        str, about("`passed`, `failed`, `error`, `skipped`, `xfailed`, `xpassed`, or `crashed` if its process ended")
    ]
    message: Annotated[str, about("the last line of the error, or the reason")] = ""
    place: Annotated[str, about("where, as `FILE:LINE`")] = ""
    seconds: Annotated[float, about("its duration", "s")] = 0.0
    values: Annotated[dict[str, Value], about("what it computed, by name")] = {}
    timing: Annotated[Timing | None, about("null if it is not timed")] = None
    metrics: Annotated[
        dict[str, str | None], about("what a command reports: `lower`, `higher` or null is better, by name")
    ] = {}

    @property
    def failed(self) -> bool:
        return self.status in ("failed", "error", "crashed")


class Item(TypedDict):
    name: str


class NotCollected(Item):
    """What failed while the items of a program were collected."""

    message: str
    place: str


class Collected(TypedDict):
    """The result of ``collect``."""

    items: list[Item]
    failures: list[NotCollected]


class Defaults(TypedDict):
    table: dict[str, Any]
    versions: Versions


class Reads(TypedDict):
    """The result of ``reads``."""

    files: list[str]
    noticed: list[str]
    variables: list[str]


class InputDtype(TypedDict, total=False):
    dtype: str | None


class InputFacts(InputDtype):
    name: str | None
    kind: str
    shape: list[int]
    high: int | None


class ArrayFacts(TypedDict):
    name: str
    shape: list[int]
    dtype: str
    parameter: bool


class Built(TypedDict):
    arrays: list[ArrayFacts]
    tied: list[list[str]]
    training: bool | None


class OutputFacts(TypedDict):
    name: str
    shape: list[int]
    dtype: str


class MoreFacts(TypedDict, total=False):
    """What the result of ``inspect`` may also have."""

    accuracy: bool
    built: Built | None
    examples: str | None
    files: list[str]
    inferred_from: str
    main: str
    noticed: list[str]
    output: list[int]
    outputs: list[OutputFacts]
    remark: str | None
    untrained: str | None
    variables: list[str]


class ModelFacts(MoreFacts):
    """The result of ``inspect``."""

    framework: str
    inputs: list[InputFacts]
    target: dict[str, Any] | None
    parameters: int
    deterministic: bool
    loss: str
    summary: str


def check_sketches(numbers: Numbers) -> None:
    """Raise ValueError if a sketch has not three numbers, or if the key of an update is no number of steps."""
    updates = numbers.get("updates", {})
    tables = [numbers.get("layers") or {}, numbers.get("gradients", {}), *updates.values()]
    for name, sketch in (pair for table in tables for pair in table.items()):
        if len(sketch) != SKETCH:
            raise ValueError(f"the sketch of {name!r} has {len(sketch)} numbers, expected {SKETCH}")
    for steps in updates:
        if re.fullmatch("[0-9]{1,9}", steps) is None:
            raise ValueError(f"updates has the key {steps!r}, which is no number of steps")


def check_places(numbers: Numbers) -> None:
    """Raise ValueError if a mask does not have as many bits as the array."""
    for name in numbers.get("places", {}):
        mask_of(numbers, name)


def mask_of(numbers: Numbers, name: str) -> numpy.ndarray[Any, Any]:
    """Return which elements of a parameter that an arm itself builds differ: a mask of shape (size,).

    Without a mask all do. Raises ValueError if it does not have as many bits as the array.
    """
    size = numbers.get("sizes", {}).get(name, 0)
    text = numbers.get("places", {}).get(name)
    if text is None:
        return numpy.ones(size, bool)
    try:
        reader = zlib.decompressobj()
        bits = reader.decompress(base64.b64decode(text, validate=True), -(-size // 8) + 1)
    except (binascii.Error, zlib.error) as error:
        raise ValueError(f"the places of {name!r} cannot be read: {error}") from None
    if len(bits) != -(-size // 8):
        raise ValueError(f"the places of {name!r} have {len(bits)} bytes, and the array has {size} elements")
    return numpy.unpackbits(numpy.frombuffer(bits, numpy.uint8))[:size].astype(bool)
