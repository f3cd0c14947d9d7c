"""The types of a worker's messages and results. docs/protocol.md describes each; ``stele.schema.check`` compares them.

Other keys are permitted: a worker of a newer release may say more.
"""

import base64
import binascii
import re
import zlib
from typing import Any, TypedDict

import numpy

Versions = dict[str, Any]  # text or null; workers in other languages may send a number or a boolean
Sketch = list[float | None]
SKETCH = 3  # numbers


class Report(TypedDict):
    """Progress."""

    phase: str
    done: int
    of: int


class Pause(TypedDict):
    done: int


class Failure(TypedDict):
    type: str
    message: str


class Message(TypedDict, total=False):
    """A line of a worker: the number of the request, and one of the others."""

    id: int
    progress: Report
    pause: Pause
    error: Failure
    result: dict[str, Any]


class Configuration(TypedDict):
    """The result of ``configure``."""

    import_seconds: float
    versions: Versions
    flags: dict[str, Any]


class Unequal(TypedDict):
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


def check_sketches(numbers: dict[str, Any]) -> None:
    """Raise ValueError if a sketch has not three numbers, or if the key of an update is no number of steps."""
    updates = numbers.get("updates", {})
    tables = [numbers.get("layers") or {}, numbers.get("gradients", {}), *updates.values()]
    for name, sketch in (pair for table in tables for pair in table.items()):
        if len(sketch) != SKETCH:
            raise ValueError(f"the sketch of {name!r} has {len(sketch)} numbers, expected {SKETCH}")
    for steps in updates:
        if re.fullmatch("[0-9]{1,9}", steps) is None:
            raise ValueError(f"updates has the key {steps!r}, which is no number of steps")


def check_places(numbers: dict[str, Any]) -> None:
    """Raise ValueError if a mask does not have as many bits as the array."""
    for name in numbers.get("places", {}):
        mask_of(numbers, name)


def mask_of(numbers: dict[str, Any], name: str) -> numpy.ndarray[Any, Any]:
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
