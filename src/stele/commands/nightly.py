"""``stele nightly``: what is new in the index, measured, published, and looked at for steps."""

import argparse
from pathlib import Path
from typing import Any

from stele import files
from stele.commands import releases
from stele.commands.options import say
from stele.releases import campaign, frameworks, history, ledger, trend
from stele.report import releases as pages
from stele_worker import tasks

STATUSES = (
    "Exit: 0 nothing rose; 1 something did, at a release that was measured now; 3 the budget ended first."
)


def add(commands: Any) -> None:
    about = "sync the ledger, measure what is new, publish the site, and say what stepped"
    command = commands.add_parser("nightly", help=about, description=about, epilog=STATUSES)
    command.add_argument("frameworks", nargs="*", metavar="FRAMEWORK", help="default: all that are followed")
    command.add_argument("--pre", action="store_true", help="pre-releases and nightlies, too")
    command.add_argument(
        "--last", type=int, default=8, metavar="N", help="of a framework's releases: %(default)s"
    )
    command.add_argument("--site", type=Path, default=".stele/asv/html", metavar="FOLDER", help="%(default)s")
    command.add_argument(
        "--report", type=Path, default=".stele/nightly.md", metavar="FILE", help="%(default)s"
    )
    releases.how(command)
    command.set_defaults(command=nightly, task=",".join(tasks.NAMES))


def nightly(arguments: argparse.Namespace) -> int:
    """Returns what the epilog says."""
    what, place = releases.wanted(arguments), history.here()
    releases.sync(arguments)
    new, whole = [], True
    for framework in arguments.frameworks or frameworks.tracked():
        tags = ledger.tags(framework)[-arguments.last :]
        before = {tag: history.numbers(tag, place) for tag in tags}
        whole &= campaign.measured(tags, what)
        new += [tag for tag in tags if history.numbers(tag, place) != before[tag]]
    history.publish(arguments.site)
    found = trend.rises(arguments.site)
    files.write_text(arguments.report, pages.markdown(found, new))
    risen = [rise for rise in found if rise.release in new]
    for rise in risen:
        print(rise.message)
    print(
        f"{len(new)} releases measured, {len(risen)} steps. The site: {arguments.site}; the report: {arguments.report}"
    )
    if not whole:
        say("The budget ended first; the next run goes on.")
    return 1 if risen else 0 if whole else 3
