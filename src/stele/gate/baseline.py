"""Baselines: stored measurements of one machine, and the comparison of later runs with them.

    baselines/<machine>/<framework>-<task>-<phase>-<device>-<precision>.json    the baseline of one test
    baselines/<machine>/candidates/...json                                      saved launches, not yet promoted

A file holds the facts under which it was measured, and one line for each launch so that diffs are readable. The
launches of two sessions are not paired, so they are compared with the Mann-Whitney test. Conditions may have changed
between the sessions, so the tolerance of a metric is its whole margin here, if no other is given.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy

from stele import files, schema, statistics
from stele.errors import SteleError
from stele.gate import judgement
from stele.gate.entries import Verdict
from stele.gate.judgement import Judgement
from stele.gate.metrics import METRICS, Metric
from stele.gate.verdict import message_of
from stele.measuring import content, machine
from stele.measuring.machine import Machine
from stele.measuring.run import Options, Origin, Run
from stele.measuring.settings import Settings
from stele.schema import about
from stele.text import slug, unknown_message

FOLDER = Path("baselines")
CANDIDATES = "candidates"
MIN_LAUNCHES = 6  # on either side
SAVE = "pytest perf_tests --benchmark-only --launches 12 --save-baseline"
UNKNOWN = "UNKNOWN"


NAMES = {
    "first_step": "first-step",
    "import_seconds": "import",
    "host_memory": "host-memory",
    "device_memory": "device-memory",
}


class LaunchSummary(msgspec.Struct, frozen=True, kw_only=True, rename=NAMES):
    """A launch."""

    when: Annotated[str, about("as in *Run*", "ISO 8601, UTC")]
    step: Annotated[float, about("tenth percentile of the steps that count", "s")]
    first_step: Annotated[float, about("duration of the first step", "s")]
    import_seconds: Annotated[float, about("import time", "s")]
    host_memory: Annotated[int | None, about("peak resident memory", "byte")]
    device_memory: Annotated[int | None, about("peak memory of the device", "byte")]
    median: Annotated[float, about("median of the steps that count", "s")]
    p90: Annotated[float, about("90th percentile of the steps that count", "s")]


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts that two measurements must share. ``compare`` ignores ``versions``, which may differ."""

    machine: Machine
    settings: Settings
    scale: Annotated[str, about("how much is computed")]
    options: Options
    data: Origin
    weights: Annotated[str, about("`seeded`, or the origin of pretrained weights")]
    content: Annotated[dict[str, str], about("as in *Run*, without packages")]
    flags: Annotated[dict[str, Any], about("as in *Run*")]
    versions: Annotated[
        dict[str, str | None], about("version or null by package; all others must be equal in a comparison")
    ]


class Baseline(Facts, frozen=True, kw_only=True):
    """`<machine>/candidates/<environment>-<task>-<phase>-<device>-<precision>.json` in the folder `baselines`.

    The option `--save-baseline` writes it. `stele baseline promote` moves it from `candidates` to the folder of the
    machine. The option `--against-baseline` reads it there.
    """

    launches: tuple[LaunchSummary, ...]


def file_name(run: Run) -> Path:
    """Return the file of a Run's test, relative to the folder of its machine."""
    variant = f"{run.settings.device}-{run.settings.precision}"
    return Path(f"{slug(run.environment)}-{slug(run.task)}-{run.phase}-{variant}.json")


def facts(runs: Sequence[Run]) -> Facts:
    """Return the facts that a baseline stores of Runs."""
    run = runs[0]
    return Facts(
        machine=machine.fingerprint(run.machine),
        settings=run.settings,
        scale=run.scale,
        options=run.options,
        data=run.data,
        weights=run.weights,
        content={name: value for name, value in (run.content or {}).items() if name not in content.OF_PACKAGES},
        flags=run.framework.flags,
        versions=run.framework.versions,
    )


def summary(run: Run) -> LaunchSummary:
    """Return what a baseline stores of a launch."""
    median, p90 = numpy.percentile(run.counted_seconds, (50, 90))
    values = {metric.name: metric.value(run) for metric in METRICS}
    return schema.convert({"when": run.when, **values, "median": float(median), "p90": float(p90)}, LaunchSummary)


def save(runs: Sequence[Run], folder: Path = FOLDER) -> Path:
    """Write the launches of one test as a candidate, one line for each, and return the file.

    Raises SteleError if they do not have the same content.
    """
    content.require_same([run.content for run in runs], "The launches of a baseline")
    path = folder / machine.name_of(runs[0].machine) / CANDIDATES / file_name(runs[0])
    lines = ",\n".join(f"  {schema.encode(summary(run))}" for run in runs)
    head = schema.document(facts(runs)).rstrip()[:-2]
    files.write_text(path, f'{head},\n "launches": [\n{lines}\n ]\n}}\n')
    return path


def promote(names: Sequence[str], folder: Path = FOLDER) -> list[Path]:
    """Make the named candidates, or all, the baselines of later runs, and return their files.

    Raises SteleError if a candidate does not exist, or if there are none.
    """
    candidates = sorted(folder.glob(f"*/{CANDIDATES}/*.json"))
    promoted = [path for path in candidates if not names or path.stem in names]
    missing = [name for name in names if name not in [path.stem for path in candidates]]
    if missing or not promoted:
        if not candidates:
            raise SteleError(f"There are no saved candidates in {folder}. Save candidates with: {SAVE}")
        raise SteleError(unknown_message("candidate", missing[0], [path.stem for path in candidates]))
    return [path.replace(path.parents[1] / path.name) for path in promoted]


def compare(
    runs: Sequence[Run],
    *,
    tolerances: Mapping[str, float],
    margins: Mapping[str, float],
    folder: Path = FOLDER,
) -> list[Verdict]:
    """Return a Verdict for each metric; or a single UNKNOWN one with the reason if the two do not compare.

    ``tolerances`` and ``margins`` are fractions by metric, where they are not the default.
    """
    run = runs[0]
    path = folder / machine.name_of(run.machine) / file_name(run)
    if not path.exists():
        return [unknown_verdict(run, missing_message(run, folder))]
    recorded = read(path)
    if not all(run.content for run in runs):
        return [unknown_verdict(run, "what decided the launches was not recorded")]
    try:
        content.require_same([run.content for run in runs], "The launches")
    except SteleError as error:
        return [unknown_verdict(run, str(error))]
    before = schema.to_json(recorded)
    for fact, value in schema.to_json(facts(runs)).items():
        if fact != "versions" and before[fact] != value:
            return [unknown_verdict(run, difference_message(fact, before[fact], value))]
    for side, count in (("the baseline", len(recorded.launches)), ("this session", len(runs))):
        if count < MIN_LAUNCHES:
            message = f"{side} has {count} launches, at least {MIN_LAUNCHES} are needed: use pytest --launches 12"
            return [unknown_verdict(run, message)]
    metrics = [with_thresholds(metric, tolerances, margins) for metric in METRICS]
    samples = [
        (metric, metric_values(recorded.launches, metric), metric_values(map(summary, runs), metric))
        for metric in metrics
    ]
    return [judge_metric(run, metric, old, new) for metric, old, new in samples if old and new]


def read(path: Path) -> Baseline:
    """Return the baseline in a file. Raises SteleError, which names the file, if it is not one."""
    try:
        return schema.of_document(schema.read(path), Baseline)
    except (OSError, ValueError, SteleError) as error:
        raise SteleError(f"{path} is not a baseline: {error}. Restore it from version control.") from None


def unknown_verdict(run: Run, message: str) -> Verdict:
    return Verdict(run.task, run.phase, "all", UNKNOWN, message)


def missing_message(run: Run, folder: Path) -> str:
    """Say why there is no baseline: there is none at all, or it is of a machine that differs, and in what."""
    elsewhere = sorted(folder.glob(f"*/{file_name(run)}"))
    if not elsewhere:
        return f"no baseline {file_name(run)}. Save one with: {SAVE}; then run: stele baseline promote"
    return difference_message("machine", *map(schema.to_json, (read(elsewhere[0]).machine, facts([run]).machine)))


def difference_message(fact: str, recorded: Any, current: Any) -> str:
    """``machine: processor differs: 'Abacus 3000' in the baseline, 'Abacus 4000' here``"""
    if isinstance(recorded, dict) and isinstance(current, dict):
        names = {*recorded, *current}
        name = min(name for name in names if recorded.get(name) != current.get(name))
        return difference_message(f"{fact}: {name}", recorded.get(name), current.get(name))
    return f"{fact} differs: {recorded!r} in the baseline, {current!r} here"


def with_thresholds(metric: Metric, tolerances: Mapping[str, float], margins: Mapping[str, float]) -> Metric:
    """Return the metric with its thresholds; the tolerance is the margin if it is not given."""
    margin = margins.get(metric.name, max(metric.margin, tolerances.get(metric.name, 0.0)))
    return metric._replace(tolerance=tolerances.get(metric.name, margin), margin=margin)


def metric_values(launches: Iterable[LaunchSummary], metric: Metric) -> list[float]:
    values = (schema.to_json(launch)[metric.name] for launch in launches)
    return [float(value) for value in values if value]


def logarithms(values: Sequence[float]) -> list[float]:
    return [math.log(value) for value in values]


def judge_metric(run: Run, metric: Metric, old: list[float], new: list[float]) -> Verdict:
    shift, p = statistics.shift_between(logarithms(old), logarithms(new)), statistics.mann_whitney_p(new, old)
    status = "INCONCLUSIVE"
    if p < judgement.LEVEL and shift.middle > math.log1p(metric.tolerance):
        status = "REGRESSED"
    elif not judgement.may_reach(shift.high, math.log1p(metric.margin)):
        status = "PASS"
    result = Judgement(status, judgement.to_ratio(shift), min(len(old), len(new)), p)
    message = message_of(metric, result, unit="launch")
    return Verdict(run.task, run.phase, metric.name, status, message, result.ratio, result.passes, p)
