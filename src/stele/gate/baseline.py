"""Baselines: stored measurements of one machine, and the comparison of later runs with them.

    baselines/<machine>/<framework>-<task>-<phase>-<device>-<precision>.json    the baseline of one test
    baselines/<machine>/candidates/...json                                      saved launches, not yet promoted

A file holds the facts under which it was measured, and one line for each launch so that diffs are readable. The
launches of two sessions are not paired, so they are compared with the Mann-Whitney test. Conditions may have changed
between the sessions, so the tolerance of a metric is its whole margin here, if no other is given.
"""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy

from stele import files, schema, statistics
from stele.environments.description import slug
from stele.errors import SteleError
from stele.gate import judgement
from stele.gate.judgement import Judgement
from stele.gate.metrics import METRICS, Metric
from stele.gate.verdict import Verdict, message_of
from stele.measuring import content, machine
from stele.measuring.run import Run

FOLDER = Path("baselines")
CANDIDATES = "candidates"
MIN_LAUNCHES = 6  # on either side
SAVE = "pytest perf_tests --benchmark-only --launches 12 --save-baseline"
UNKNOWN = "UNKNOWN"


def file_name(run: Run) -> Path:
    """Return the file of a Run's test, relative to the folder of its machine."""
    variant = "-".join(str(run.settings.get(field)) for field in ("device", "precision"))
    return Path(f"{slug(run.environment)}-{slug(run.task)}-{run.phase}-{variant}.json")


def facts(runs: Sequence[Run]) -> dict[str, Any]:
    """Return the facts that two measurements must share. ``compare`` ignores ``versions``, which may differ."""
    run = runs[0]
    return {
        "machine": machine.fingerprint(run.machine),
        "settings": run.settings,
        "scale": run.scale,
        "plan": run.plan,
        "data": run.data,
        "weights": run.weights,
        "content": {
            name: value for name, value in (run.content or {}).items() if name not in content.OF_PACKAGES
        },
        "flags": run.flags,
        "versions": run.versions,
    }


def summary(run: Run) -> dict[str, Any]:
    """Return what a baseline stores of a launch: its metrics, and the median and 90th percentile of its steps.

    Times are in seconds, sizes in bytes.
    """
    median, p90 = numpy.percentile(run.counted_seconds, (50, 90))
    values = {metric.name: metric.value(run) for metric in METRICS}
    return {"when": run.when, **values, "median": float(median), "p90": float(p90)}


def save(runs: Sequence[Run], folder: Path = FOLDER) -> Path:
    """Write the launches of one test as a candidate, one line for each, and return the file.

    Raises SteleError if they do not have the same content.
    """
    content.require_same([run.content for run in runs], "The launches of a baseline")
    path = folder / machine.name_of(runs[0].machine) / CANDIDATES / file_name(runs[0])
    lines = ",\n".join(f"  {json.dumps(summary(run))}" for run in runs)
    head = json.dumps(schema.wrap(facts(runs)), indent=1)[:-2]
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
        available = ", ".join(path.stem for path in candidates) or "none"
        raise SteleError(
            f"No candidate {', '.join(missing) or 'at all'} in {folder}. Available: {available}. "
            f"Save candidates with: {SAVE}"
        )
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
    if not all(one.content for one in runs):
        return [unknown_verdict(run, "what decided the launches was not recorded")]
    try:
        content.require_same([one.content for one in runs], "The launches")
    except SteleError as error:
        return [unknown_verdict(run, str(error))]
    for fact, value in facts(runs).items():
        if fact != "versions" and recorded.get(fact) != json.loads(json.dumps(value)):
            return [unknown_verdict(run, difference_message(fact, recorded.get(fact), value))]
    for side, count in (("the baseline", len(recorded["launches"])), ("this session", len(runs))):
        if count < MIN_LAUNCHES:
            message = (
                f"{side} has {count} launches, at least {MIN_LAUNCHES} are needed: use pytest --launches 12"
            )
            return [unknown_verdict(run, message)]
    metrics = [with_thresholds(metric, tolerances, margins) for metric in METRICS]
    samples = [
        (metric, metric_values(recorded["launches"], metric), metric_values(map(summary, runs), metric))
        for metric in metrics
    ]
    return [judge_metric(run, metric, old, new) for metric, old, new in samples if old and new]


def read(path: Path) -> dict[str, Any]:
    """Return the content of a baseline. Raises SteleError, which names the file, if it is not a baseline."""
    try:
        recorded = schema.unwrap(schema.read(path))
        if not all(isinstance(launch, dict) for launch in recorded["launches"]):
            raise ValueError("its launches are not JSON objects")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SteleError(f"{path} is not a baseline: {error!r}. Restore it from version control.") from None
    return recorded


def unknown_verdict(run: Run, message: str) -> Verdict:
    return Verdict(run.task, run.phase, "all", UNKNOWN, message)


def missing_message(run: Run, folder: Path) -> str:
    """Say why there is no baseline: there is none at all, or it is of a machine that differs, and in what."""
    elsewhere = sorted(folder.glob(f"*/{file_name(run)}"))
    if not elsewhere:
        return f"no baseline {file_name(run)}. Save one with: {SAVE}; then run: stele baseline promote"
    return difference_message("machine", read(elsewhere[0]).get("machine"), machine.fingerprint(run.machine))


def difference_message(fact: str, recorded: Any, current: Any) -> str:
    """``machine: processor differs: 'Abacus 3000' in the baseline, 'Abacus 4000' here``"""
    if isinstance(recorded, dict) and isinstance(current, dict):
        names = {*recorded, *current}
        name = min(name for name in names if recorded.get(name) != json.loads(json.dumps(current.get(name))))
        return difference_message(f"{fact}: {name}", recorded.get(name), current.get(name))
    return f"{fact} differs: {recorded!r} in the baseline, {current!r} here"


def with_thresholds(metric: Metric, tolerances: Mapping[str, float], margins: Mapping[str, float]) -> Metric:
    """Return the metric with its thresholds; the tolerance is the margin if it is not given."""
    margin = margins.get(metric.name, max(metric.margin, tolerances.get(metric.name, 0.0)))
    return metric._replace(tolerance=tolerances.get(metric.name, margin), margin=margin)


def metric_values(launches: Any, metric: Metric) -> list[float]:
    return [float(launch[metric.name]) for launch in launches if launch.get(metric.name)]


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
