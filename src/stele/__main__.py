"""The ``stele`` command: a door. What can be typed stands in ``stele.commands``."""

import argparse
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
    parity,
    releases,
    table,
)
from stele.errors import SteleError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns what it returns; 2 on an error that the user can act on, 130 when interrupted."""
    # an end from outside is an interruption, too: whatever was started ends with it
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        chosen = parser().parse_args(arguments)
        status: int = chosen.command(chosen)
    except (SteleError, OSError) as error:  # a full disk is no verdict
        print(f"stele: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stele: interrupted; what was finished is kept.", file=sys.stderr)
        return 130
    finally:
        signal.signal(signal.SIGTERM, before)
    return status


def parser() -> argparse.ArgumentParser:
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
