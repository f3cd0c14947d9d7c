"""Runs compared with what this machine measured before: the test fails, is skipped, or passes."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_stele import results
from stele.errors import SteleError
from stele.gate import baseline
from stele.gate.metrics import METRICS
from stele.measuring.run import Run


def compare(request: pytest.FixtureRequest, runs: Sequence[Run], folder: Path) -> None:
    """Fail if a metric regressed; skip, with the reason, if there is no verdict."""
    tolerances, margins = (marked(request.node, f"stele_{name}") for name in ("tolerance", "margin"))
    verdicts = baseline.compare(runs, tolerances=tolerances, margins=margins, folder=folder)
    results.of(request.config).verdicts += verdicts
    worse = [verdict for verdict in verdicts if verdict.status == "REGRESSED"]
    if worse:
        message = "; ".join(f"{verdict.metric} {verdict.message}" for verdict in worse)
        raise SteleError(f"{runs[0].environment} {runs[0].task} {runs[0].phase} against its baseline: {message}")
    for verdict in verdicts:
        if verdict.status != "PASS":  # measured, but without a verdict
            pytest.skip(f"unknown against its baseline: {verdict.metric} {verdict.message}")


def marked(item: pytest.Item, name: str) -> dict[str, float]:
    """Return the fractions of the markers of this name, by metric; the nearest marker counts.

    Raises SteleError for an unknown metric.
    """
    fractions = {}
    for marker in reversed(list(item.iter_markers(name))):
        fractions.update({metric.replace("_", "-"): float(value) for metric, value in marker.kwargs.items()})
    metrics = [metric.name for metric in METRICS]
    for metric in fractions:
        if metric not in metrics:
            available = ", ".join(metrics).replace("-", "_")
            raise SteleError(f"The marker {name} does not know the metric {metric!r}. Known: {available}.")
    return fractions
