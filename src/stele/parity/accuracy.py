"""Measured accuracy bands: the accuracies that trained networks reach over several seeds.

``accuracy.json``: {"schema": 1, "bands": {task: {scale: {fingerprint of the data: {"accuracies", "source"}}}}}.
A band is the 99.9 % prediction interval for one more run. At scale paper on the official data, the band is the range
of the published results (github.com/ilkarman/DeepLearningFrameworks, README).
"""

from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from stele import files, schema, statistics
from stele.errors import SteleError
from stele.measuring.run import Run
from stele.schema import about
from stele_suite import tasks

FILE = Path(__file__).parent / "accuracy.json"
MIN_SEEDS = 5  # accuracies that a band needs
PUBLISHED = {"cnn": (0.753, 0.790), "gru": (0.845, 0.862)}


class Band(NamedTuple):
    """A range of accuracies, as fractions, and its source."""

    low: float
    high: float
    source: str


class BandEntry(msgspec.Struct, frozen=True):
    """What is recorded for a task, a scale and a data set."""

    accuracies: Annotated[list[float], about("accuracy of each seed", "fraction")]
    source: Annotated[str, about("number of seeds, release and date")]


Bands = dict[str, dict[str, dict[str, BandEntry]]]


class BandsFile(msgspec.Struct, frozen=True):
    """`src/stele/parity/accuracy.json`. `stele band` writes it."""

    bands: Annotated[Bands, about("by task, then scale, then fingerprint of the data")]


def band(run: Run, file: Path | None = None) -> Band | None:
    """Return the band for a Run's task, scale and data, or None if none was measured."""
    published = published_band(run)
    if published is not None:
        return published
    recorded = entry(run.task, run.scale, run.data.fingerprint, file)
    return None if recorded is None else measured_band(recorded)


def published_band(run: Run) -> Band | None:
    """Return the range of the published results for a Run at scale paper on the official data, else None."""
    if run.scale != "paper" or run.data.origin != "official" or run.task not in PUBLISHED:
        return None
    return Band(*PUBLISHED[run.task], "published results")


def measured_band(entry: BandEntry) -> Band | None:
    """Return the band of an entry's accuracies, or None if there are fewer than MIN_SEEDS."""
    if len(entry.accuracies) < MIN_SEEDS:
        return None
    low, _, high = statistics.prediction(entry.accuracies)
    assert low is not None and high is not None
    return Band(max(low, 0.0), min(high, 1.0), entry.source)


def scales(task: str) -> list[str]:
    """Return the scales at which a Task can have a band.

    A Task with target accuracies is trained with augmentation for the time to accuracy, and without it at the suite's
    scales. A band does not say which, so it exists at the scales with a target only.
    """
    targets = getattr(tasks.load(task), "TARGETS", None)
    return list(tasks.SCALES) if targets is None else [name for name in targets if name not in tasks.SCALES]


def entry(task: str, scale: str, fingerprint: str, file: Path | None = None) -> BandEntry | None:
    """Return the recorded entry of a Task at a scale on this data, or None."""
    return read(file or FILE).get(task, {}).get(scale, {}).get(fingerprint)


def reference_accuracies(run: Run, file: Path | None = None) -> list[float] | None:
    """Return the recorded accuracies for a Run's task, scale and data, or None if there are too few for a band."""
    recorded = entry(run.task, run.scale, run.data.fingerprint, file)
    return None if recorded is None or len(recorded.accuracies) < MIN_SEEDS else recorded.accuracies


def out_of_band_message(run: Run, file: Path | None = None) -> str | None:
    """Return a message if a Run's accuracy is outside its band, or if a loss is not finite; else None.

    A Run without a band or without an accuracy gives None.
    """
    if run.learning.losses and None in run.learning.losses:
        return f"the loss of step {run.learning.losses.index(None) + 1} is not finite"
    expected = band(run, file)
    if run.learning.accuracy is None or expected is None or expected.low <= run.learning.accuracy <= expected.high:
        return None
    return (
        f"accuracy {run.learning.accuracy:.2%} is outside the band [{expected.low:.2%}, {expected.high:.2%}] "
        f"of {expected.source} at scale {run.scale} on this data"
    )


def add(run: Run, accuracies: list[float], source: str, file: Path | None = None) -> None:
    """Record the accuracies of several seeds as the band for the task, scale and data of ``run``."""
    file = file or FILE
    bands = read(file)
    of_scale = bands.setdefault(run.task, {}).setdefault(run.scale, {})
    of_scale[run.data.fingerprint] = BandEntry(accuracies, source)
    files.write_text(file, schema.document(BandsFile(bands)))


def read(file: Path) -> Bands:
    """Return the recorded bands; empty if the file does not exist. Raises SteleError if it is not JSON."""
    if not file.exists():
        return {}
    try:
        return schema.of_document(schema.read(file), BandsFile).bands
    except ValueError as error:
        raise SteleError(f"{file} is damaged: {error}. Restore it from version control.") from None
