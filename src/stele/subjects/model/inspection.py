"""What a user's model is: asked of a worker once, before anything is measured."""

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

from stele.environments import Environment
from stele.measuring import answers, worker
from stele.measuring.content import NOTHING, Reads
from stele.measuring.settings import Settings
from stele.measuring.worker import WorkerError
from stele.subjects import errors
from stele.subjects.errors import SubjectError
from stele.subjects.model.inputs import Input

if TYPE_CHECKING:
    from stele.subjects.model.spec import Model

EXAMPLES = "example_inputs()"  # where inputs come from that a function of the user returns


class ModelArray(NamedTuple):
    """A parameter or a buffer of a model, as it was built."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    parameter: bool  # whether it is trained


class Built(NamedTuple):
    """What a model is made of; see ``stele_worker.models.facts``."""

    arrays: tuple[ModelArray, ...] = ()
    tied: tuple[tuple[str, ...], ...] = ()  # names of one array
    training: bool | None = None  # its mode


class Output(NamedTuple):
    """An array that a model returns in inference."""

    name: str  # "" of the only one; see ``stele_worker.models.outputs``
    shape: tuple[int, ...]
    dtype: str


class Inspection(NamedTuple):
    """What the worker says about a model; see ``stele_worker.models.inspect``."""

    framework: str
    inputs: tuple[Input, ...]
    target: dict[str, Any] | None
    parameters: int
    deterministic: bool
    loss: str  # what training minimises, in words
    summary: str  # the inputs, and where they come from, in words
    accuracy: bool = False  # whether right answers can be counted
    reads: Reads = NOTHING  # what it consists of: modules of the user, and what they read
    built: Built = Built()
    output: tuple[int, ...] | None = None  # shape of the main one
    outputs: tuple[Output, ...] = ()
    inferred_from: str | None = None  # where the inputs come from
    remark: str | None = None  # how --pretrained was matched, if not by name
    examples: str | None = None  # "model" or "module": where example_inputs() is
    untrained: str | None = None  # why its training is not measured

    def describe(self, *, training: bool) -> str:
        """Return a line for people. Inference has no loss, and a training that is not measured has one of its own."""
        dtypes = sorted({each.dtype for each in self.built.arrays if each.parameter})
        parts = [self.summary, *([f"dtype: {', '.join(dtypes)}"] if dtypes else [])]
        return "; ".join([*parts, *([f"loss: {self.loss}"] if training and self.untrained is None else [])])


def inspect(environment: Environment, model: "Model", *, timeout: float) -> Inspection:
    """Return what the model is in an environment. Raises SubjectError, or WorkerError if the worker itself fails."""
    try:
        with worker.launch(environment, Settings(device="cpu"), name="inspect", timeout=timeout) as live:
            answer = live.ask("inspect", model=model.as_request(), expected=answers.ModelFacts)
            with live.checking("inspect"):
                inputs = tuple(input_from(each) for each in answer["inputs"])
    except WorkerError as error:
        raise errors.user_error(error) or error from None
    names = ("framework", "target", "parameters", "deterministic", "loss", "summary")
    facts = {name: answer[name] for name in names}
    facts |= {name: answer[name] for name in ("inferred_from", "remark", "examples", "untrained") if name in answer}
    output = answer.get("output")
    return Inspection(
        inputs=inputs,
        accuracy=answer.get("accuracy") is True,
        reads=Reads.of(answer),
        built=built_from(answer.get("built")),
        output=None if output is None else tuple(output),
        outputs=tuple(Output(each["name"], tuple(each["shape"]), each["dtype"]) for each in answer.get("outputs", ())),
        **facts,
    )


def built_from(facts: dict[str, Any] | None) -> Built:
    if facts is None:
        return Built()
    arrays = tuple(
        ModelArray(each["name"], tuple(each["shape"]), each["dtype"], each["parameter"]) for each in facts["arrays"]
    )
    return Built(arrays, tuple(map(tuple, facts["tied"])), facts["training"])


def input_from(facts: dict[str, Any]) -> Input:
    """Return an input of the answer. Raises ValueError if it has no batch."""
    if not facts["shape"]:
        raise ValueError(f"the input {facts['name']!r} has the shape [], but the first number is the batch")
    return Input(facts["name"], facts["kind"], tuple(facts["shape"]), facts["high"], facts.get("dtype"))


def check(inspection: Inspection, model: "Model", *, training: bool) -> None:
    """Raise SubjectError if nothing can be measured of the model."""
    if not inspection.deterministic:
        raise SubjectError(
            f"{model.spec} is not deterministic in inference: two calls on one batch differ. "
            "Turn off dropout and sampling in evaluation mode."
        )
    if training and inspection.untrained is not None:
        raise SubjectError(f"{model.spec}: {inspection.untrained}")
    if training and not inspection.parameters:
        raise SubjectError(f"{model.spec} has no parameters to train. Measure inference alone: --phase infer")


def resolved(model: "Model", environment: Environment, inspection: Inspection) -> tuple["Model", Environment]:
    """Return the model with its inputs and target, and the environment with its framework."""
    resolved_model = dataclasses.replace(
        model,
        inputs=inspection.inputs,
        target=inspection.target,
        accuracy=inspection.accuracy,
        reads=inspection.reads._replace(noticed=()),
        examples=inspection.examples,
        inspected=True,
    )
    return resolved_model, dataclasses.replace(environment, framework=inspection.framework)
