"""Baselines: what a machine of one's own measured before, and whether it is slower now.

    baselines/<machine>/<framework>-<task>-<phase>-<device>-<precision>.json    what later runs are held against
    baselines/<machine>/candidates/...json                                      what was saved, to be promoted

A file holds the facts under which it was measured and a line for each launch, so that a diff can be read. Two sessions
are no pair: their launches are compared by Mann and Whitney's test, and what was measured on another day has to be
slower by the whole margin to be called so.
"""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy

from stele import files, schema, statistics
from stele.environments.description import slug
from stele.errors import SteleError
from stele.gate import judgement
from stele.gate.judgement import Judgement
from stele.gate.metrics import METRICS, Metric
from stele.gate.verdict import Verdict, message
from stele.measuring import machine
from stele.measuring.run import Run

FOLDER = Path("baselines")
CANDIDATES = "candidates"
FORMATS = (1,)  # of files from before the schema number
FEWEST = judgement.SCREEN  # launches on either side
UNKNOWN = "UNKNOWN"


def place(run: Run) -> Path:
    """The file of a Run's test, below the folder of its machine."""
    how = "-".join(str(run.settings.get(field)) for field in ("device", "precision"))
    return Path(f"{slug(run.environment)}-{run.task}-{run.phase}-{how}.json")


def facts(runs: Sequence[Run]) -> dict[str, Any]:
    """All that two measurements must have in common, but for the releases of the framework and of what it brings."""
    run = runs[0]
    return {
        "machine": machine.fingerprint(run.machine),
        "settings": run.settings,
        "scale": run.scale,
        "plan": run.plan,
        "data": run.data,
        "weights": run.weights,
        "flags": run.flags,
        "versions": run.versions,
    }


def launch(run: Run) -> dict[str, Any]:
    """What is kept of a launch: the metrics, and the middle and the high end of its steps, in seconds and bytes."""
    median, p90 = numpy.percentile(run.counted, (50, 90))
    kept = {metric.name: metric.of(run) for metric in METRICS}
    return {"when": run.when, **kept, "median": float(median), "p90": float(p90)}


def save(runs: Sequence[Run], folder: Path = FOLDER) -> Path:
    """Write launches of one test as a candidate, a line for each."""
    path = folder / machine.title(runs[0].machine) / CANDIDATES / place(runs[0])
    lines = ",\n".join(f"  {json.dumps(launch(run))}" for run in runs)
    head = json.dumps(schema.stamped(facts(runs)), indent=1)[:-2]
    files.write_text(path, f'{head},\n "launches": [\n{lines}\n ]\n}}\n')
    return path


def promote(names: Sequence[str], folder: Path = FOLDER) -> list[Path]:
    """Make candidates what later runs are held against: all, or those named. Raises SteleError if there is none."""
    found = sorted(folder.glob(f"*/{CANDIDATES}/*.json"))
    chosen = [path for path in found if not names or path.stem in names]
    lacking = [name for name in names if name not in [path.stem for path in found]]
    if lacking or not chosen:
        known = ", ".join(path.stem for path in found) or "none"
        raise SteleError(
            f"No candidate {', '.join(lacking) or 'at all'} in {folder}. There are: {known}. "
            "Save some with: pytest perf_tests --benchmark-only --launches 12 --save-baseline"
        )
    return [path.replace(path.parents[1] / path.name) for path in chosen]


def compare(runs: Sequence[Run], margins: dict[str, float], folder: Path = FOLDER) -> list[Verdict]:
    """A Verdict for each metric; one of UNKNOWN, which names the fact, where there is nothing to compare with."""
    run = runs[0]
    path = folder / machine.title(run.machine) / place(run)
    if not path.exists():
        return [unknown(run, absence(run, folder))]
    known = read(path)
    for fact, here in facts(runs).items():
        if fact != "versions" and known.get(fact) != json.loads(json.dumps(here)):
            return [unknown(run, difference(fact, known.get(fact), here))]
    for side, count in (("the baseline", len(known["launches"])), ("this session", len(runs))):
        if count < FEWEST:
            return [unknown(run, f"{side} has {count} launches, at least {FEWEST} are needed: --launches 12")]
    metrics = [metric._replace(margin=margins.get(metric.name, metric.margin)) for metric in METRICS]
    both = [
        (metric, values(known["launches"], metric), values(map(launch, runs), metric)) for metric in metrics
    ]
    return [judged(run, metric, old, new) for metric, old, new in both if old and new]


def read(path: Path) -> dict[str, Any]:
    """Raises SteleError, naming the file, if it is no baseline."""
    try:
        known = schema.unwrapped(json.loads(path.read_text(encoding="utf-8")), formats=FORMATS)
        if not all(isinstance(one, dict) for one in known["launches"]):
            raise ValueError("its launches are not JSON objects")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SteleError(f"{path} is no baseline: {error!r}. Restore it from version control.") from None
    return known


def unknown(run: Run, said: str) -> Verdict:
    return Verdict(run.task, run.phase, "all", UNKNOWN, said)


def absence(run: Run, folder: Path) -> str:
    """Why there is no baseline: none at all, or of another machine, and what is other about it."""
    elsewhere = sorted(folder.glob(f"*/{place(run)}"))
    if not elsewhere:
        return f"no baseline {place(run)}: save one with --launches 12 --save-baseline, then stele baseline promote"
    return difference("machine", read(elsewhere[0]).get("machine"), machine.fingerprint(run.machine))


def difference(fact: str, there: Any, here: Any) -> str:
    """``the machine's processor differs: 'Abacus 3000' in the baseline, 'Abacus 4000' here``"""
    if isinstance(there, dict) and isinstance(here, dict):
        names = {*there, *here}
        name = min(name for name in names if there.get(name) != json.loads(json.dumps(here.get(name))))
        return difference(f"{fact}: {name}", there.get(name), here.get(name))
    return f"{fact} differs: {there!r} in the baseline, {here!r} here"


def values(launches: Any, metric: Metric) -> list[float]:
    return [float(one[metric.name]) for one in launches if one.get(metric.name)]


def logarithms(values: Sequence[float]) -> list[float]:
    return [math.log(value) for value in values]


def judged(run: Run, metric: Metric, old: list[float], new: list[float]) -> Verdict:
    shift, p = statistics.between(logarithms(old), logarithms(new)), statistics.higher(new, old)
    allowed = math.log1p(metric.margin)
    status = "INCONCLUSIVE"
    if p < judgement.LEVEL and shift.middle > allowed:
        status = "REGRESSED"
    elif not judgement.above(shift.high, allowed):
        status = "PASS"
    found = Judgement(status, judgement.ratio(shift), min(len(old), len(new)), p)
    said = message(metric.name, found, metric.margin, stopped=False).replace("pairs", "launches")
    return Verdict(run.task, run.phase, metric.name, status, said, found.ratio, found.pairs, p)
