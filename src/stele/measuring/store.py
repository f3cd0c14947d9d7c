"""Save and load Runs: one JSON file per Run, written atomically: {"schema": 1, "run": {...}}."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from stele import files, schema
from stele.errors import SteleError
from stele.measuring.run import Run, RunFile
from stele.text import printable_values, sentence, slug

UNFINISHED = "unfinished"  # a folder for the Runs of a command that has not ended, which the next one takes


def save(run: Run, folder: Path) -> Path:
    """Write a Run into ``folder`` and return its path. The name contains the time, so no Run overwrites another."""
    moment = run.when.replace(":", "").replace("-", "")
    name = slug(f"{moment}-{run.environment}-{run.task}-{run.phase}") + ".json"
    files.write_text(folder / name, schema.document({"run": run}))
    return folder / name


def load(path: Path) -> Run:
    """Read one Run. Raises SteleError with the path if the file does not contain a Run."""
    try:
        return of_document(schema.read(path))
    except (OSError, ValueError, SteleError) as error:
        raise SteleError(
            f"Cannot read a Run from {path}: {sentence(error)} Delete the file, or measure again."
        ) from error


def of_document(content: Any) -> Run:
    """Return the Run in the content of a file. Raises ValueError or SteleError if there is none."""
    return schema.convert(printable_values(schema.unwrap(content), keep=""), RunFile).run


def load_all(folder: Path) -> list[Run]:
    """Return all Runs in ``folder``, oldest first."""
    return list(load_each(folder))


def load_each(folder: Path) -> Iterator[Run]:
    """Yield the same Runs one at a time: a store may have many thousand."""
    for path in sorted(folder.glob("*.json")):
        yield load(path)


def finish(folder: Path, is_measured: Callable[[Run], bool]) -> None:
    """Move the unfinished Runs that a command measured to ``folder``: the next command measures them again."""
    for path in (folder / UNFINISHED).glob("*.json"):
        if is_measured(load(path)):
            path.replace(folder / path.name)
