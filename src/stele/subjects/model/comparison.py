"""How the model that NEW builds differs from the one that OLD builds, before anything is computed.

Both arms are asked what the user's functions return. So a difference here is one of NEW: the same code gives another
model, or other inputs.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from stele.environments import Environment
from stele.measuring import progress
from stele.measuring.content import Noticed, Reads
from stele.measuring.worker import WorkerError
from stele.subjects.base import Comparison, InBoth, InOld, Say
from stele.subjects.errors import SubjectError, UnfitWeights
from stele.subjects.model import inspection
from stele.subjects.model.inputs import Input
from stele.subjects.model.inspection import EXAMPLES, Built, Inspection, Output
from stele.text import first_of

if TYPE_CHECKING:
    from stele.subjects.model.spec import Model

SHOWN = 3  # names in a message
ATTEMPTS = 4  # as in parity: if OLD and NEW failed equally often, all of NEW's would fail and none of OLD's in 1 of 256
MODES = {True: "in training mode", False: "in evaluation mode"}


@dataclass
class ModelInOld(InOld):
    """A model as OLD has it: what OLD says of it, and how NEW is asked."""

    original: "Model"  # as the command line names it
    answer: Inspection
    training: bool
    timeout: float
    noticed: Noticed

    def alone(self, new: Environment) -> InBoth:
        return InBoth(self.subject, self.old, replace(new, framework=self.answer.framework))

    def compare(self, new: Environment) -> InBoth:
        with progress.waiting(f"building the model in {new.name}"):
            compared, of_new = ask_new(
                self.old, new, self.original, self.answer, training=self.training, timeout=self.timeout
            )
        if of_new is None:
            return self.alone(new)._replace(compared=compared)
        files = (*of_new.reads.files, *self.noticed.admit(of_new.reads.noticed))
        reads = Reads(files, variables=of_new.reads.variables)
        return InBoth(
            self.subject.with_reads(reads), self.old, replace(new, framework=of_new.framework), compared, reads
        )


def in_old(model: "Model", old: Environment, *, training: bool, timeout: float, say: Say) -> ModelInOld:
    """Return the model as OLD has it, and say what it is. Raises SubjectError if it cannot be measured."""
    with progress.waiting(f"building the model in {old.name}"):
        answer = inspection.inspect(old, model, timeout=timeout)
    say(answer.describe(training=training))
    if answer.remark:
        say(answer.remark)
    inspection.check(answer, model, training=training)
    resolved, environment = inspection.resolved(model, old, answer)
    noticed = Noticed()
    noticed.admit(answer.reads.noticed)
    return ModelInOld(resolved, environment, model, answer, training, timeout, noticed)


def ask_new(
    old: Environment, new: Environment, model: "Model", of_old: Inspection, *, training: bool, timeout: float
) -> tuple[Comparison, Inspection | None]:
    """Ask NEW about the model and compare it with what OLD said. Return the comparison, and what NEW said.

    If NEW fails or differs, both arms are asked again, until NEW repeats it, or ATTEMPTS times. Raises SubjectError if
    OLD then says something else, and what ``inspection.inspect`` raises if OLD fails.
    """
    # inputs that Stele infers are the same in both arms; those of the user's function are what NEW's returns
    model_for_new = model if of_old.inferred_from == EXAMPLES else replace(model, inputs=of_old.inputs)
    latest, attempts = of_old, [attempt(new, model_for_new, timeout)]
    while True:
        compared, of_new = judge(latest, attempts[-1], training)
        if (compared.failure is None and not compared.differences) or is_certain(attempts, latest, training):
            return compared, of_new
        latest = inspection.inspect(old, model, timeout=timeout)
        unstable = compare(of_old, latest, training=training).differences
        if unstable:
            message = unstable[0].replace("NEW", "the second process").replace("OLD", "the first one")
            raise SubjectError(f"{model.spec} is another model in each process of OLD: {message}. Seed it.")
        attempts.append(attempt(new, model_for_new, timeout))


class Failure(NamedTuple):
    """Why NEW cannot build or call the model. ``exception`` is None if the process ended without saying why."""

    message: str
    exception: tuple[str, str] | None


def is_certain(attempts: Sequence[Inspection | Failure], old: Inspection, training: bool) -> bool:
    """Return whether the last two attempts failed with the same exception or differ from OLD alike, or all failed."""
    if len(attempts) >= ATTEMPTS:
        return True
    before, last = attempts[-2:] if len(attempts) > 1 else (None, attempts[-1])
    if isinstance(before, Failure) and isinstance(last, Failure):
        return last.exception is not None and before.exception == last.exception
    if isinstance(before, Inspection) and isinstance(last, Inspection):
        differences = [compare(old, each, training=training).differences for each in (before, last)]
        return not set(differences[0]).isdisjoint(differences[1])
    return False


def attempt(environment: Environment, model: "Model", timeout: float) -> Inspection | Failure:
    """Return what the model is in an environment, or why it cannot be built or called there."""
    try:
        return inspection.inspect(environment, model, timeout=timeout)
    except UnfitWeights as error:  # of the user's file
        raise UnfitWeights(f"{environment.name}: {error} Name the pairs: --weights-map FILE") from None
    except SubjectError as error:
        return Failure(str(error), ("SubjectError", str(error)))
    except WorkerError as error:
        return Failure(str(error), None if error.kind is None else (error.kind, error.message or ""))


def judge(old: Inspection, new: Inspection | Failure, training: bool) -> tuple[Comparison, Inspection | None]:
    if isinstance(new, Failure):
        return Comparison(failure=new.message), None
    return compare(old, new, training=training), new


def compare(old: Inspection, new: Inspection, *, training: bool) -> Comparison:
    """Return how NEW's model differs. The loss and the target count only in ``training``."""
    differences = [
        *input_differences(old, new),
        *(target_differences(old, new) if training else ()),
        *mode_differences(old.built, new.built),
        *dtype_differences(old.built, new.built),
        *tying_differences(old.built, new.built),
        *size_differences(old, new),
        *output_differences(old, new),
    ]
    shapes = shapes_of(old.built), shapes_of(new.built)
    return Comparison(tuple(differences), renamed=all(shapes) and shapes[0] != shapes[1])


def input_differences(old: Inspection, new: Inspection) -> Iterator[str]:
    before, after = by_label(old.inputs), by_label(new.inputs)
    both = f"its inputs are {listed(after)}, OLD's {listed(before)}"
    facts = [{name: facts_of(each) for name, each in side.items()} for side in (before, after)]
    yield from named_differences(facts[0], facts[1], both, "an input ")
    if (old.examples is None) != (new.examples is None):
        which = "OLD" if new.examples is None else "NEW"
        yield f"only {which}'s example_inputs() returns numbers that are not all equal"


def named_differences(
    old: Mapping[str, Mapping[str, Any]], new: Mapping[str, Mapping[str, Any]], both: str, kind: str = ""
) -> Iterator[str]:
    """Yield what only one arm has, with ``both``, which says what each has; then the facts that changed."""
    for name in old:
        if name not in new:
            yield f"{name} is missing in NEW: {both}"
    for name in new:
        if name not in old:
            yield f"{name} is {kind}in NEW and not in OLD: {both}"
    for name, facts in old.items():
        if name in new:
            yield from changes(name, facts, new[name])


def by_label(inputs: Iterable[Input]) -> dict[str, Input]:
    return {each.name or f"input {number}": each for number, each in enumerate(inputs, 1)}


def facts_of(each: Input) -> dict[str, str | None]:
    return {"shape": size(each.shape), "dtype": each.dtype, "kind": each.kind}


def changes(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Yield ``ids has dtype int32 in NEW, int64 in OLD``."""
    for fact, before in old.items():
        if new[fact] != before:
            yield f"{name} has {fact} {new[fact]} in NEW, {before} in OLD"


def target_differences(old: Inspection, new: Inspection) -> Iterator[str]:
    if old.loss != new.loss:
        yield f"the loss is {new.loss} in NEW, {old.loss} in OLD"
    elif describe(old.target) != describe(new.target):
        yield f"the target is {describe(new.target)} in NEW, {describe(old.target)} in OLD"


def describe(target: Mapping[str, Any] | None) -> str:
    """Return a target as an input is typed, such as ``labels=int:4:8``."""
    if target is None:
        return "absent"
    return str(Input(target["name"], target["kind"], tuple(target["shape"]), target["high"]))


def mode_differences(old: Built, new: Built) -> Iterator[str]:
    if None not in (old.training, new.training) and old.training != new.training:
        yield f"the model is built {MODES[bool(new.training)]} in NEW, {MODES[bool(old.training)]} in OLD"


def dtype_differences(old: Built, new: Built) -> Iterator[str]:
    """Yield ``float16 in NEW, float32 in OLD (bert.embeddings.word_embeddings.weight and 40 more)``."""
    before = {each.name: each.dtype for each in old.arrays}
    changed: dict[tuple[str, str], list[str]] = {}
    for each in new.arrays:
        if before.get(each.name, each.dtype) != each.dtype:
            changed.setdefault((before[each.name], each.dtype), []).append(each.name)
    for (then, now), names in changed.items():
        yield f"{now} in NEW, {then} in OLD ({first_of(names, SHOWN)})"
    if old.arrays and new.arrays and not before.keys() & {each.name for each in new.arrays}:  # all are renamed
        then, now = (", ".join(sorted({each.dtype for each in built.arrays})) for built in (old, new))
        if then != now:
            yield f"the parameters are {now} in NEW, {then} in OLD"


def tying_differences(old: Built, new: Built) -> Iterator[str]:
    """Yield ``head.weight and embed.weight are one tensor in OLD, two in NEW``."""
    yield from untied(old, new, "OLD", "NEW")
    yield from untied(new, old, "NEW", "OLD")


def untied(tied: Built, other: Built, with_one: str, with_more: str) -> Iterator[str]:
    names = {each.name for each in other.arrays}
    group_of = {name: number for number, group in enumerate(other.tied) for name in group}
    for group in tied.tied:
        present = [name for name in group if name in names]
        count = len({group_of.get(name, name) for name in present})
        if count > 1:
            last = present.pop()
            number = {2: "two"}.get(count, str(count))
            yield f"{', '.join(present)} and {last} are one tensor in {with_one}, {number} in {with_more}"


def size_differences(old: Inspection, new: Inspection) -> Iterator[str]:
    """Yield how the parameters differ if they have another number of numbers.

    With the same number, they are only renamed, fused or arranged in another way.
    """
    before, after = shapes_of(old.built), shapes_of(new.built)
    sizes = [count(each.built) if all((before, after)) else each.parameters for each in (old, new)]
    if sizes[0] != sizes[1]:
        yield from other_parameters(before, after, sizes)


def output_differences(old: Inspection, new: Inspection) -> Iterator[str]:
    """Yield ``the output boxes is missing in NEW``, and other shapes and dtypes of what the model returns.

    Without the outputs of both, the shapes of the main ones are compared.
    """
    if not old.outputs or not new.outputs:
        if None not in (old.output, new.output) and old.output != new.output:
            yield f"the output has shape {size(new.output or ())} in NEW, {size(old.output or ())} in OLD"
        return
    before, after = (
        {f"the output {each.name}".strip(): {"shape": size(each.shape), "dtype": each.dtype} for each in side.outputs}
        for side in (old, new)
    )
    yield from named_differences(before, after, f"it returns {named(new.outputs)}, OLD {named(old.outputs)}")


def named(outputs: Iterable[Output]) -> str:
    """Return the names of the outputs as text, of many only the first ones."""
    return first_of([each.name or "one array" for each in outputs], SHOWN)


def other_parameters(
    old: Mapping[str, tuple[int, ...]], new: Mapping[str, tuple[int, ...]], sizes: Sequence[int]
) -> Iterator[str]:
    """Yield parameters with another shape, and those that only one arm has, with the numbers of both."""
    for name, shape in new.items():
        if old.get(name, shape) != shape:
            yield f"{name} has shape {size(shape)} in NEW, {size(old[name])} in OLD"
    lacking, more = [name for name in old if name not in new], [name for name in new if name not in old]
    parts = [f"NEW lacks {first_of(lacking, SHOWN)}"] if lacking else []
    parts += [f"OLD lacks {first_of(more, SHOWN)}"] if more else []
    if parts or not old or not new:
        yield f"the parameters have {sizes[1]:,} numbers in NEW, {sizes[0]:,} in OLD" + "".join(
            f"; {part}" for part in parts
        )


def count(built: Built) -> int:
    """Return how many numbers the parameters have. One tensor with several names counts once."""
    again = {name for group in built.tied for name in group[1:]}
    return sum(math.prod(shape) for name, shape in shapes_of(built).items() if name not in again)


def shapes_of(built: Built) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the parameters by name. Buffers may be missing in one arm."""
    return {each.name: each.shape for each in built.arrays if each.parameter}


def size(shape: Iterable[int]) -> str:
    return "x".join(map(str, shape)) or "()"


def listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
