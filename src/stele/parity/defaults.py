"""What frameworks do when nothing is passed, recorded by release, and what changed between two of them.

``recorded_defaults/<environment>-<release>.json``: {"schema": 1, "defaults": {fact: text or number}}; the facts are
those that ``stele_worker.defaults`` returns.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

from stele import environments, files, schema
from stele.environments import Environment
from stele.errors import SteleError
from stele.measuring.worker import Worker, WorkerError

FOLDER = Path(__file__).parent / "recorded_defaults"

Table = dict[str, Any]


class Change(NamedTuple):
    """A fact that two releases do not share; None where one of them does not have it."""

    fact: str
    old: Any
    new: Any


def ask(row: Environment) -> Table:
    """Of a row that is ready: its table, asked before anything is set."""
    log = Path(".stele/logs") / f"{row.slug}-defaults.log"
    try:
        with Worker(row, log=log, variables={}) as live:
            answer = live.ask("defaults", framework=row.framework)
    except WorkerError as error:
        if error.kind != "NotImplementedError":
            raise
        where = f"stele_worker/defaults/{row.framework}.py"
        raise SteleError(f"'{row.name}': {error.said}. Its module would be {where}") from None
    table: Table = {
        **{f"release of {name}": number for name, number in answer["versions"].items()},
        **answer["table"],
    }
    return table


def file(row: Environment, folder: Path | None = None) -> Path:
    """Where a row's table is kept: by name and release."""
    version = environments.state(row).version or "unknown"
    base = row.name.partition("==")[0].partition("@")[0]
    return (folder or FOLDER) / f"{base}-{version}.json"


def kept(row: Environment, folder: Path | None = None) -> Table | None:
    """The table that was recorded of a row's release, or None."""
    path = file(row, folder)
    if not path.exists():
        return None
    try:
        content = schema.unwrapped(json.loads(path.read_text()))
        table: Table = content.get("defaults", content)  # without the key before the schema number
    except ValueError as error:
        raise SteleError(
            f"{path} is not JSON: {error}. Delete it, and ask again: stele defaults {row.name}"
        ) from None
    return table


def record(row: Environment, folder: Path | None = None) -> Table:
    """Ask, and keep what is answered."""
    table = ask(row)
    files.write_text(file(row, folder), json.dumps(schema.stamped({"defaults": table}), indent=1) + "\n")
    return table


def changes(old: Table, new: Table) -> list[Change]:
    """What differs, in the order of the tables."""
    facts = [*old, *(fact for fact in new if fact not in old)]
    return [Change(fact, old.get(fact), new.get(fact)) for fact in facts if old.get(fact) != new.get(fact)]
