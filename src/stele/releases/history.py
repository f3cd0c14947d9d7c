"""Numbers of releases in asv's result files, so that asv can show them.

    .stele/asv/results/benchmarks.json                         the benchmarks: see asv_benchmarks
    .stele/asv/results/<machine>/machine.json                  each set of machine facts has its own name
    .stele/asv/results/<machine>/<commit>-virtualenv-py3.11.json
Their key "contents" says what decided the numbers of each cell, as stele.measuring.content does.
A release that cannot be measured also has a file, without numbers, so that it is not tried again every night.
"""

import contextlib
import functools
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from stele import files, schema
from stele.environments import probe
from stele.errors import SteleError
from stele.measuring import machine, progress
from stele.measuring.content import Content
from stele.releases import intervals, ledger
from stele.releases.intervals import Intervals, Pair

BENCHMARKS = Path(__file__).parent / "asv_benchmarks"
CONFIGURATION = "asv.conf.json"
# the models of the user, and the modes that are not measured by default, a name on each line, for asv_benchmarks
MODELS, MODES = Path(".stele/models"), Path(".stele/modes")
RESULTS = Path(".stele/asv/results")
HTML = Path(".stele/asv/html")  # the folder of `asv publish`, as in asv.conf.json
HOST = Path(".stele/host")  # contains the path of the interpreter that has stele, for asv_benchmarks
INSTALL = "asv is not installed. Install it with: pip install 'pytest-stele[asv]'"
LIST = """
import json, sys
from asv_runner.discovery import list_benchmarks
list_benchmarks(sys.argv[1], sys.stdout)
"""

CONTENTS = "contents"  # a key of a result file, which asv ignores
# by metric and cell, such as "gru train tuned"; None is a failure, and cells without a number are omitted
Values = Mapping[str, Mapping[str, float | None]]


Numbers = Mapping[str, Mapping[str, float]]


class ResultFile(TypedDict):
    """A result file of asv, as far as Stele reads it."""

    results: dict[str, list[Any]]


class Place(NamedTuple):
    """Where numbers were measured: the machine's name, and the interpreter's version, such as ``3.11``."""

    machine: str
    python: str

    @property
    def environment(self) -> str:
        """asv's name for the environment that it would build."""
        return f"virtualenv-py{self.python}"


def current_place() -> Place:
    """Return the Place of this machine and this interpreter."""
    return Place(machine.name_of(machine.facts()), f"{sys.version_info.major}.{sys.version_info.minor}")


@functools.cache
def benchmarks() -> list[dict[str, Any]]:
    """Return the benchmarks that asv discovers in asv_benchmarks."""
    command = [sys.executable, "-c", LIST, str(BENCHMARKS)]
    variables = {**os.environ, "ASV_CONF_DIR": str(Path.cwd())}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=BENCHMARKS.parent, env=variables)
    if done.returncode:
        raise SteleError(INSTALL if "No module named 'asv_runner'" in done.stderr else done.stderr.strip())
    discovered: list[dict[str, Any]] = json.loads(done.stdout)
    return discovered


def register(path: Path, name: str) -> None:
    """Have asv track one of MODELS or MODES. Its results come after those that were registered earlier."""
    names = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    if name not in names:
        files.write_text(path, "".join(f"{each}\n" for each in [*names, name]))
        benchmarks.cache_clear()


def write_benchmarks() -> None:
    """Write the benchmarks to the file that ``asv publish`` reads."""
    by_name = {benchmark["name"]: benchmark for benchmark in benchmarks()}
    files.write_text(RESULTS / "benchmarks.json", json.dumps({**by_name, "version": 2}, indent=1) + "\n")


def register_machine(name: str) -> None:
    """Register this machine with asv under ``name``, if asv has no machine yet, and write its machine.json.

    The name is derived from the machine's facts. asv's default is the host name, which differs between containers.
    """
    from asv.machine import Machine, MachineCollection

    facts = {**Machine.get_defaults(), "machine": name}
    if not Path(MachineCollection.get_machine_file_path()).exists():
        MachineCollection.save(name, facts)
    path = RESULTS / name / "machine.json"
    if not path.exists():
        files.write_text(path, json.dumps({**facts, "version": 1}, indent=1) + "\n")


def save(
    tag: str,
    place: Place,
    values: Values,
    *,
    ranges: Intervals | None = None,
    contents: Mapping[str, Content] | None = None,
    failure: str | None = None,
) -> Path:
    """Add numbers of a release to its result file, and return the path. ``ranges`` are intervals of these numbers.

    ``contents`` say by cell what decided the numbers. ``failure`` is the reason why the release cannot be measured: the
    file then contains no numbers.
    """
    require_asv()
    from asv.results import Results
    from asv.runner import BenchmarkResult

    register_machine(place.machine)
    commit, date = ledger.commit(tag)
    facts = json.loads((RESULTS / place.machine / "machine.json").read_text())
    parameters = {key: value for key, value in facts.items() if key != "version"}
    path = file(tag, place)
    old = load(path)
    results = Results(
        {**parameters, "python": place.python}, {}, commit, date * 1000, place.python, place.environment, {}
    )
    for benchmark in benchmarks():
        numbers = {**cells(benchmark, old), **values.get(metric(benchmark), {})}
        values_by_cell = [
            numbers.get(cell, math.nan if failure is None else None) for cell in cell_names(benchmark["params"])
        ]
        # in asv, null is a failure, and NaN is a cell that does not apply
        result = BenchmarkResult(
            result=values_by_cell,
            samples=[None] * len(values_by_cell),
            number=[None] * len(values_by_cell),
            errcode=0 if failure is None else 1,
            stderr=failure or "",
            profile=None,
        )
        results.add_result(benchmark, result, record_samples=False)
    results.save(str(RESULTS))
    intervals.write(path, intervals.merge(intervals.of_content(old), values, ranges or {}))
    written = json.loads(path.read_text(encoding="utf-8"))
    every = {**contents_in(old), **(contents or {})}
    files.write_text(path, json.dumps({**written, CONTENTS: every}) + "\n")
    write_benchmarks()
    return path


def contents_in(content: Mapping[str, Any] | None) -> dict[str, Content]:
    """Return what decided the numbers in a result file, by cell, without entries that are no content."""
    by_cell = (content or {}).get(CONTENTS)
    cells = by_cell.items() if isinstance(by_cell, dict) else ()
    return {cell: value for cell, value in cells if is_content(value)}


def is_content(value: Any) -> bool:
    try:
        schema.convert(value, Content)
    except ValueError:
        return False
    return True


def read_contents(tag: str, place: Place) -> dict[str, Content]:
    """Return what decided the saved numbers of a release, by cell."""
    return contents_in(load(file(tag, place)))


def file(tag: str, place: Place) -> Path:
    """Return the path of a release's result file."""
    commit, _ = ledger.commit(tag)
    return RESULTS / place.machine / f"{commit[:8]}-{place.environment}.json"


def metric(benchmark: Mapping[str, Any]) -> str:
    """Return the metric of a benchmark: ``step`` for ``recipes.track_step``."""
    name: str = benchmark["name"]
    return name.partition("track_")[2]


def cell_names(params: Sequence[Sequence[str]]) -> list[str]:
    """Return the cells of a benchmark's parameters in asv's order: the last parameter varies fastest."""
    tasks, phases, modes = [[value.strip("'") for value in values] for values in params]
    return [f"{task} {phase} {mode}" for task in tasks for phase in phases for mode in modes]


def cells(benchmark: Mapping[str, Any], content: Mapping[str, Any] | None) -> dict[str, float | None]:
    """Return a benchmark's values in a result file, by cell: numbers, and None for failures.

    A result has the parameters with which it was measured; today's benchmark may have more.
    """
    result = (content or {}).get("results", {}).get(benchmark["name"])
    values = (result[0] if result else None) or []
    params = result[1] if result and len(result) > 1 and result[1] else benchmark["params"]
    pairs = zip(cell_names(params), values, strict=False)
    return {cell: value for cell, value in pairs if value is None or not math.isnan(value)}


def read_values(tag: str, place: Place) -> dict[str, dict[str, float | None]] | None:
    """Return the saved values of a release, by metric and cell, including failures; None if it was never measured."""
    content = load(file(tag, place))
    if content is None:
        return None
    return {metric(benchmark): cells(benchmark, content) for benchmark in benchmarks()}


def numbers(tag: str, place: Place) -> dict[str, dict[str, float]] | None:
    """Return the saved numbers of a release, by metric and cell; None if it was never measured."""
    values = read_values(tag, place)
    if values is None:
        return None
    return {
        name: {cell: value for cell, value in of_metric.items() if value is not None}
        for name, of_metric in values.items()
    }


def has_more(after: Numbers | None, before: Numbers | None) -> bool:
    """Return whether numbers have a cell that they had not before; one that was measured again is not new."""
    return any(set(cells) - set((before or {}).get(name, ())) for name, cells in (after or {}).items())


def read_intervals(tag: str, place: Place) -> dict[str, dict[str, Pair]]:
    """Return the saved intervals of a release, by metric and cell."""
    return intervals.of_content(load(file(tag, place)))


def recorded_cells(tag: str, place: Place, name: str) -> set[str]:
    """Return the cells in which a release has a number, or a failure, for this metric."""
    return set((read_values(tag, place) or {}).get(name, ()))


def load(path: Path) -> dict[str, Any] | None:
    """Return a result file; None if there is none. A damaged file is renamed, with a message on stderr."""
    try:
        content = schema.read_with_nan(path)
        schema.convert(content, ResultFile)
        for name, result in content["results"].items():
            check_values(name, result)
    except FileNotFoundError:
        return None
    except ValueError as error:
        renamed = path.with_suffix(".damaged")
        path.replace(renamed)
        print(f"stele: {path} is damaged: {error}. It was renamed to {renamed.name}.", file=sys.stderr)
        return None
    return content


def check_values(name: str, result: list[Any]) -> None:
    """Raise ValueError if the values of a benchmark are not numbers. In asv's files, NaN is a number."""
    values = (result[0] if result else None) or []
    try:
        schema.convert(values, list[float | None])
    except ValueError:
        raise ValueError(f"the values of {name} are not numbers") from None


def rename_damaged_files() -> None:
    """Rename damaged result files, because asv fails on them."""
    for path in RESULTS.glob("*/*-*.json"):
        load(path)


def publish(folder: Path = HTML) -> Path:
    """Run ``asv publish`` to write its lines and steps to ``folder``, and return the folder."""
    require_asv()
    rename_damaged_files()
    write_benchmarks()
    command = [sys.executable, "-m", "asv", "publish", "--no-pull", "--html-dir", str(folder.absolute())]
    with configuration() as path, progress.waiting("asv publish"):
        done = probe.run([*command, "--config", str(path.absolute())])
    if done.returncode:
        raise SteleError(f"asv publish failed:\n{(done.stdout + done.stderr).strip()}")
    return folder


@contextlib.contextmanager
def configuration() -> Iterator[Path]:
    """Write a temporary asv configuration for the branches in the ledger.

    It is based on asv.conf.json in the current folder, or else on the one that Stele brings.
    """
    brought = (Path(__file__).parent, Path(__file__).parents[3])  # of a wheel; of a checkout
    base = next(path for folder in (Path(), *brought) if (path := folder / CONFIGURATION).exists())
    path = Path(f".stele/asv-{os.getpid()}.conf.json")
    from asv import util

    facts = util.load_json(str(base), js_comments=True)
    facts["branches"] = [name for name in ledger.branches() if ledger.tags(name)]
    folders = {name: str(Path(facts[name]).absolute()) for name in ("env_dir", "results_dir", "html_dir")}
    sources = {"repo": str(ledger.folder().absolute()), "benchmark_dir": str(BENCHMARKS)}
    files.write_text(path, json.dumps({**facts, **folders, **sources}))
    try:
        yield path
    finally:
        path.unlink()


def require_asv() -> None:
    """Raise SteleError if asv is not installed."""
    try:
        import asv.results  # noqa: F401
    except ImportError:
        raise SteleError(INSTALL) from None


def record_interpreter() -> None:
    """Write the path of this interpreter, which has stele, for asv_benchmarks."""
    files.write_text(HOST, sys.executable + "\n")
