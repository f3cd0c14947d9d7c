"""Defaults of frameworks, recorded for each release, and the changes between two releases.

``recorded_defaults/<environment>-<release>.json``: {"schema": 1, "defaults": {fact: text or number}}. The facts are
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
    """A fact that differs between two releases; None where a release does not have it."""

    fact: str
    old: Any
    new: Any


def ask(environment: Environment) -> Table:
    """Return the defaults of an environment that is ready, before any option is set.

    Raises SteleError if no defaults are written for its framework.
    """
    log = Path(".stele/logs") / f"{environment.slug}-defaults.log"
    try:
        with Worker(environment, log=log, variables={}) as live:
            answer = live.ask("defaults", framework=environment.framework)
    except WorkerError as error:
        if error.kind != "NotImplementedError":
            raise
        module = f"stele_worker/defaults/{environment.framework}.py"
        raise SteleError(f"'{environment.name}': {error.message}. Add the module {module}") from None
    table: Table = {
        **{f"release of {name}": number for name, number in answer["versions"].items()},
        **answer["table"],
    }
    return table


def record_path(environment: Environment, folder: Path | None = None) -> Path:
    """Return the path of an environment's record: its name and release."""
    version = environments.state(environment).version or "unknown"
    base = environment.name.partition("==")[0].partition("@")[0]
    return (folder or FOLDER) / f"{base}-{version}.json"


def load(environment: Environment, folder: Path | None = None) -> Table | None:
    """Return the recorded defaults of an environment's release, or None. Raises SteleError if the file is damaged."""
    path = record_path(environment, folder)
    if not path.exists():
        return None
    try:
        content = schema.unwrap(json.loads(path.read_text()))
        table: Table = content.get("defaults", content)  # files without a schema number lack this key
    except ValueError as error:
        raise SteleError(
            f"{path} is not JSON: {error}. Delete it, then record it again: stele defaults {environment.name}"
        ) from None
    return table


def record(environment: Environment, folder: Path | None = None) -> Table:
    """Ask for the defaults, write them to ``record_path``, and return them."""
    table = ask(environment)
    path = record_path(environment, folder)
    files.write_text(path, json.dumps(schema.wrap({"defaults": table}), indent=1) + "\n")
    return table


def changes(old: Table, new: Table) -> list[Change]:
    """Return the facts that differ, in the order of the tables."""
    facts = [*old, *(fact for fact in new if fact not in old)]
    return [Change(fact, old.get(fact), new.get(fact)) for fact in facts if old.get(fact) != new.get(fact)]
