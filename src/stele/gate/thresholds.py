"""The two thresholds of a metric as users write them: ``5%``, of the step, or ``host-memory=3%``."""

import re
from collections.abc import Mapping, Sequence

from stele.errors import SteleError
from stele.gate.metrics import ALL, Metric

MOST = 100.0  # per cent


def parse(option: str, texts: Sequence[str]) -> dict[str, float]:
    """Return the fractions in the texts of ``option``, by metric. Raises SteleError, which quotes the text."""
    values = {}
    for text in texts:
        match = re.fullmatch(r"(?:([\w-]+)=)?(\d{1,3}(?:\.\d+)?)%", text)
        name = match and (match[1] or "step")
        if match is None or name not in names() or float(match[2]) > MOST:
            raise SteleError(
                f"{option} {text} is not a threshold. Use {option} 5% or {option} METRIC=5%, "
                f"with METRIC one of {', '.join(names())}."
            )
        values[str(name)] = float(match[2]) / 100
    return values


def names() -> list[str]:
    return [metric.name for metric in ALL]


def apply(tolerances: Mapping[str, float], margins: Mapping[str, float]) -> list[Metric]:
    """Return the metrics with these thresholds. A margin that is not given is raised to the tolerance.

    Raises SteleError if a given margin is below the tolerance.
    """
    metrics = []
    for metric in ALL:
        tolerance = tolerances.get(
            metric.name, min(metric.tolerance, margins.get(metric.name, metric.tolerance))
        )
        margin = margins.get(metric.name, max(metric.margin, tolerance))
        if margin < tolerance or margin == 0:
            raise SteleError(
                f"The margin of {metric.name}, {margin:.3g}, has to be above 0 and at least its tolerance, "
                f"{tolerance:.3g}. Growth up to the tolerance is accepted even if it is certain; growth by the margin "
                "has to be ruled out. Raise --margin or lower --tolerance."
            )
        metrics.append(metric._replace(tolerance=tolerance, margin=margin))
    return metrics
