"""Steps in the lines of the site: asv's own detection, and Otava's as a second opinion. Each is a release and a ratio.

asv says which lines stand higher at their end than they once did, and where they rose. Otava is asked, in an
environment of its own, whether it sees a change there at p 0.001.
"""

import itertools
import json
import math
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from stele.environments.installer import start

OTAVA = """
import json, sys
from otava.analysis import compute_change_points
found = []
for series in json.load(sys.stdin):
    points, _ = compute_change_points(series, max_pvalue=0.001)
    found.append([[int(one.index), float(one.stats.mean_1), float(one.stats.mean_2)] for one in points])
print(json.dumps(found))
"""
REQUIREMENT = "apache-otava"
LEAST = 0.03  # of a step that is told


class Rise(NamedTuple):
    """A line that rose at a release. ``seconded`` is Otava's opinion; None where it could not be asked."""

    line: str  # "track_step gru train tuned, jax"
    release: str
    before: float
    after: float
    seconded: bool | None = None

    @property
    def message(self) -> str:
        other = {None: "", True: "; Otava agrees", False: "; Otava sees none"}[self.seconded]
        change = f"{percent(self.before, self.after)} at {self.release}"
        return f"{self.line}: {change}, from {self.before:.4g} to {self.after:.4g}{other}"


class Line(NamedTuple):
    """One graph of the site for one set of parameters: releases, and what was measured of them."""

    releases: list[str]
    values: list[float]


def rises(site: Path) -> list[Rise]:
    """What asv found, with Otava's opinion."""
    index = read(site / "index.json")
    tags = {number: tag for tag, number in index["tags"].items()}
    found = []
    for entry, graph, _, place, _, _, jumps in read(site / "regressions.json")["regressions"]:
        benchmark = index["benchmarks"][entry.partition("(")[0]]
        line = of_graph(site / graph, place, tags)
        name = f"{title(benchmark, place)}, {branch(graph)}"
        found += [(Rise(name, tags[after], old, new), line) for _, after, old, new in jumps if after in tags]
    opinions = seconded([line for _, line in found])
    return [
        rise._replace(seconded=None if opinions is None else agrees(line, rise.release, opinions[number]))
        for number, (rise, line) in enumerate(found)
    ]


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def branch(graph: str) -> str:
    """The framework of a graph, ``graphs/.../branch-jax/.../recipes.track_step.json``."""
    parts = [part for part in Path(graph).parts if part.startswith("branch-")]
    return parts[0].removeprefix("branch-") if parts else "?"


def title(benchmark: Mapping[str, Any], place: int | None) -> str:
    name = str(benchmark["name"]).rpartition(".")[2]
    if place is None:
        return name
    values = list(itertools.product(*benchmark["params"]))[place]
    return f"{name} {' '.join(str(value).strip(chr(39)) for value in values)}"


def of_graph(path: Path, place: int | None, tags: Mapping[int, str]) -> Line:
    points = [
        (tags[number], value if place is None else (value or [None] * (place + 1))[place])
        for number, value in read(path)
        if number in tags
    ]
    there = [(tag, value) for tag, value in points if value is not None]
    return Line([tag for tag, _ in there], [value for _, value in there])


def lines(site: Path) -> Iterator[tuple[str, Line]]:
    """Every line of the site that has points, by title."""
    index = read(site / "index.json")
    tags = {number: tag for tag, number in index["tags"].items()}
    for path in sorted(site.glob("graphs/**/branch-*/**/*.json")):
        benchmark = index["benchmarks"].get(path.stem)
        if benchmark is None or "summary" in path.parts:
            continue
        for place in range(len(list(itertools.product(*benchmark["params"])))):
            line = of_graph(path, place, tags)
            if line.values:
                yield f"{title(benchmark, place)}, {branch(str(path))}", line


class Step(NamedTuple):
    """From one release to the next a line changed its level, up or down."""

    release: str
    before: float
    after: float

    @property
    def height(self) -> float:
        """By what share of itself the level changed, up or down."""
        return abs(self.after / self.before - 1) if self.before else math.inf


def steps(line: Line) -> list[Step]:
    """Where asv's detection sees a level end and another begin; what is smaller than LEAST is none."""
    from asv.step_detect import detect_steps

    levels = detect_steps(line.values)
    pairs = [(after[0], before[2], after[2]) for before, after in itertools.pairwise(levels)]
    found = [Step(line.releases[place], before, after) for place, before, after in pairs]
    return [step for step in found if step.height > LEAST]


def percent(before: float, after: float) -> str:
    return f"{100 * (after / before - 1):+.1f} %" if before else "from 0"


def seconded(found: Sequence[Line]) -> list[list[int]] | None:
    """Where Otava sees changes in each line; None where it cannot be had."""
    told = otava([line.values for line in found]) if found else []
    return None if told is None else [[index for index, _, _ in changes] for changes in told]


def otava(series: Sequence[Sequence[float]]) -> list[list[tuple[int, float, float]]] | None:
    """Otava's change points of each series, and the means before and after; None where it cannot be had."""
    tool = ["run", "--isolated", "--no-project", "--python", "3.11", "--with", REQUIREMENT]
    try:
        done = start(*tool, "python", "-c", OTAVA, text=json.dumps(series))
        return None if done.returncode else json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def agrees(line: Line, release: str, points: Sequence[int]) -> bool:
    """Whether Otava's change lies at asv's, or one release beside it."""
    place = line.releases.index(release) if release in line.releases else -9
    return any(abs(point - place) <= 1 for point in points)
