"""``stele nightly``: measure new releases in the package index, publish the site, and report the numbers that rose."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stele import files
from stele.commands import options, releases
from stele.commands.options import say
from stele.releases import campaign, frameworks, history, ledger, trend
from stele.report import history as history_pages
from stele.report import releases as pages
from stele_worker import tasks

EPILOG = (
    "Exit: 0 no number rose; 1 a number rose at a release that was measured now; 2 usage or environment; "
    "3 the budget ran out."
)


def add(commands: Any) -> None:
    about = "measure new releases, publish the site, and report the numbers that rose"
    command = commands.add_parser("nightly", help=about, description=about, epilog=EPILOG)
    add_options(command)
    releases.add_measuring_options(command)
    command.set_defaults(command=nightly, task=",".join(tasks.NAMES))


def add_options(command: argparse.ArgumentParser) -> None:
    """Add what says which releases are measured, and where the results are written."""
    command.add_argument(
        "frameworks", nargs="*", metavar="FRAMEWORK", help="default: all frameworks that Stele follows"
    )
    command.add_argument("--pre", action="store_true", help="include pre-releases and nightlies")
    command.add_argument(
        "--last",
        type=options.parse_count,
        default=8,
        metavar="N",
        help="number of releases of each framework; default: %(default)s",
    )
    releases.add_site_option(command)
    command.add_argument(
        "--report", type=Path, default=".stele/nightly.md", metavar="FILE", help="default: %(default)s"
    )
    command.add_argument("--json", type=Path, metavar="FILE", help="write all rises, for programs")


def nightly(arguments: argparse.Namespace) -> int:
    """Returns the exit code, as in EPILOG."""
    request, place = releases.request_from(arguments), history.current_place()
    releases.sync(arguments)
    new, complete = [], True
    for framework in arguments.frameworks or frameworks.environment_names():
        tags = ledger.tags(framework)[-arguments.last :]
        before = {tag: history.numbers(tag, place) for tag in tags}
        complete &= campaign.measure_releases(tags, request)
        new += [tag for tag in tags if history.has_more(history.numbers(tag, place), before[tag])]
    return publish(arguments, new, complete=complete)


def publish(arguments: argparse.Namespace, new: Sequence[str], *, complete: bool) -> int:
    """Publish the site and the report of the releases that are ``new``. Returns the exit code."""
    published = history.publish()
    trend.record_changes(published)
    history_pages.write(arguments.site, published)
    rises = trend.rises(published)
    files.write_output_text(arguments.report, pages.markdown(rises, new))
    if arguments.json:
        files.write_output_text(arguments.json, pages.to_json(rises, new))
    new_rises = [rise for rise in rises if rise.release in new]
    for rise in new_rises:
        print(rise.message)
    print(
        f"{len(new)} releases measured, {len(new_rises)} steps. Site: {arguments.site}. Report: {arguments.report}"
    )
    if not complete:
        say("The budget ran out. The next run continues from here.")
    return 1 if new_rises else 0 if complete else 3
