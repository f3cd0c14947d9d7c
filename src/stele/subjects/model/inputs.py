"""The option ``--input``: the shapes and kinds of a model's inputs.

    8x3x64x64                                              one input of floats
    int:4x128:30522                                        integers from 0 to 30521, such as tokens
    input_ids=int:4x128:30522,attention_mask=mask:4x128    named inputs
The first number of every shape is the batch.
"""

import re
from typing import Annotated, NamedTuple, TypedDict

from stele.errors import SteleError
from stele.schema import about

KINDS = ("float", "int", "mask")
PATTERN = re.compile(
    r"(?:(?P<name>[A-Za-z_]\w*)=)?(?:(?P<kind>[a-z]+):)?(?P<shape>\d{1,10}(?:x\d{1,10})*)(?::(?P<high>\d{1,10}))?"
)
LARGEST = 2**31  # numbers in one input
EXAMPLES = "8x3x64x64, int:4x128:30522 or input_ids=int:4x128:30522,attention_mask=mask:4x128"


class InputFacts(TypedDict):
    """An input of a model."""

    name: Annotated[str | None, about("name of the argument, or null")]
    kind: Annotated[str, about("`float`, `int` or `mask`")]
    shape: Annotated[list[int], about("the batch first")]
    high: Annotated[int | None, about("integers are below it")]
    dtype: Annotated[str | None, about("of an array of `example_inputs()`; null for float32 or int32")]


class Input(NamedTuple):
    """One input of a model. ``shape`` includes the batch; integers are below ``high``."""

    name: str | None
    kind: str  # "float", "int" or "mask"
    shape: tuple[int, ...]
    high: int | None = None
    dtype: str | None = None  # of an array of example_inputs(); None: float32 or int32

    def as_request(self) -> InputFacts:
        return InputFacts(name=self.name, kind=self.kind, shape=list(self.shape), high=self.high, dtype=self.dtype)

    def __str__(self) -> str:
        """Return the input as it can be typed."""
        name = "" if self.name is None else f"{self.name}="
        kind = "" if self.kind == "float" else f"{self.kind}:"
        high = "" if self.high is None else f":{self.high}"
        return f"{name}{kind}{'x'.join(map(str, self.shape))}{high}"


def parse(text: str) -> tuple[Input, ...]:
    """Return the inputs that ``text`` describes. Raises SteleError, quoting the part that has no meaning."""
    inputs = tuple(parse_one(part.strip()) for part in text.split(","))
    named = [each.name for each in inputs if each.name is not None]
    if len(set(named)) < len(named) or (named and len(named) < len(inputs)):
        raise SteleError(f"--input {text}: give every input a name of its own, or none of them.")
    if len({each.shape[0] for each in inputs}) > 1:
        raise SteleError(f"--input {text}: the first number of every shape is the batch and must be equal.")
    return inputs


def parse_one(part: str) -> Input:
    match = PATTERN.fullmatch(part)
    if match is None:
        raise SteleError(f"--input {part!r} is not an input such as {EXAMPLES}.")
    kind = match["kind"] or "float"
    if kind not in KINDS:
        raise SteleError(f"--input {part!r}: unknown kind {kind!r}. The kinds are {', '.join(KINDS)}.")
    high = None if match["high"] is None else int(match["high"])
    if (kind == "int") != (high is not None):
        raise SteleError(
            f"--input {part!r}: an int input, and no other, needs an upper bound, such as int:4x128:30522."
        )
    if high is not None and high < 2:
        raise SteleError(f"--input {part!r}: the upper bound must be at least 2.")
    return Input(match["name"], kind, shape_of(part, match["shape"]), high)


def shape_of(part: str, text: str) -> tuple[int, ...]:
    shape, size = tuple(map(int, text.split("x"))), 1
    for length in shape:
        size *= length
    if not 0 < size < LARGEST:
        raise SteleError(f"--input {part!r}: a shape needs at least 1 and less than 2**31 numbers.")
    return shape
