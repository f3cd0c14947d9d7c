"""Modes of execution."""

import json

from stele import schema
from tests.support.reports import report, section
from tests.support.runs import changed


def test_modes_are_relative_to_the_first_one(folder, run):
    compiled = changed(run, environment="torch-compile", steps={"seconds": (0.5, *[0.0055] * 30)})
    line = {
        "runs": schema.to_json({"torch": run, "torch-compile": compiled}),
        "failed": {"torch-frozen": "no"},
    }
    (folder / "torch-cnn-train.jsonl").write_text(json.dumps(line) + "\n")
    rows = section(report(folder), "modes").figures[0].table.rows
    assert [(row[0], row[2], row[8]) for row in rows] == [
        ("torch", 1.0, None), ("torch-compile", 0.5, None), ("torch-frozen", None, "no"),
    ]  # fmt: skip
