"""``stele baseline promote``: make saved launches the baseline of later runs."""

from dataclasses import dataclass
from typing import Any

from stele.commands import options
from stele.gate import baseline


@dataclass(frozen=True, kw_only=True)
class PromoteOptions:
    names: tuple[str, ...] = ()


def add(commands: Any) -> None:
    command = commands.add_parser("baseline", help="manage stored measurements of this machine")
    verbs = command.add_subparsers(required=True, metavar="VERB")
    verb = verbs.add_parser("promote", help="turn saved launches into the baseline")
    verb.add_argument("names", nargs="*", metavar="NAME", help="such as torch-cnn-train-cpu-fp32; default: all")
    options.declare(verb, promote, PromoteOptions)


def promote(chosen: PromoteOptions) -> int:
    """Print each promoted file, to be reviewed with git diff and committed. Return 0."""
    for path in baseline.promote(chosen.names):
        print(path)
    return 0
