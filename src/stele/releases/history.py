"""What was measured of releases, in asv's own result files, so that asv shows it.

    .stele/asv/results/benchmarks.json                         what is tracked: see asv_benchmarks
    .stele/asv/results/<machine>/machine.json                  a machine is a name of its own for each set of facts
    .stele/asv/results/<machine>/<commit>-virtualenv-py3.11.json
A release that cannot be measured has a file, too, without numbers, so that it is not tried every night.
"""

import contextlib
import functools
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from stele import files
from stele.errors import SteleError
from stele.measuring import machine
from stele.releases import ledger

ROOT = Path(__file__).parents[3]
RESULTS = Path(".stele/asv/results")
HOST = Path(".stele/host")  # the interpreter that has stele, for asv_benchmarks
INSTALL = "asv is missing: pip install 'pytest-stele[asv]'"
LIST = """
import json, sys
from asv_runner.discovery import list_benchmarks
list_benchmarks(sys.argv[1], sys.stdout)
"""

# by metric and cell, "gru train tuned"; None is a failure, and what has no number is not there
Values = Mapping[str, Mapping[str, float | None]]


class Place(NamedTuple):
    """Where numbers of a release come from: the machine's name, and the interpreter's version, ``3.11``."""

    machine: str
    python: str

    @property
    def environment(self) -> str:
        """As asv calls the environment that it would build."""
        return f"virtualenv-py{self.python}"


def here() -> Place:
    """This machine, and this interpreter's version."""
    return Place(machine.title(machine.facts()), f"{sys.version_info.major}.{sys.version_info.minor}")


@functools.cache
def benchmarks() -> list[dict[str, Any]]:
    """What asv tracks, as its own discovery finds it."""
    asked = [sys.executable, "-c", LIST, str(ROOT / "asv_benchmarks")]
    done = subprocess.run(asked, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise SteleError(INSTALL if "No module named 'asv_runner'" in done.stderr else done.stderr.strip())
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def write_benchmarks() -> None:
    """Where ``asv publish`` looks for what is tracked."""
    known = {benchmark["name"]: benchmark for benchmark in benchmarks()}
    files.write_text(RESULTS / "benchmarks.json", json.dumps({**known, "version": 2}, indent=1) + "\n")


def remember_machine(name: str) -> None:
    """Have asv know this machine, whose name says its facts, where it knows none yet.

    Other than asv's default, the host's name, it does not change from one container to the next.
    """
    from asv.machine import Machine, MachineCollection

    facts = {**Machine.get_defaults(), "machine": name}
    if not Path(MachineCollection.get_machine_file_path()).exists():
        MachineCollection.save(name, facts)
    path = RESULTS / name / "machine.json"
    if not path.exists():
        files.write_text(path, json.dumps({**facts, "version": 1}, indent=1) + "\n")


def save(tag: str, place: Place, values: Values, *, complaint: str | None = None) -> Path:
    """Add numbers of a release to its file. Without any, the file says that there are none."""
    asv()
    from asv.results import Results
    from asv.runner import BenchmarkResult

    remember_machine(place.machine)
    commit, date = ledger.commit(tag)
    facts = json.loads((RESULTS / place.machine / "machine.json").read_text())
    parameters = {key: value for key, value in facts.items() if key != "version"}
    path = file(tag, place)
    old = loaded(path)
    kept = Results(
        {**parameters, "python": place.python}, {}, commit, date * 1000, place.python, place.environment, {}
    )
    for benchmark in benchmarks():
        numbers = {**cells(benchmark, old), **values.get(metric(benchmark), {})}
        row = [numbers.get(cell, math.nan if complaint is None else None) for cell in named(benchmark)]
        # asv's null is a failure, and its NaN what does not apply
        result = BenchmarkResult(
            result=row,
            samples=[None] * len(row),
            number=[None] * len(row),
            errcode=0 if complaint is None else 1,
            stderr=complaint or "",
            profile=None,
        )
        kept.add_result(benchmark, result, record_samples=False)
    kept.save(str(RESULTS))
    write_benchmarks()
    return path


def file(tag: str, place: Place) -> Path:
    commit, _ = ledger.commit(tag)
    return RESULTS / place.machine / f"{commit[:8]}-{place.environment}.json"


def metric(benchmark: Mapping[str, Any]) -> str:
    """``step``, of ``recipes.track_step``."""
    name: str = benchmark["name"]
    return name.partition("track_")[2]


def named(benchmark: Mapping[str, Any]) -> list[str]:
    """The cells of a benchmark, in asv's order: the last parameter changes first."""
    tasks, phases, modes = [[value.strip("'") for value in values] for values in benchmark["params"]]
    return [f"{task} {phase} {mode}" for task in tasks for phase in phases for mode in modes]


def cells(benchmark: Mapping[str, Any], content: Mapping[str, Any] | None) -> dict[str, float | None]:
    """What a file holds of a benchmark: numbers, and None where it failed."""
    result = (content or {}).get("results", {}).get(benchmark["name"])
    row = (result[0] if result else None) or []
    found = zip(named(benchmark), row, strict=False)
    return {cell: value for cell, value in found if value is None or not math.isnan(value)}


def record(tag: str, place: Place) -> dict[str, dict[str, float | None]] | None:
    """What is on record of a release, by metric and cell, failures too; None where it was never measured there."""
    content = loaded(file(tag, place))
    if content is None:
        return None
    return {metric(one): cells(one, content) for one in benchmarks()}


def numbers(tag: str, place: Place) -> dict[str, dict[str, float]] | None:
    """What is known of a release, by metric and cell; None where it was never measured there."""
    found = record(tag, place)
    if found is None:
        return None
    return {
        name: {cell: value for cell, value in of_metric.items() if value is not None}
        for name, of_metric in found.items()
    }


def recorded(tag: str, place: Place, name: str) -> set[str]:
    """The cells of which a release has a number of this metric, or in which it was seen to fail."""
    return set((record(tag, place) or {}).get(name, ()))


def loaded(path: Path) -> dict[str, Any] | None:
    """A result file; None where there is none. A damaged one is named and set aside: it costs itself alone."""
    try:
        content = json.loads(path.read_text())
        if not isinstance(content, dict) or not isinstance(content.get("results"), dict):
            raise ValueError("no results in it")
    except FileNotFoundError:
        return None
    except ValueError as error:
        aside = path.with_suffix(".damaged")
        path.replace(aside)
        print(f"stele: {path} is damaged ({error}) and was set aside as {aside.name}.", file=sys.stderr)
        return None
    return content


def see_all() -> None:
    """Set aside what is damaged, before asv retries over it."""
    for path in RESULTS.glob("*/*-*.json"):
        loaded(path)


def publish(folder: Path) -> None:
    """The site, by asv itself."""
    asv()
    see_all()
    write_benchmarks()
    command = [sys.executable, "-m", "asv", "publish", "--no-pull", "--html-dir", str(folder.absolute())]
    with configuration() as path:
        done = subprocess.run([*command, "--config", str(path)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SteleError(f"asv publish failed:\n{(done.stdout + done.stderr).strip()}")


@contextlib.contextmanager
def configuration() -> Iterator[Path]:
    """asv's configuration for the branches that are in the ledger; the one at the top names what this house follows."""
    own = Path("asv.conf.json")
    path = Path(f".stele/asv-{os.getpid()}.conf.json")
    from asv import util

    facts = util.load_json(str(own if own.exists() else ROOT / own), js_comments=True)
    facts["branches"] = [name for name in ledger.branches() if ledger.tags(name)]
    folders = {name: str(Path(facts[name]).absolute()) for name in ("env_dir", "results_dir", "html_dir")}
    own_places = {"repo": str(ledger.folder().absolute()), "benchmark_dir": str(ROOT / "asv_benchmarks")}
    files.write_text(path, json.dumps({**facts, **folders, **own_places}))
    try:
        yield path
    finally:
        path.unlink()


def asv() -> None:
    try:
        import asv.results  # noqa: F401
    except ImportError:
        raise SteleError(INSTALL) from None


def tell_asv() -> None:
    """Which interpreter has stele."""
    files.write_text(HOST, sys.executable + "\n")
