"""What the tests of a session measured and judged, and what the terminal shows of it at the end."""

from typing import Any

import pytest

RESULTS = pytest.StashKey["Results"]()
# options of pytest-benchmark about its tables, or that have an effect only when it prints them
ASKING = ("verbose", "columns", "compare", "compare_fail", "histogram", "cprofile")


class Results:
    """Runs, recipes that compute something different, and verdicts against the baseline, in order of time."""

    def __init__(self) -> None:
        self.runs: list[Any] = []  # stele.measuring.run.Run
        self.broken: list[Any] = []  # stele.report.results.Difference
        self.verdicts: list[Any] = []  # stele.gate.verdict.Verdict
        self.benchmarks = set[str]()  # the names in pytest-benchmark of the tests with these Runs
        self.left_out = ""  # a line about the environments that have no tests

    def send(self) -> dict[str, Any]:
        """Return the results as plain values, for the controller of pytest-xdist."""
        from stele import schema

        return {
            "runs": [schema.to_json(run) for run in self.runs],
            "broken": [tuple(difference) for difference in self.broken],
            "verdicts": schema.to_json(self.verdicts),
            "left_out": self.left_out,
        }

    def receive(self, sent: dict[str, Any]) -> None:
        """Add the results that ``send`` returned in another process."""
        from stele import schema
        from stele.gate.entries import Verdict
        from stele.measuring.run import Run
        from stele.report.results import DifferentRecipe

        self.runs += schema.convert(sent["runs"], list[Run])
        self.broken += [DifferentRecipe(*fields) for fields in sent["broken"]]
        self.verdicts += schema.convert(sent["verdicts"], list[Verdict])
        self.left_out = sent["left_out"]


def of(config: pytest.Config) -> Results:
    return config.stash.setdefault(RESULTS, Results())


def hide_tables(config: pytest.Config) -> None:
    """Remove these Runs from the tables of pytest-benchmark, unless -v or an option of pytest-benchmark asks for them.

    What pytest-benchmark writes and compares is not changed.
    """
    benchmarks: Any = getattr(config, "_benchmarksession", None)
    if benchmarks is None or not benchmarks.groups or config.get_verbosity() > 0:
        return
    if any(getattr(config.option, f"benchmark_{name}", None) for name in ASKING):
        return
    hidden = of(config).benchmarks
    rows = [(name, [row for row in group if row["fullname"] not in hidden]) for name, group in benchmarks.groups]
    benchmarks.groups = [(name, group) for name, group in rows if group]


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
    if collected.left_out:
        reporter.write_line(f"\n{collected.left_out}")
