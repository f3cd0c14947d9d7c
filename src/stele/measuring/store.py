"""Runs to and from files: one JSON file a Run, written whole or not at all.

{"schema": 1, "run": {...}}: the fields of ``stele.measuring.run.Run``.
"""

import json
from pathlib import Path

from stele import files, schema
from stele.errors import SteleError
from stele.measuring.run import Run

FORMATS = (1,)  # of files from before the schema number


def save(run: Run, folder: Path) -> Path:
    """Write a Run into ``folder`` and return its path. Never overwrites another."""
    moment = run.when.replace(":", "").replace("-", "")
    name = f"{moment}-{run.environment}-{run.task}-{run.phase}.json"
    files.write_text(folder / name, json.dumps(schema.stamped({"run": run.to_dict()}), indent=1) + "\n")
    return folder / name


def load(path: Path) -> Run:
    """Read one Run. Raises SteleError, naming the file, if it holds none."""
    try:
        content = schema.unwrapped(json.loads(path.read_text(encoding="utf-8")), formats=FORMATS)
        return Run.from_dict(content["run"])
    except (OSError, ValueError, KeyError, TypeError, SteleError) as error:
        raise SteleError(
            f"Cannot read a Run from {path}: {error}. Delete the file, or measure again."
        ) from error


def load_all(folder: Path) -> list[Run]:
    """All Runs in ``folder``, the oldest first."""
    return [load(path) for path in sorted(folder.glob("*.json"))]
