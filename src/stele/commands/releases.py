"""``stele releases``: a framework's own history. ``sync`` reads it, ``run`` measures it, asv shows it."""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from stele import schema
from stele.commands import options
from stele.commands.options import say
from stele.environments import Environment
from stele.errors import SteleError
from stele.measuring import machine
from stele.measuring.settings import Settings
from stele.releases import campaign, frameworks, history, index, ledger, measuring
from stele.releases.campaign import Wanted
from stele.releases.index import IndexUnavailable, Release
from stele.report import page
from stele.report import releases as pages
from stele_worker import tasks


def add(commands: Any) -> None:
    command = commands.add_parser("releases", help="a framework's own history")
    verbs = command.add_subparsers(required=True, metavar="VERB")
    verb = verbs.add_parser("sync", help="read the package index into the ledger")
    listed = f"default: {', '.join(frameworks.ROWS)}"
    verb.add_argument("frameworks", nargs="*", metavar="FRAMEWORK", help=listed)
    verb.add_argument("--pre", action="store_true", help="pre-releases and nightlies, too")
    verb.set_defaults(command=sync)
    verb = verbs.add_parser("list", help="the releases in the ledger, and what is known of them here")
    verb.add_argument("range", nargs="+", metavar="RANGE", help="jax, jax-0.9.2 or jax-0.9.2..jax-0.10.2")
    verb.set_defaults(command=show)
    verb = verbs.add_parser("run", help="measure releases side by side, for asv to show")
    verb.add_argument(
        "range", nargs="*", metavar="RANGE", help="as in list; default: the last of each framework"
    )
    verb.add_argument(
        "--last", type=int, default=8, metavar="N", help="of a whole framework; default: %(default)s"
    )
    verb.add_argument("--again", action="store_true", help="what is known already, too")
    how(verb)
    verb.set_defaults(command=run)
    verb = verbs.add_parser("report", help="publish the site, and list its lines and their steps")
    verb.add_argument("--site", type=Path, default=".stele/asv/html", metavar="FOLDER", help="%(default)s")
    verb.add_argument("--write", type=Path, metavar="PAGE", help="put the table between the page's markers")
    verb.set_defaults(command=report)
    verb = verbs.add_parser(
        "measure", help="measure a release that is installed already, as asv_benchmarks does"
    )
    verb.add_argument("release", metavar="RELEASE", help="a tag or a commit of the ledger")
    verb.add_argument(
        "--python", type=Path, required=True, metavar="PATH", help="the interpreter that has it"
    )
    how(verb)
    verb.set_defaults(command=installed)


def how(verb: argparse.ArgumentParser) -> None:
    """Options of every command that measures releases."""
    options.of_cells(verb)
    verb.add_argument("--launches", type=int, default=5, help="of each cell; default: %(default)s")
    verb.add_argument(
        "--scale", choices=("gate", *tasks.SCALES), default="gate", help="of a launch; default: %(default)s"
    )
    verb.add_argument(
        "--error",
        choices=tasks.SCALES,
        metavar="SCALE",
        help="train once at this scale for the error as well, such as quick",
    )
    options.steady(verb, budget="24h")


def wanted(arguments: argparse.Namespace) -> Wanted:
    return Wanted(
        options.cells(arguments.task, arguments.phase),
        Settings(device="cpu", threads=arguments.threads, malloc=arguments.malloc),
        arguments.launches,
        arguments.scale,
        arguments.error,
        time.monotonic() + arguments.budget,
        say,
    )


def sync(arguments: argparse.Namespace) -> int:
    """A line a framework. Returns 0; where the index does not answer, what is known already does."""
    for framework in arguments.frameworks or frameworks.tracked():
        synced(framework, prereleases=arguments.pre)
    ledger.begin(frameworks.ROWS)
    history.tell_asv()
    return 0


def synced(framework: str, *, prereleases: bool) -> list[str]:
    """Read one framework's releases into the ledger; the new ones."""
    row = frameworks.row(framework)
    try:
        found = index.releases(frameworks.package(row), prereleases=prereleases)
        new = ledger.add(framework, row, found, required(row))
    except IndexUnavailable as error:
        old = ledger.tags(framework)
        if not old:
            raise
        print(f"stele: {error} The ledger is of {ledger.age()}.", file=sys.stderr)
        print(f"{framework}: {len(old)} releases, the last {old[-1]}")
        return []
    count = len(ledger.tags(framework))
    print(f"{framework}: {count} releases, {len(new)} new, the last {found[-1].version}")
    return new


def required(row: Environment) -> list[Release]:
    """The releases of what else a row requires."""
    others = [name for name in frameworks.packages(row) if name != frameworks.package(row)]
    return [release for name in others for release in index.releases(name)]


def show(arguments: argparse.Namespace) -> int:
    """A line a release: its date, its commit, and how many numbers of it there are here."""
    place = history.here()
    for text in arguments.range:
        for tag in ledger.span(text):
            commit, date = ledger.commit(tag)
            known = history.numbers(tag, place)
            told = "" if known is None else f"  {sum(map(len, known.values()))} numbers"
            print(f"{tag:28} {time.strftime('%Y-%m-%d', time.gmtime(date))}  {commit[:8]}{told}")
    return 0


def run(arguments: argparse.Namespace) -> int:
    """Measure what is not known. Returns 0; 3 where the budget ended first."""
    what = wanted(arguments)
    found = arguments.range or [name for name in ledger.branches() if ledger.tags(name)]
    if not found:
        raise SteleError("The ledger is empty. Type: stele releases sync")
    sides = together(found, arguments.last)
    done = [campaign.measured(tags, what, again=arguments.again) for tags in sides]
    return 0 if all(done) else 3


def together(texts: Sequence[str], last: int) -> list[list[str]]:
    """The releases that are named, those of a framework in one list; of a whole framework the last."""
    found: dict[str, set[str]] = {}
    for text in texts:
        named = ledger.span(text)[-last if text in ledger.branches() else 0 :]
        found.setdefault(frameworks.of_tag(named[0]), set()).update(named)
    return [[tag for tag in ledger.tags(name) if tag in tags] for name, tags in found.items()]


def report(arguments: argparse.Namespace) -> int:
    """Print the table, or write it. Returns 0."""
    history.publish(arguments.site)
    facts, found = machine.facts(), pages.overview(arguments.site)
    where = f"On {facts['processor']}, {facts['processors']} processors, {facts['system']}; {date.today()}."
    if arguments.write:
        page.fill(arguments.write, f"{where} One thread, the steady allocator.\n\n{found}")
    else:
        print(found)
    return 0


def installed(arguments: argparse.Namespace) -> int:
    """Print the numbers of a release as JSON, by metric and cell. Returns 0; 1 where nothing could be measured."""
    tag = ledger.tag_of(arguments.release)
    what = wanted(arguments)
    found: dict[str, dict[str, float]] = {}
    row = frameworks.built_by_asv(tag, arguments.python)
    for cell in what.cells:
        for mode in campaign.MODES:
            if campaign.has(row, cell, mode, what.settings):
                one = measuring.compared(
                    [campaign.variant(row, mode)],
                    None,
                    cell,
                    what.settings,
                    scale=what.scale,
                    launches=what.launches,
                    say=say,
                )[tag]
                if one.complaint is not None:
                    say(f"{tag}, {cell}: {one.complaint}")
                for metric, value in one.numbers.items():
                    found.setdefault(metric, {})[f"{cell} {mode}"] = value
    print(json.dumps(schema.stamped({"numbers": found})))
    return 0 if found else 1
