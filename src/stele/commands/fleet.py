"""``stele fleet``: measure cells, gates and releases on several machines, with Ray or as a Slurm array."""

import time
from dataclasses import dataclass
from typing import Any

from stele.commands import fleet_gate, fleet_nightly, fleet_run, options
from stele.commands.options import NoOptions
from stele.errors import SteleError
from stele.fleet import campaign, joining, status


@dataclass(frozen=True, kw_only=True)
class JoinOptions:
    address: str | None = None
    head: str | None = None


def add(commands: Any) -> None:
    about = "measure on several machines"
    command = commands.add_parser("fleet", help=about, description=about)
    verbs = command.add_subparsers(required=True, metavar="VERB")
    fleet_run.add(verbs)
    fleet_gate.add(verbs)
    fleet_nightly.add(verbs)
    verb = verbs.add_parser("status", help="show what runs where, what waits, and the estimated end")
    options.declare(verb, show_status, NoOptions)
    verb = verbs.add_parser("join", help="make this machine a node of the fleet; to leave: ray stop")
    verb.add_argument("address", nargs="?", metavar="ADDRESS", help="address of the first node, such as 10.0.0.5:6379")
    verb.add_argument("--head", metavar="IP[:PORT]", help="make this machine the first node, at this address")
    options.declare(verb, join, JoinOptions)


def show_status(_: NoOptions) -> int:
    """Print the status of the newest command in this folder. Returns 0."""
    newest = campaign.newest()
    if newest is None:
        raise SteleError(
            f"No fleet command was started in this folder: {campaign.FOLDER} is empty. Start one with: stele fleet run"
        )
    print("\n".join(status.lines(status.read(newest.folder / status.FILE), time.time())))
    return 0


def join(chosen: JoinOptions) -> int:
    """Start a node of Ray on this machine, which stays after this command. Returns 0."""
    if chosen.head is not None and chosen.address is None:
        print("\n".join(joining.start_head(chosen.head)))
    elif chosen.address is not None and chosen.head is None:
        print("\n".join(joining.start_node(chosen.address)))
    else:
        raise SteleError("Name the address of the first node, or make this machine the first one with --head IP.")
    return 0
