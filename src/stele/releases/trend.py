"""Find steps in the lines of the site: asv's detection, and Otava's. A step is a release and a ratio.

asv reports the lines that are higher at their end than before, and the releases at which they rose. In a line of few
releases whose values differ a little, it misses a step of 20 %. Otava reports the changes that a t-test shows at
p 0.001. It runs in a separate environment, once for each site; its changes are in a file of the site.
"""

import itertools
import json
import math
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from stele import files, schema
from stele.environments.installer import try_uv
from stele.measuring import progress
from stele.releases.history import Place, metric

OTAVA = """
import json, sys
from otava.analysis import compute_change_points
changes = []
for series in json.load(sys.stdin):
    points, _ = compute_change_points(series, max_pvalue=0.001)
    changes.append([[int(point.index), float(point.stats.mean_1), float(point.stats.mean_2)] for point in points])
print(json.dumps(changes))
"""
REQUIREMENT = "apache-otava"
MIN_STEP = 0.03  # relative height of a reported step
CHANGES = "otava.json"  # in the folder of a site: Otava's changes by line


class Rise(NamedTuple):
    """A line that rose at a release. ``otava_agrees`` is None if Otava is not available."""

    line: str  # "track_step gru train tuned, jax"
    release: str
    before: float
    after: float
    machine: str
    otava_agrees: bool | None = None

    @property
    def message(self) -> str:
        opinion = {None: "", True: "; Otava agrees", False: "; Otava finds no change"}[self.otava_agrees]
        change = f"{percent(self.before, self.after)} at {self.release}"
        return f"{self.line}: {change}, from {self.before:.4g} to {self.after:.4g}{opinion}"


class Curve(NamedTuple):
    """One graph of the site for one set of parameters: the releases and their values.

    ``changes`` are the positions at which Otava found a change; None if Otava was not available.
    """

    releases: list[str]
    values: list[float]
    changes: tuple[int, ...] | None = None


def rises(site: Path) -> list[Rise]:
    """Return the rises that asv found, with Otava's opinion, and those that only Otava found."""
    lines = {(graph.title, graph.place.machine): graph.line for graph in graphs(site)}
    reported = []
    for rise in rises_of_asv(site):
        line = lines.get((rise.line, rise.machine), Curve([], []))
        agrees = None if line.changes is None else is_near_change(line, rise.release, line.changes)
        reported.append(rise._replace(otava_agrees=agrees))
    of_asv = {(rise.line, rise.machine) for rise in reported}
    return reported + [
        Rise(name, step.release, step.before, step.after, machine, otava_agrees=True)
        for (name, machine), line in lines.items()
        if (name, machine) not in of_asv and line.changes
        for step in steps(line)
        if step.before < step.after and is_near_change(line, step.release, line.changes or ())
    ]


def rises_of_asv(site: Path) -> Iterator[Rise]:
    """Yield the rises in the file of asv's regressions."""
    index = read(site / "index.json")
    tags = {number: tag for tag, number in index["tags"].items()}
    for entry, graph, _, parameters, _, _, jumps in read(site / "regressions.json")["regressions"]:
        name = f"{title(index['benchmarks'][entry.partition('(')[0]], parameters)}, {branch(graph)}"
        for _, after, old, new in jumps:
            if after in tags:
                yield Rise(name, tags[after], old, new, parameter(Path(graph), "machine"))


def read(path: Path) -> Any:
    return schema.read_with_nan(path)


def branch(graph: str) -> str:
    """Return the framework of a graph, ``graphs/.../branch-jax/.../recipes.track_step.json``."""
    return parameter(Path(graph), "branch")


def parameter(graph: Path, name: str) -> str:
    """Return a parameter in the path of a graph, such as "jax" for ``branch`` in ``branch-jax``; "?" if it has none."""
    parts = [part for part in graph.parts if part.startswith(f"{name}-")]
    return parts[0].removeprefix(f"{name}-") if parts else "?"


def title(benchmark: Mapping[str, Any], parameters: int | None) -> str:
    """Return the benchmark's name, followed by its parameters. ``parameters`` is the index of their combination."""
    name = str(benchmark["name"]).rpartition(".")[2]
    if parameters is None:
        return name
    values = list(itertools.product(*benchmark["params"]))[parameters]
    return f"{name} {' '.join(str(value).strip(chr(39)) for value in values)}"


def read_line(path: Path, parameters: int | None, tags: Mapping[int, str]) -> Curve:
    """Read the line of one combination of parameters from a graph. ``tags`` are the releases by revision."""
    points = [
        (tags[number], value if parameters is None else (value or [None] * (parameters + 1))[parameters])
        for number, value in read(path)
        if number in tags
    ]
    present = [(tag, value) for tag, value in points if value is not None]
    return Curve([tag for tag, _ in present], [value for _, value in present])


class Graph(NamedTuple):
    """A line of the site, and what its values are."""

    framework: str
    # "step"
    metric: str
    # "gru train tuned"
    cell: str
    # "seconds", "bytes" or "fraction"
    unit: str
    place: Place
    line: Curve

    @property
    def title(self) -> str:
        return f"track_{self.metric} {self.cell}, {self.framework}"

    @property
    def key(self) -> str:
        """The name of the line in the file of Otava's changes."""
        return f"{self.title} on {self.place.machine}, {self.place.python}"


def record_changes(site: Path) -> None:
    """Write Otava's changes of all lines to a file of the site; without Otava, remove the file."""
    published = list(graphs(site))
    changes = otava_changes([graph.line for graph in published])
    if changes is None:
        (site / CHANGES).unlink(missing_ok=True)
    else:
        keys = (graph.key for graph in published)
        files.write_text(site / CHANGES, json.dumps(dict(zip(keys, changes, strict=True)), indent=1))


def graphs(site: Path) -> Iterator[Graph]:
    """Yield every line of the site that has points."""
    index = read(site / "index.json")
    changes = read(site / CHANGES) if (site / CHANGES).exists() else {}
    tags = {number: tag for tag, number in index["tags"].items()}
    for path in sorted(site.glob("graphs/**/branch-*/**/*.json")):
        benchmark = index["benchmarks"].get(path.stem)
        if benchmark is None or "summary" in path.parts:
            continue
        for number, parameters in enumerate(itertools.product(*benchmark["params"])):
            line = read_line(path, number, tags)
            if line.values:
                cell = " ".join(str(value).strip("'") for value in parameters)
                place = Place(parameter(path, "machine"), parameter(path, "python"))
                unit = benchmark.get("unit", "")
                graph = Graph(branch(str(path)), metric(benchmark), cell, unit, place, line)
                positions = changes.get(graph.key)
                yield graph._replace(line=line._replace(changes=None if positions is None else tuple(positions)))


def releases(site: Path) -> list[str]:
    """Return all releases of the site, the oldest first; those of each framework are together."""
    numbers = read(site / "index.json")["tags"]
    return sorted(numbers, key=numbers.__getitem__)


class Level(NamedTuple):
    """The releases of a line from position ``start`` to before ``end``, and their value."""

    start: int
    end: int
    value: float


class LevelStep(NamedTuple):
    """A change of a line's level, up or down, at a release."""

    release: str
    before: float
    after: float

    @property
    def height(self) -> float:
        """The absolute change relative to the level before it."""
        return abs(self.after / self.before - 1) if self.before else math.inf


def levels(line: Curve) -> list[Level]:
    """Return the levels between the steps that asv's detection finds in a line, and those that only Otava finds."""
    from asv.step_detect import detect_steps

    of_asv = [Level(start, end, value) for start, end, value, *_ in detect_steps(line.values)]
    starts = [level.start for level in of_asv]
    more = [change for change in line.changes or () if not any(abs(change - start) <= 1 for start in starts)]
    if not more:
        return of_asv
    bounds = [*sorted([*starts, *more]), len(line.values)]
    return [Level(start, end, median(line.values[start:end])) for start, end in itertools.pairwise(bounds)]


def steps(line: Curve) -> list[LevelStep]:
    """Return the changes between levels of a line that are higher than MIN_STEP."""
    pairs = itertools.pairwise(levels(line))
    all_steps = [LevelStep(line.releases[after.start], before.value, after.value) for before, after in pairs]
    return [step for step in all_steps if step.height > MIN_STEP]


def percent(before: float, after: float) -> str:
    """Return the change in per cent, such as ``+20.0 %``."""
    return f"{100 * (after / before - 1):+.1f} %" if before else "from 0"


def otava_changes(lines: Sequence[Curve]) -> list[list[int]] | None:
    """Return the positions of Otava's changes in each line; None if Otava is not available."""
    with progress.waiting("Otava"):
        changes = otava([line.values for line in lines]) if lines else []
    return None if changes is None else [[index for index, _, _ in points] for points in changes]


def otava(series: Sequence[Sequence[float]]) -> list[list[tuple[int, float, float]]] | None:
    """Return Otava's change points of each series: position, mean before, mean after; None if not available."""
    tool = ["run", "--isolated", "--no-project", "--python", "3.11", "--with", REQUIREMENT]
    try:
        done = try_uv(*tool, "python", "-c", OTAVA, text=json.dumps(series))
        return None if done.returncode else json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def is_near_change(line: Curve, release: str, points: Sequence[int]) -> bool:
    """Return whether one of Otava's changes is at ``release``, or one release before or after it."""
    position = line.releases.index(release) if release in line.releases else -9
    return any(abs(point - position) <= 1 for point in points)
