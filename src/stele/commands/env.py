"""``stele env``: list, build and remove environments, and lock their requirements."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from stele import environments, files, schema
from stele.commands import options, screen
from stele.environments import Environment, builds, installer, libraries
from stele.environments.state import EnvironmentsFile, Listed
from stele.errors import SteleError
from stele.measuring import devices, progress
from stele.text import align


@dataclass(frozen=True, kw_only=True)
class ListOptions:
    json: bool = False


@dataclass(frozen=True, kw_only=True)
class SelectOptions:
    names: tuple[str, ...] = ()
    all: bool = False


@dataclass(frozen=True, kw_only=True)
class BuildOptions:
    selected: SelectOptions = field(default_factory=SelectOptions)
    python: Path | None = None
    offline: bool = False


def add(commands: Any) -> None:
    """Add the subcommand to the parser."""
    env = commands.add_parser("env", help="list and build environments, each a framework in an interpreter")
    verbs = env.add_subparsers(required=True, metavar="VERB")

    verb = verbs.add_parser("list", help="list every environment: ready, missing or broken, and the reason")
    verb.add_argument("--json", action="store_true", help="print JSON")
    options.declare(verb, show, ListOptions)

    verb = verbs.add_parser("make", help="build environments that do not exist")
    add_names(verb)
    verb.add_argument("--python", type=interpreter, metavar="PATH", help="the interpreter to build with")
    verb.add_argument("--offline", action="store_true", help="use only packages in uv's cache")
    options.declare(verb, make, BuildOptions)

    verb = verbs.add_parser("remove", help="delete built environments")
    add_names(verb)
    options.declare(verb, remove, SelectOptions)

    verb = verbs.add_parser("lock", help="resolve the requirements again and write <name>.lock")
    add_names(verb)
    verb.add_argument("--python", type=interpreter, metavar="PATH", help="the interpreter to resolve for")
    options.declare(verb, lock, BuildOptions)


def interpreter(text: str) -> Path:
    """Return the path of an interpreter; a name such as python3.11 stays, for uv to find."""
    return files.absolute(text) if "/" in text else Path(text)


def add_names(verb: argparse.ArgumentParser) -> None:
    """Add the arguments that select environments."""
    names_help = "an environment, or a requirement such as jax==0.9.2"
    every = (
        "every environment that Stele has built"
        if verb.prog.endswith("remove")
        else "every environment that Stele builds"
    )
    verb.add_argument("names", nargs="*", metavar="NAME", help=names_help)
    verb.add_argument("--all", action="store_true", help=every)


def select(chosen: SelectOptions) -> list[Environment]:
    """Return the selected environments. Raises SteleError if one is unknown or is never built, or if none is named."""
    if chosen.all and chosen.names:
        raise SteleError(f"--all selects every environment. Leave out --all or {chosen.names[0]}.")
    if chosen.all:
        described = environments.described().values()
        return [environment for environment in described if environment.lock is not None and environment.base is None]
    if not chosen.names:
        raise SteleError("Name an environment, or use --all. List them with: stele env list")
    selected = [environments.load(name) for name in chosen.names]
    for environment in selected:
        if environment.lock is None:
            raise SteleError(f"'{environment.name}' uses an interpreter that Stele has not built. See: stele env list")
    return selected


def show(chosen: ListOptions) -> int:
    """Print the state of every environment."""
    listed = []
    for environment in environments.described().values():
        state = environments.state(environment)
        listed.append(Listed(environment.name, environment.framework, *state))
    if chosen.json:
        print(schema.document(EnvironmentsFile(tuple(listed))), end="")
    else:
        screen.print_lines(lines(listed))
    return 0


def lines(listed: Sequence[Listed]) -> list[str]:
    """Return a line per environment: name, release, status and reason."""
    return align(
        [
            [environment.name, environment.version or "", environment.status, environment.reason]
            for environment in listed
        ]
    )


def make(chosen: BuildOptions) -> int:
    """Build one environment after the other. A failure is printed and does not stop the others."""
    selected, failures = select(chosen.selected), 0
    for count, environment in enumerate(selected, 1):
        print_progress(f"{environment.name}: {count} of {len(selected)} ...")
        start, reason = perf_counter(), skip_reason(environment, chosen)
        if reason is not None:
            print(f"{environment.name}: skipped, {reason}", flush=True)
            continue
        try:
            with progress.waiting(f"building {environment.name}"):
                was_built = builds.make(environment, chosen.python, offline=chosen.offline, fresh=True)
        except SteleError as error:
            failures += 1
            print(f"stele: {error}", file=sys.stderr)
        else:
            result = "built" if was_built else "already built"
            print(f"{environment.name}: {result}, {perf_counter() - start:.1f} s", flush=True)
    return 2 if failures else 0


def skip_reason(environment: Environment, chosen: BuildOptions) -> str | None:
    """Return why ``--all`` skips an environment on this machine, or None. A named environment is never skipped."""
    if not chosen.selected.all:
        return None
    if environment.needs_gpu and devices.first() is None:
        return "it needs an NVIDIA device"
    missing = libraries.missing_message(environment)
    python = environment.python or ""
    if missing is None and chosen.python is None and installer.find_interpreter(python) is None:
        missing = installer.absence_message(environment.name, python)
    return missing


def remove(chosen: SelectOptions) -> int:
    """Delete builds."""
    for environment in select(chosen):
        print(f"{environment.name}: {'removed' if builds.remove(environment) else 'was not built'}")
    return 0


def lock(chosen: BuildOptions) -> int:
    """Write lock files."""
    for environment in select(chosen.selected):
        with progress.waiting(f"resolving {environment.name}"):
            builds.lock(environment, chosen.python or builds.require_interpreter(environment))
        print(environment.lock)
    return 0


def print_progress(line: str) -> None:
    """Print a line on a terminal, and nothing elsewhere."""
    if sys.stderr.isatty():
        print(line, file=sys.stderr, flush=True)
