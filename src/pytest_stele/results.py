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

    def send(self) -> dict[str, Any]:
        """Return the results as plain values, for the controller of pytest-xdist."""
        return {
            "runs": [run.to_dict() for run in self.runs],
            "broken": [tuple(one) for one in self.broken],
            "verdicts": [tuple(verdict) for verdict in self.verdicts],
        }

    def receive(self, sent: dict[str, Any]) -> None:
        """Add the results that ``send`` returned in another process."""
        from stele.gate.verdict import Verdict
        from stele.measuring.run import Run
        from stele.report.results import Difference
        from stele.statistics import Estimate

        self.runs += [Run.from_dict(run) for run in sent["runs"]]
        self.broken += [Difference(*one) for one in sent["broken"]]
        for verdict in map(Verdict._make, sent["verdicts"]):
            ratio = None if verdict.ratio is None else Estimate(*verdict.ratio)
            self.verdicts.append(verdict._replace(ratio=ratio))


def of(config: pytest.Config) -> Results:
    return config.stash.setdefault(RESULTS, Results())


def summary(reporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Write the table of Runs and the verdicts against the baseline."""
    from pytest_stele import session
    from stele import text
    from stele.report import gate, results

    found = of(config)
    if found.runs or found.broken:
        reporter.section("stele")
        reporter.write_line("\n".join(results.terminal(found.runs, found.broken)).strip())
        reporter.write_line(f"\nEvery step of each Run: {session.of(config).runs}")
    if found.verdicts:
        reporter.section("against the baseline")
        cells = [
            [one.status, f"{one.task} {one.phase}", one.metric, gate.ratio(one), one.message]
            for one in found.verdicts
        ]
        reporter.write_line("\n".join(text.align(cells)))
