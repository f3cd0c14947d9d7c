"""Find and read what a report shows: gates, explanations, Runs, ladders, modes and histories, in files and folders."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stele import files, schema
from stele.errors import SteleError
from stele.explain import document
from stele.explain.document import ExplanationFile
from stele.gate import outcome, replay
from stele.gate.outcome import Outcome
from stele.measuring import store
from stele.measuring.run import Run
from stele.parity.ladder import LadderFile
from stele.releases import trend
from stele.releases.trend import Graph
from stele.report.sections.modes import ModePass

GATES, RUNS = Path(".stele/gates"), Path(".stele/runs")
SUFFIXES = (".json", ".jsonl")
NOTHING = (
    "Nothing to report: there is no gate in .stele/gates and no Run in .stele/runs. "
    "Measure with: stele gate OLD NEW, or pytest --stele-suite --benchmark-only"
)

Read = Callable[[Path], object]


class Foreign(SteleError):
    """A file that is none of those that a report shows."""


@dataclass
class Sources:
    """Everything that was read, from ``files``. ``notes`` say what could not be read, and why."""

    gates: list[Outcome] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    ladders: list[LadderFile] = field(default_factory=list)
    modes: dict[str, list[ModePass]] = field(default_factory=dict)
    lines: list[Graph] = field(default_factory=list)
    explanations: list[ExplanationFile] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not (self.gates or self.runs or self.ladders or self.modes or self.lines or self.explanations)


def default_paths() -> list[Path]:
    """Return the record of the newest gate, or else the folder of the Runs. Raises SteleError if there are neither."""
    newest = max(GATES.glob("*.jsonl"), default=None)
    if newest is not None:
        return [newest]
    if any(RUNS.glob("*.json")):
        return [RUNS]
    raise SteleError(NOTHING)


def read(paths: Sequence[Path], progress: Callable[[Sequence[Path]], Iterator[Path]] = iter) -> Sources:
    """Return what is in the files and folders. ``progress`` iterates over the files and may show how many are done.

    Raises SteleError for a file that was named and cannot be read, or if there is nothing to report. A file that is
    found in a folder and cannot be read is a note.
    """
    sources, is_named = Sources(), dict[Path, bool]()
    for path in paths:
        is_named.update(dict.fromkeys(files_in(path, sources), False) if files.is_folder(path) else {path: True})
    for explanation in explanations_of(is_named):
        is_named.setdefault(explanation, False)
    sources.files = list(is_named)
    for path in progress(sources.files):
        add(sources, path, named=is_named[path])
    sources.runs.sort(key=lambda run: run.when)
    if sources.is_empty:
        listed = ", ".join(map(str, paths))
        raise SteleError("\n".join([f"Nothing to report: no gate, Run or ladder in {listed}.", *sources.notes]))
    return sources


def explanations_of(records: Iterable[Path]) -> list[Path]:
    """Return what ``stele gate --explain`` wrote beside the records."""
    beside = [path.with_suffix(".explanation.json") for path in records if path.suffix == ".jsonl"]
    return [path for path in beside if files.is_file(path)]


def files_in(folder: Path, sources: Sources) -> Iterator[Path]:
    """Yield the files of a folder that may be read, those of its folders too. A site of asv is read as a whole."""
    sites = [index.parent for index in sorted(folder.rglob("index.json")) if (index.parent / "graphs").is_dir()]
    for site in sites:
        add_site(sources, site)
    for path in sorted(folder.rglob("*")):
        inside = any(path.is_relative_to(site) for site in sites) or "asv" in path.parts
        if path.suffix in SUFFIXES and not inside and not files.is_folder(path):
            yield path


def add_site(sources: Sources, site: Path) -> None:
    try:
        sources.lines += list(trend.graphs(site))
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        sources.notes.append(f"{site} is left out: it is not a complete site of releases ({error!r}).")


def add(sources: Sources, path: Path, *, named: bool) -> None:
    """Read a file into the sources. Raises SteleError if it was named and cannot be read."""
    try:
        add_file(sources, path)
    except Foreign as error:
        if named:
            raise SteleError(
                f"{error} A report shows gates, explanations, Runs, ladders (stele parity --json) and modes."
            ) from None
    except SteleError as error:
        message = str(error) if str(path) in str(error) else f"{path}: {error}"
        if named:
            raise SteleError(message) from None
        sources.notes.append(f"Left out: {message}")


def add_file(sources: Sources, path: Path) -> None:
    try:
        if path.suffix == ".jsonl":
            add_lines(sources, path)
        else:
            add_document(sources, path, schema.read(path))
    except OSError as error:
        raise SteleError(files.describe(error)) from None
    except (ValueError, TypeError, KeyError, AttributeError, LookupError) as error:
        raise SteleError(f"{path} cannot be read: {error}.") from None


def add_lines(sources: Sources, path: Path) -> None:
    """Read a gate's record, or passes of modes. The first line says which."""
    lines = files.read_bytes(path).decode(errors="replace").splitlines()
    first = schema.parse(lines[0] if lines else "null")
    if isinstance(first, dict) and set(first) == {"runs", "failed"}:
        sources.modes[path.stem] = [to_mode_pass(line) for line in lines]
    elif isinstance(first, dict) and "cells" in first:
        sources.gates.append(replay.load(path))
    else:
        raise Foreign(f"{path} is not a record of a gate.")


def to_mode_pass(line: str) -> ModePass:
    values = schema.parse(line)
    return ModePass(schema.convert(values["runs"], dict[str, Run]), dict(values["failed"]))


def add_document(sources: Sources, path: Path, content: Any) -> None:
    """Read a JSON document. Its keys say which one it is."""
    keys = set(content) if isinstance(content, dict) else set()
    if "run" in keys:
        unwrapped(path, content)
        sources.runs.append(store.of_document(content))
    elif "verdicts" in keys:
        sources.gates.append(outcome.of_json(content, str(path)))
    elif "differs" in keys:
        sources.explanations.append(document.read(content, str(path)))
    elif "recipes" in keys:
        unwrapped(path, content)
        sources.ladders.append(schema.of_document(content, LadderFile))
    else:
        raise Foreign(f"{path} is not a document that Stele reports.")


def unwrapped(path: Path, content: Any) -> dict[str, Any]:
    try:
        return schema.unwrap(content)
    except ValueError as error:
        raise SteleError(f"{path}: {error}. Update pytest-stele.") from None
