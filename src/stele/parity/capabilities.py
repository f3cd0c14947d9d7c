"""What a framework can do beyond the Tasks: asked of a Worker, and held against a number known beforehand.

What is asked stands in ``stele_worker.capabilities``. An Answer is "yes", "no" with the reason, "wrong" where something
else came out, or "failed" where the framework ended in an error.
"""

from collections.abc import Callable
from typing import NamedTuple

from stele.environments import Environment
from stele.measuring import measure, worker
from stele.measuring.settings import Settings
from stele.measuring.worker import WorkerError
from stele.parity import ladder

ERROR = 1e-5  # relative, at most

# by capability: what tables call it, and the numbers that have to come out
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


class Answer(NamedTuple):
    status: str  # yes, no, wrong, failed
    reason: str = ""


def answers(row: Environment, settings: Settings, *, progress: Callable[[str], None]) -> dict[str, Answer]:
    """Ask one capability after the other, each of a Worker of its own, so that a crash costs one answer."""
    found = {}
    for name in EXPECTED:
        progress(f"{row.name}: {name} …")
        found[name] = answer(row, name, settings)
    return found


def answer(row: Environment, name: str, settings: Settings) -> Answer:
    try:
        with worker.live(row, settings) as live:
            measure.configure(live, settings)
            numbers = live.ask("capability", name=name)["numbers"]
    except WorkerError as error:
        return refused(error)
    expected = EXPECTED[name][1]
    if ladder.relative_error(numbers, expected) <= ERROR:
        return Answer("yes")
    if name == "dynamic_batch" and len(numbers) == 1:
        return Answer("no", f"compiled {numbers[0]:g} times for three batch sizes")
    return Answer("wrong", f"{numbers} in place of {expected}")


def refused(error: WorkerError) -> Answer:
    """A framework that says itself that it cannot has answered; anything else has failed."""
    if error.kind == "NotImplementedError":
        return Answer("no", error.said or "")
    return Answer("failed", error.said or str(error).splitlines()[0])
