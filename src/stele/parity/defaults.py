"""Defaults of frameworks, recorded for each release, and the changes between two releases.

``recorded_defaults/<environment>-<release>.json``: {"schema": 1, "defaults": {fact: text or number}}. The facts are
those that ``stele_worker.defaults`` returns.
"""

from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec

from stele import environments, files, schema
from stele.environments import Environment
from stele.errors import SteleError
from stele.measuring import answers, progress
from stele.measuring.worker import Worker, WorkerError
from stele.schema import about
from stele.text import slug

# facts about random numbers: the setting of the framework, which a variable of the same name in capitals also sets
RANDOM = {
    "random numbers": "jax_default_prng_impl",
    "random numbers, partitionable": "jax_threefry_partitionable",
}
RELEASE = "release of "  # the start of the facts that name a release
FOLDER = Path(__file__).parent / "recorded_defaults"

Table = dict[str, Any]


class DefaultsFile(msgspec.Struct, frozen=True):
    """`src/stele/parity/recorded_defaults/<environment>-<release>.json`. `stele defaults` writes and reads them."""

    defaults: Annotated[Table, about("text or number by fact; the facts are those of `src/stele_worker/defaults.py`")]


class DefaultChange(NamedTuple):
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
        title = f"the defaults of {environment.name}"
        with progress.waiting(title), Worker(environment, log=log, variables={}) as live:
            answer = live.ask("defaults", framework=environment.framework, expected=answers.Defaults)
    except WorkerError as error:
        if error.kind != "NotImplementedError":
            raise
        module = f"stele_worker/frameworks/{environment.framework}/defaults.py"
        raise SteleError(f"'{environment.name}': {error.message}. Add the module {module}") from None
    table: Table = {
        **{f"{RELEASE}{name}": number for name, number in answer["versions"].items()},
        **answer["table"],
    }
    return table


def record_path(environment: Environment, release: str, folder: Path | None = None) -> Path:
    """Return the path of the record of an environment at a release."""
    base = environment.name.partition("==")[0].partition("@")[0]
    return (folder or FOLDER) / f"{slug(f'{base}-{release}')}.json"


def load(environment: Environment, folder: Path | None = None) -> Table | None:
    """Return the recorded defaults of an environment's release; None if there are none, or the release is unknown.

    Raises SteleError if the file is damaged.
    """
    release = environments.state(environment).version
    return None if release is None else read(record_path(environment, release, folder), environment.name)


def read(path: Path, environment: str) -> Table | None:
    """Return the defaults in a record; None if there is no such file. Raises SteleError if it is damaged."""
    if not path.exists():
        return None
    try:
        return schema.of_document(schema.read(path), DefaultsFile).defaults
    except ValueError as error:
        raise SteleError(
            f"{path} is damaged: {error}. Delete it, then record it again: stele defaults {environment}"
        ) from None


def record(environment: Environment, folder: Path | None = None) -> tuple[Table, Path]:
    """Ask for the defaults, write them to ``record_path``, and return them and the path."""
    table = ask(environment)
    path = record_path(environment, release_of(environment, table), folder)
    files.write_text(path, schema.document(DefaultsFile(table)))
    return table, path


def release_of(environment: Environment, table: Table) -> str:
    """Return the installed release, or the one that the worker reports of the framework, which is its first one."""
    reported = next((value for fact, value in table.items() if fact.startswith(RELEASE)), None)
    return environments.state(environment).version or reported or "unknown"


def random_changes(old: Environment, new: Environment) -> list[DefaultChange]:
    """Return the settings of random numbers whose defaults differ, under their own names. Raises WorkerError."""
    if {old.framework, new.framework} != {"jax"}:  # of the others no such change is known
        return []
    differences = changes(ask(old), ask(new))
    return [change._replace(fact=RANDOM[change.fact]) for change in differences if change.fact in RANDOM]


def changes(old: Table, new: Table) -> list[DefaultChange]:
    """Return the facts that differ, in the order of the tables."""
    facts = [*old, *(fact for fact in new if fact not in old)]
    return [DefaultChange(fact, old.get(fact), new.get(fact)) for fact in facts if old.get(fact) != new.get(fact)]
