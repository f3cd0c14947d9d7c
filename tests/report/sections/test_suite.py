"""The Runs of the suite."""

from stele.measuring import store
from tests.support.reports import report, section
from tests.support.runs import changed

# Runs, modes and histories


def test_runs_are_shown_the_fastest_environment_first(folder, run):
    store.save(run, folder / "runs")
    store.save(changed(run, environment="jax", steps={"seconds": (0.5, *[0.005] * 30)}), folder / "runs")
    whole = report(folder / "runs")
    assert whole.headline.status == "" and "2 launches of 1 networks in 2 environments" in whole.headline.sentence
    rows = section(whole, "suite").figures[0].table.rows
    assert [row[0] for row in rows] == ["jax", "torch"]
    assert "launches" not in [one.anchor for one in whole.sections]


def test_repeated_runs_are_shown_in_order_of_time(folder, run):
    for day in ("03", "02"):
        store.save(changed(run, when=f"2026-01-{day}T00:00:00+00:00"), folder)
    rows = section(report(folder), "launches").figures[0].table.rows
    assert [row[0] for row in rows] == ["2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"]
