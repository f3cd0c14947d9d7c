"""What the tests of a session measured and judged, and the summary at its end."""

from typing import Any

import pytest

RESULTS = pytest.StashKey["Results"]()


class Results:
    """Runs, recipes that compute something different, and verdicts against the baseline, in order of time."""

    def __init__(self) -> None:
        self.runs: list[Any] = []  # stele.measuring.run.Run
        self.broken: list[Any] = []  # stele.report.results.Difference
        self.verdicts: list[Any] = []  # stele.gate.verdict.Verdict

    def send(self) -> dict[str, list[Any]]:
        """Return the results as plain values, for the controller of pytest-xdist."""
        from stele import schema

        return {
            "runs": [schema.to_json(run) for run in self.runs],
            "broken": [tuple(difference) for difference in self.broken],
            "verdicts": schema.to_json(self.verdicts),
        }

    def receive(self, sent: dict[str, list[Any]]) -> None:
        """Add the results that ``send`` returned in another process."""
        from stele import schema
        from stele.gate.entries import Verdict
        from stele.measuring.run import Run
        from stele.report.results import DifferentRecipe

        self.runs += schema.convert(sent["runs"], list[Run])
        self.broken += [DifferentRecipe(*fields) for fields in sent["broken"]]
        self.verdicts += schema.convert(sent["verdicts"], list[Verdict])


def of(config: pytest.Config) -> Results:
    return config.stash.setdefault(RESULTS, Results())


def summary(reporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Write the table of Runs and the verdicts against the baseline."""
    from pytest_stele import session
    from stele import text
    from stele.report import gate, results

    collected = of(config)
    if collected.runs or collected.broken:
        reporter.section("stele")
        reporter.write_line("\n".join(results.terminal(collected.runs, collected.broken)).strip())
        reporter.write_line(f"\nEvery step of each Run: {session.of(config).runs}")
    if collected.verdicts:
        reporter.section("against the baseline")
        cells = [
            [verdict.status, f"{verdict.task} {verdict.phase}", verdict.metric, gate.ratio(verdict), verdict.message]
            for verdict in collected.verdicts
        ]
        reporter.write_line("\n".join(text.align(cells)))
