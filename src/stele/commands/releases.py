"""``stele releases sync``: a ledger of releases for asv."""

import argparse
import sys
from typing import Any

from packaging.requirements import Requirement

from stele import environments
from stele.environments import Environment
from stele.errors import SteleError
from stele.releases import index, ledger
from stele.releases.index import IndexUnavailable

# by branch, the row that a release of it is measured in
TRACKED = {
    "torch": "torch",
    "jax": "jax",
    "tensorflow-cpu": "tensorflow",
    "keras": "keras-tensorflow",
    "paddlepaddle": "paddle",
    "mxnet": "mxnet-gluon",
}


def add(commands: Any) -> None:
    command = commands.add_parser("releases", help="a framework's own history")
    verbs = command.add_subparsers(required=True, metavar="VERB")
    verb = verbs.add_parser("sync", help="read the package index into the ledger")
    verb.add_argument("frameworks", nargs="*", metavar="FRAMEWORK", help=f"default: {', '.join(TRACKED)}")
    verb.add_argument("--pre", action="store_true", help="pre-releases and nightlies, too")
    verb.set_defaults(command=sync)


def sync(arguments: argparse.Namespace) -> int:
    """A line a framework. Returns 0; where the index does not answer, what is known already does."""
    for framework in arguments.frameworks or TRACKED:
        row = tracked(framework)
        try:
            found = index.releases(package(row), prereleases=arguments.pre)
        except IndexUnavailable as error:
            old = ledger.tags(framework)
            if not old:
                raise
            print(f"stele: {error} The ledger is of {ledger.age()}.", file=sys.stderr)
            print(f"{framework}: {len(old)} releases, the last {old[-1]}")
            continue
        new = ledger.add(framework, row, found)
        print(
            f"{framework}: {len(ledger.tags(framework))} releases, {len(new)} new, the last {found[-1].version}"
        )
    return 0


def tracked(framework: str) -> Environment:
    if framework in TRACKED:
        return environments.load(TRACKED[framework])
    raise SteleError(environments.unknown("framework", framework, TRACKED))


def package(row: Environment) -> str:
    """The package that makes the row: its first requirement."""
    return Requirement(next(iter(row.requirements))).name
