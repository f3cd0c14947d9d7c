"""Capabilities of a framework beyond the Tasks, each checked against an expected number.

``stele_worker.capabilities`` defines the checks. A framework says "yes", or "no" with the reason. It
is "wrong" if it computes a different number, and "failed" if it raises an error or crashes.
"""

from collections.abc import Callable
from typing import Annotated

import msgspec

from stele.environments import Environment
from stele.measuring import measure, progress, worker
from stele.measuring.answers import Capability
from stele.measuring.settings import Settings
from stele.measuring.worker import WorkerError
from stele.parity import ladder
from stele.schema import about

TOLERANCE = 1e-5  # relative error

# by capability: its title in tables, and the expected numbers
EXPECTED: dict[str, tuple[str, list[float]]] = {
    "second_derivative": ("second-order gradient", [12.0]),
    "gradient_penalty": ("gradient penalty", [30.0]),
    "hooks": ("forward pre- and post-hook", [13.0]),
    "shared_parameter": ("one parameter in two places", [12.0]),
    "predicted_weight": ("weight predicted by a network", [30.0, 15.0]),
    "control_flow": ("data-dependent loop, compiled", [7.0, 2.0]),
    "dynamic_batch": ("batch size free, compiled once", [1.0]),
    "saved_model": ("compiled model saved and loaded", [6.0]),
}


class CapabilityStatus(msgspec.Struct, frozen=True):
    """What a framework can do."""

    status: Annotated[str, about("`yes`, `no`, `wrong` or `failed`")]
    reason: Annotated[str, about("why not; empty for `yes`")] = ""


class CapabilitiesFile(msgspec.Struct, frozen=True):
    """Written to the file that `--json` names."""

    environments: Annotated[dict[str, dict[str, CapabilityStatus]], about("by environment, then capability")]


def answers(environment: Environment, settings: Settings, *, say: Callable[[str], None]) -> dict[str, CapabilityStatus]:
    """Return the status of each capability. Each has a separate Worker, so that a crash costs one answer."""
    result = {}
    with progress.counted(environment.name, len(EXPECTED)) as show:
        for number, name in enumerate(EXPECTED, 1):
            say(f"{environment.name}: {name} …")
            result[name] = answer(environment, name, settings)
            show(number)
    return result


def answer(environment: Environment, name: str, settings: Settings) -> CapabilityStatus:
    """Return the status of one capability."""
    try:
        with worker.launch(environment, settings) as live:
            measure.configure(live, settings)
            numbers = live.ask("capability", name=name, expected=Capability)["numbers"]
    except WorkerError as error:
        return answer_from_error(error)
    expected = EXPECTED[name][1]
    if ladder.relative_error(numbers, expected) <= TOLERANCE:
        return CapabilityStatus("yes")
    if name == "dynamic_batch" and len(numbers) == 1 and numbers[0] is not None:
        return CapabilityStatus("no", f"compiled {numbers[0]:g} times for three batch sizes")
    return CapabilityStatus("wrong", f"{numbers} instead of {expected}")


def answer_from_error(error: WorkerError) -> CapabilityStatus:
    """Return "no" if the framework reports that it lacks the capability, and "failed" for any other error."""
    if error.kind == "NotImplementedError":
        return CapabilityStatus("no", error.message or "")
    return CapabilityStatus("failed", error.message or str(error).splitlines()[0])
