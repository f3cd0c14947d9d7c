"""``stele env``: list, build and remove environments, and lock their requirements."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from stele import environments, files, schema
from stele.commands import screen
from stele.environments import Environment, builds, installer, libraries
from stele.errors import SteleError
from stele.measuring import devices, progress
from stele.text import align


def add(commands: Any) -> None:
    """Add the subcommand to the parser."""
    env = commands.add_parser("env", help="list and build environments, each a framework in an interpreter")
    verbs = env.add_subparsers(required=True, metavar="VERB")

    verb = verbs.add_parser("list", help="list every environment: ready, missing or broken, and the reason")
    verb.add_argument("--json", action="store_true", help="print JSON")
    verb.set_defaults(command=show)

    verb = verbs.add_parser("make", help="build environments that do not exist")
    add_names(verb)
    verb.add_argument("--python", type=interpreter, metavar="PATH", help="the interpreter to build with")
    verb.add_argument("--offline", action="store_true", help="use only packages in uv's cache")
    verb.set_defaults(command=make)

    verb = verbs.add_parser("remove", help="delete built environments")
    add_names(verb)
    verb.set_defaults(command=remove)

    verb = verbs.add_parser("lock", help="resolve the requirements again and write <name>.lock")
    add_names(verb)
    verb.add_argument("--python", type=interpreter, metavar="PATH", help="the interpreter to resolve for")
    verb.set_defaults(command=lock)


def interpreter(text: str) -> Path:
    """Return the path of an interpreter; a name such as python3.11 stays, for uv to find."""
    return files.absolute(text) if "/" in text else Path(text)


def add_names(verb: argparse.ArgumentParser) -> None:
    """Add the arguments that select environments."""
    names_help = "an environment, or a requirement such as jax==0.9.2"
    verb.add_argument("names", nargs="*", metavar="NAME", help=names_help)
    verb.add_argument("--all", action="store_true", help="every environment that needs to be built")


def select(arguments: argparse.Namespace) -> list[Environment]:
    """Return the selected environments. Raises SteleError if one is unknown or is never built, or if none is named."""
    if arguments.all:
        described = environments.described().values()
        return [
            environment
            for environment in described
            if environment.lock is not None and environment.base is None
        ]
    if not arguments.names:
        raise SteleError("Name an environment, or pass --all. Known: " + ", ".join(environments.names()))
    selected = [environments.load(name) for name in arguments.names]
    for environment in selected:
        if environment.lock is None:
            reason = environments.state(environment).reason or "it is ready to use"
            raise SteleError(f"'{environment.name}' is not built with this command: {reason}")
    return selected


def show(arguments: argparse.Namespace) -> int:
    """Print the state of every environment."""
    facts = []
    for environment in environments.described().values():
        state = environments.state(environment)
        facts.append({"name": environment.name, "framework": environment.framework, **state._asdict()})
    if arguments.json:
        print(json.dumps(schema.wrap({"environments": facts}), indent=1))
    else:
        screen.print_lines(lines(facts))
    return 0


def lines(facts: Sequence[dict[str, str | None]]) -> list[str]:
    """Return a line per environment: name, release, status and reason."""
    return align(
        [[fact[column] or "" for column in ("name", "version", "status", "reason")] for fact in facts]
    )


def make(arguments: argparse.Namespace) -> int:
    """Build one environment after the other. A failure is printed and does not stop the others."""
    selected, failures = select(arguments), 0
    for count, environment in enumerate(selected, 1):
        print_progress(f"{environment.name}: {count} of {len(selected)} ...")
        start, reason = perf_counter(), skip_reason(environment, arguments)
        if reason is not None:
            print(f"{environment.name}: skipped, {reason}", flush=True)
            continue
        try:
            with progress.waiting(f"building {environment.name}"):
                was_built = builds.make(environment, arguments.python, offline=arguments.offline, fresh=True)
        except SteleError as error:
            failures += 1
            print(f"stele: {error}", file=sys.stderr)
        else:
            result = "built" if was_built else "already built"
            print(f"{environment.name}: {result}, {perf_counter() - start:.1f} s", flush=True)
    return 2 if failures else 0


def skip_reason(environment: Environment, arguments: argparse.Namespace) -> str | None:
    """Return why ``--all`` skips an environment on this machine, or None. A named environment is never skipped."""
    if not arguments.all:
        return None
    if environment.needs_gpu and devices.first() is None:
        return "it needs an NVIDIA device"
    missing = libraries.missing_message(environment)
    python = environment.python or ""
    if missing is None and arguments.python is None and installer.find_interpreter(python) is None:
        missing = installer.absence_message(environment.name, python)
    return missing


def remove(arguments: argparse.Namespace) -> int:
    """Delete builds."""
    for environment in select(arguments):
        print(f"{environment.name}: {'removed' if builds.remove(environment) else 'was not built'}")
    return 0


def lock(arguments: argparse.Namespace) -> int:
    """Write lock files."""
    for environment in select(arguments):
        with progress.waiting(f"resolving {environment.name}"):
            builds.lock(environment, arguments.python or builds.require_interpreter(environment))
        print(environment.lock)
    return 0


def print_progress(line: str) -> None:
    """Print a line on a terminal, and nothing elsewhere."""
    if sys.stderr.isatty():
        print(line, file=sys.stderr, flush=True)
