"""Parity of the user's recipes: one alone, or compared with that of another framework.

Two frameworks start from the weights of the task file. Layers are compared by their norms, because frameworks have
different layouts, and only where both have a layer of the same name.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import msgspec

from stele.environments import Environment
from stele.measuring import measure, processors, worker
from stele.measuring.answers import Numbers
from stele.measuring.settings import Settings
from stele.parity import examination, ladder, reference
from stele.parity.ladder import Finding
from stele.subjects import Subject

PHASES = ("infer", "train")
ALONE = (1, 8)  # rungs that ``alone`` judges


class Arm(NamedTuple):
    """A recipe of the user in an environment, after its inspection."""

    subject: Subject
    environment: Environment


def answers(
    arm: Arm, settings: Settings, phases: tuple[str, ...] = PHASES, *, timeout: float, flip: bool = False
) -> Any:
    """Return the answers of a fresh worker to ``parity``, merged. Raises WorkerError."""
    settings = replace(settings, deterministic=True)
    with worker.launch(arm.environment, settings, name="parity", timeout=timeout) as live:
        measure.configure(live, settings, model=arm.subject.as_request())
        return examination.model_answers(live, arm.subject, settings, phases, flip=flip)


def alone(arm: Arm, settings: Settings, *, timeout: float) -> list[Finding]:
    """Return the findings of rungs 1, 8 and 9: weights, inference, and the same bits in two launches."""
    findings = reference.alone(answers(arm, settings, timeout=timeout))
    if arm.environment.varies is not None:
        return [*findings, ladder.repetition([], nondeterminism=arm.environment.varies)]
    repeats = [answers(arm, settings, ("repeat",), timeout=timeout) for _ in range(2)]
    return [*findings, ladder.repetition(repeats, nondeterminism=None)]


def against(arm: Arm, other: Arm, settings: Settings, *, timeout: float) -> tuple[list[Finding], str | None]:
    """Return the findings of rungs 2 to 7 compared with another framework, and why they may not count.

    The tolerances are those of a user's model in the gate: ten times the rounding of the other framework.
    """
    threads = min(2, processors.count()) if settings.threads == 1 else 1
    changed = replace(settings, threads=threads)
    expected = with_norms(answers(other, settings, timeout=timeout))
    changes = {
        f"{threads} threads": with_norms(answers(other, changed, timeout=timeout)),
        "the batch reversed": with_norms(answers(other, settings, timeout=timeout, flip=True)),
    }
    numbers = with_norms(answers(arm, settings, timeout=timeout))
    rounding = reference.measure_rounding(changes, expected, precision=settings.arithmetic)
    findings = reference.findings(numbers, expected, rounding)
    doubt = reference.doubt(expected, rounding, findings)
    compared = [named(finding, other) for finding in findings if finding.rung not in ALONE]
    return compared, None if doubt is None else doubt.replace("OLD", other.environment.name)


def with_norms(numbers: Numbers) -> Numbers:
    """Return the answers with layers that consist of their norms; the order of a layer depends on its framework."""
    layers = numbers.get("layers") or {}
    return {**numbers, "layers": {name: [sketch[0], 0.0, 0.0] for name, sketch in layers.items()}}


def named(finding: Finding, other: Arm) -> Finding:
    """Return a finding whose message says with what it was compared."""
    if finding.status != "differs":
        return finding
    return msgspec.structs.replace(finding, message=f"{finding.message} (compared with {other.environment.name})")
