"""The bands in which a trained network's accuracy lies, each measured over seeds and never guessed.

``accuracy.json``: {"schema": 1, "bands": {task: {scale: {fingerprint of the data: {"accuracies", "source"}}}}}.
The band is the 99.9 % prediction interval for one more run. At paper scale on the official data, the band
is the spread of the published rows (github.com/ilkarman/DeepLearningFrameworks, README).
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

from stele import files, schema, statistics
from stele.errors import SteleError
from stele.measuring.run import Run

FILE = Path(__file__).parent / "accuracy.json"
FEWEST = 5  # accuracies of a band
PUBLISHED = {"cnn": (0.753, 0.790), "gru": (0.845, 0.862)}


class Band(NamedTuple):
    """Accuracies, as fractions, and where the band comes from."""

    low: float
    high: float
    source: str


def band(run: Run, file: Path | None = None) -> Band | None:
    """The band for a Run's task, scale and data, or None if none was measured."""
    known = published(run)
    if known is not None:
        return known
    found = entry(run.task, run.scale, run.data["fingerprint"], file)
    return None if found is None else measured(found)


def published(run: Run) -> Band | None:
    """The spread of the published rows, which are of paper scale and the official data; else None."""
    if run.scale != "paper" or run.data["origin"] != "official" or run.task not in PUBLISHED:
        return None
    return Band(*PUBLISHED[run.task], "published rows")


def measured(entry: dict[str, Any]) -> Band | None:
    """The band of these accuracies; None as long as they are too few."""
    if len(entry["accuracies"]) < FEWEST:
        return None
    low, _, high = statistics.prediction(entry["accuracies"])
    assert low is not None and high is not None
    return Band(max(low, 0.0), min(high, 1.0), entry["source"])


def entry(task: str, scale: str, fingerprint: str, file: Path | None = None) -> dict[str, Any] | None:
    """What was measured of a Task at a scale on this data, or None."""
    found: dict[str, Any] | None = read(file or FILE).get(task, {}).get(scale, {}).get(fingerprint)
    return found


def reference(run: Run, file: Path | None = None) -> list[float] | None:
    """The accuracies over seeds that a Run's task, scale and data were measured to have, or None."""
    found = entry(run.task, run.scale, run.data["fingerprint"], file)
    return None if found is None or len(found["accuracies"]) < FEWEST else list(found["accuracies"])


def surprise(run: Run, file: Path | None = None) -> str | None:
    """A message if a Run's accuracy lies outside its band; None if inside, or if there is no band."""
    if run.losses and None in run.losses:
        return f"the loss of step {run.losses.index(None) + 1} is not finite"
    known = band(run, file)
    if run.accuracy is None or known is None or known.low <= run.accuracy <= known.high:
        return None
    return (
        f"accuracy {run.accuracy:.2%} lies outside [{known.low:.2%}, {known.high:.2%}], "
        f"the band of {known.source} at scale {run.scale} on this data"
    )


def add(run: Run, accuracies: list[float], source: str, file: Path | None = None) -> None:
    """Record the accuracies of several seeds as the band for the task, scale and data of ``run``."""
    file = file or FILE
    bands = read(file)
    of_scale = bands.setdefault(run.task, {}).setdefault(run.scale, {})
    of_scale[run.data["fingerprint"]] = {"accuracies": accuracies, "source": source}
    files.write_text(file, json.dumps(schema.stamped({"bands": bands}), indent=1) + "\n")


def read(file: Path) -> dict[str, Any]:
    if not file.exists():
        return {}
    try:
        content = schema.unwrapped(json.loads(file.read_text()))
        bands: dict[str, Any] = content.get("bands", content)  # without the key before the schema number
    except ValueError as error:
        raise SteleError(f"{file} is not JSON: {error}. Restore it from version control.") from None
    return bands
