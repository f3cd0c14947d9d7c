"""``stele env``: list, make and remove environments, and lock their requirements."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from stele import environments, schema
from stele.environments import Environment, builds, installer, libraries
from stele.errors import SteleError
from stele.text import aligned


def add(commands: Any) -> None:
    env = commands.add_parser("env", help="environments: a framework in an interpreter of its own")
    verbs = env.add_subparsers(required=True, metavar="VERB")

    verb = verbs.add_parser("list", help="every row: ready, missing or broken, and why")
    verb.add_argument("--json", action="store_true", help="as JSON, for programs")
    verb.set_defaults(command=show)

    verb = verbs.add_parser("make", help="build what is not there")
    choose(verb)
    verb.add_argument("--python", type=Path, metavar="PATH", help="the interpreter to build with")
    verb.set_defaults(command=make)

    verb = verbs.add_parser("remove", help="delete what was built")
    choose(verb)
    verb.set_defaults(command=remove)

    verb = verbs.add_parser("lock", help="resolve requirements anew; writes environments/<name>.lock")
    choose(verb)
    verb.add_argument("--python", type=Path, metavar="PATH", help="the interpreter to resolve for")
    verb.set_defaults(command=lock)


def choose(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("names", nargs="*", metavar="NAME", help="a row, or a requirement such as jax==0.9.2")
    verb.add_argument("--all", action="store_true", help="every row with an interpreter of its own")


def chosen(arguments: argparse.Namespace) -> list[Environment]:
    """The environments named, each of them known. Raises SteleError if there are none."""
    if arguments.all:
        return [row for row in environments.rows().values() if row.lock is not None and row.tuned]
    if not arguments.names:
        raise SteleError("Name an environment, or say --all. Known: " + ", ".join(environments.names()))
    found = [environments.load(name) for name in arguments.names]
    for row in found:
        if row.lock is None:
            raise SteleError(
                f"'{row.name}' is not built: {environments.state(row).reason or 'it is ready as it is'}."
            )
    return found


def show(arguments: argparse.Namespace) -> int:
    facts = []
    for row in environments.rows().values():
        state = environments.state(row)
        facts.append({"name": row.name, "framework": row.framework, **state._asdict()})
    print(
        json.dumps(schema.stamped({"environments": facts}), indent=1)
        if arguments.json
        else "\n".join(lines(facts))
    )
    return 0


def lines(facts: Sequence[dict[str, str | None]]) -> list[str]:
    """A line for each environment: name, release, state, and what to do."""
    return aligned(
        [[fact[column] or "" for column in ("name", "version", "status", "reason")] for fact in facts]
    )


def make(arguments: argparse.Namespace) -> int:
    """Build one after the other; one that fails is told, and does not keep the others from being built."""
    rows, failures = chosen(arguments), 0
    for count, row in enumerate(rows, 1):
        say(f"{row.name}: {count} of {len(rows)} …")
        start, lacking = perf_counter(), absence(row, arguments)
        if lacking is not None:
            print(f"{row.name}: left out, {lacking}", flush=True)
            continue
        try:
            new = builds.make(row, arguments.python)
        except SteleError as error:
            failures += 1
            print(f"stele: {error}", file=sys.stderr)
        else:
            print(f"{row.name}: {'made' if new else 'was there'}, {perf_counter() - start:.1f} s", flush=True)
    return 2 if failures else 0


def absence(row: Environment, arguments: argparse.Namespace) -> str | None:
    """Why a row cannot be built on this machine. Only --all leaves it out; who names a row is told that it fails."""
    if not arguments.all:
        return None
    lacking = libraries.missing(row)
    if lacking is None and arguments.python is None and installer.interpreter(row.python or "") is None:
        lacking = installer.absence(row.name, row.python or "")
    return lacking


def remove(arguments: argparse.Namespace) -> int:
    for row in chosen(arguments):
        print(f"{row.name}: {'removed' if builds.remove(row) else 'was not there'}")
    return 0


def lock(arguments: argparse.Namespace) -> int:
    for row in chosen(arguments):
        builds.lock(row, arguments.python or builds.interpreter_of(row))
        print(row.lock)
    return 0


def say(line: str) -> None:
    """For a person who waits."""
    if sys.stderr.isatty():
        print(line, file=sys.stderr, flush=True)
