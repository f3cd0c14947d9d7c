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
    verdicts = baseline.compare(runs, margins(request.node), folder)
    results.of(request.config).verdicts += verdicts
    worse = [verdict for verdict in verdicts if verdict.status == "REGRESSED"]
    if worse:
        message = "; ".join(f"{verdict.metric} {verdict.message}" for verdict in worse)
        raise SteleError(
            f"{runs[0].environment} {runs[0].task} {runs[0].phase} against its baseline: {message}"
        )
    for verdict in verdicts:
        if verdict.status != "PASS":  # measured, but without a verdict
            pytest.skip(f"unknown against its baseline: {verdict.metric} {verdict.message}")


def margins(item: pytest.Item) -> dict[str, float]:
    """Return the margins of the markers; the nearest marker counts. Raises SteleError for an unknown metric."""
    given = {}
    for marker in reversed(list(item.iter_markers("stele_margin"))):
        given.update({name.replace("_", "-"): float(value) for name, value in marker.kwargs.items()})
    names = [metric.name for metric in METRICS]
    for name in given:
        if name not in names:
            known = ", ".join(names).replace("-", "_")
            raise SteleError(f"The marker stele_margin does not know the metric {name!r}. Known: {known}.")
    return given
