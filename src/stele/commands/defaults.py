"""``stele defaults``: record the defaults of a framework, and show the changes between two releases."""

from dataclasses import dataclass
from typing import Any

from stele import environments
from stele.commands import options
from stele.parity import defaults
from stele.report import parity as parity_page


@dataclass(frozen=True, kw_only=True)
class DefaultsOptions:
    old: str
    new: str | None = None


def add(commands: Any) -> None:
    command = commands.add_parser(
        "defaults", help="show the default settings of a framework, or what changed between two releases"
    )
    command.add_argument("old", metavar="FRAMEWORK", help="an environment, or a requirement such as jax==0.9.2")
    command.add_argument("new", metavar="NEW", nargs="?", help="show the changes from FRAMEWORK to NEW")
    options.declare(command, show, DefaultsOptions)


def show(chosen: DefaultsOptions) -> int:
    """Record and print the defaults of one environment, or print the changes between two. Returns 0."""
    if chosen.new is None:
        [environment] = environments.load_ready([chosen.old])
        table, path = defaults.record(environment)
        print("\n".join(parity_page.fact_lines(table)))
        print(f"\nWritten to {path}")
        return 0
    old, new = environments.load_ready([chosen.old, chosen.new])
    changes = defaults.changes(*(defaults.load(side) or defaults.record(side)[0] for side in (old, new)))
    print("\n".join(parity_page.change_lines(old.name, new.name, changes)))
    return 0
