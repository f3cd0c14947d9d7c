"""The control: in every pass, OLD is launched a second time. Do both measurements of OLD agree?"""

import math
from typing import TYPE_CHECKING

from stele import statistics, text
from stele.gate import judgement
from stele.gate.metrics import METRICS
from stele.gate.trial import Cell
from stele.gate.verdict import Verdict
from stele.statistics import Pass

if TYPE_CHECKING:
    from stele.gate.state import State

STEP = METRICS[0]
DIFFERS = "The control failed: OLD differs from itself, so the machine changed during the measurement."


def verdict(state: "State", cell: Cell) -> Verdict | None:
    """Return PASS, or INCONCLUSIVE if OLD certainly differs from itself; None if no step was timed in the cell."""
    passes = control_passes(state, cell)
    if not passes or STEP.name not in [metric.name for metric in state.trial.metrics]:
        return None
    paths = [statistics.log_e_values(arms, STEP.noise) for arms in (passes, statistics.mirrored(passes))]
    largest = max(max(path) for path in paths)
    ratio = judgement.to_ratio(statistics.effect(passes, STEP.noise, level=judgement.ERROR))
    p = min(math.exp(-largest), 1.0)
    if largest >= judgement.certainty(2 * len(state.cells)):
        return Verdict(*cell, "control", "INCONCLUSIVE", DIFFERS, ratio, len(passes), p)
    difference = text.change(ratio.middle)
    message = f"OLD beside OLD: {difference} ({text.counted(len(passes), 'pass')})"
    return Verdict(*cell, "control", "PASS", message, ratio, len(passes), p)


def control_passes(state: "State", cell: Cell) -> list[Pass]:
    """Return what both launches of OLD measured in each pass that counts."""
    counted = [
        result.runs for result in state.results_of(cell, STEP.kinds) if result.runs and not result.excluded
    ]
    values = [STEP.values({arm: runs[arm] for arm in ("old", "control")}) for runs in counted]
    return [((arms["old"],), (arms["control"],)) for arms in values if arms is not None]
