"""The entry point of the ``stele`` command. ``stele.commands`` defines the subcommands."""

import argparse
import shlex
import signal
import sys
from collections.abc import Sequence

from stele.commands import (
    band,
    baseline,
    bisect,
    calibrate,
    capabilities,
    defaults,
    env,
    gate,
    nightly,
    options,
    parity,
    releases,
    table,
)
from stele.errors import SteleError
from stele.measuring import lock


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; 2 after an error that the user can act on, 130 if interrupted."""
    # SIGTERM must interrupt as well, so that all started processes end
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        parsed = parser().parse_args(arguments)
        status = run(parsed, sys.argv[1:] if arguments is None else arguments)
    except (SteleError, OSError) as error:  # a full disk must not give the exit code of a verdict
        print(f"stele: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stele: interrupted. Finished results are saved.", file=sys.stderr)
        return 130
    finally:
        signal.signal(signal.SIGTERM, before)
    return status


def run(parsed: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Run the command, alone on this machine if it measures: such commands have the option ``--no-wait``."""
    status: int
    if not hasattr(parsed, "no_wait"):
        status = parsed.command(parsed)
        return status
    with lock.machine(shlex.join(["stele", *arguments]), wait=not parsed.no_wait, say=options.say):
        status = parsed.command(parsed)
    return status


def parser() -> argparse.ArgumentParser:
    """Return the parser of all subcommands."""
    about = "The same model in every deep-learning framework: tables, environments, golden numbers."
    top = argparse.ArgumentParser(prog="stele", description=about)
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    for module in (
        gate,
        bisect,
        releases,
        nightly,
        calibrate,
        baseline,
        table,
        env,
        parity,
        band,
        defaults,
        capabilities,
    ):
        module.add(commands)
    return top


if __name__ == "__main__":
    sys.exit(main())
