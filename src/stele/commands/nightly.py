"""``stele nightly``: measure new releases in the package index, publish the site, and report regressions.

Of code of the user, ``nightly_of_code`` gates them.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stele import files
from stele.commands import nightly_of_code, options, releases
from stele.commands.nightly_of_code import PublishOptions
from stele.commands.options import CellOptions, ModelOptions, ProgramOptions
from stele.commands.releases import MeasuringOptions, SyncOptions
from stele.measuring.progress import say
from stele.releases import campaign, frameworks, history, ledger, trend
from stele.report import charts
from stele.report import releases as pages
from stele_suite import tasks

EPILOG = (
    "Exit: 0 no regression; 1 a regression at a release that was measured now; 2 usage or environment; "
    "3 the budget ran out; 4 internal error; 130 interrupted."
)


def measuring_all_tasks() -> MeasuringOptions:
    return MeasuringOptions(cells=CellOptions(task=",".join(tasks.NAMES)))


@dataclass(frozen=True, kw_only=True)
class NightlyOptions:
    sync: SyncOptions = field(default_factory=SyncOptions)
    last: int = 8
    published: PublishOptions = field(default_factory=PublishOptions)
    measuring: MeasuringOptions = field(default_factory=measuring_all_tasks)
    model: ModelOptions = field(default_factory=ModelOptions)
    program: ProgramOptions = field(default_factory=ProgramOptions)


def add(commands: Any) -> None:
    about = "measure new releases, publish the site, and report regressions"
    command = commands.add_parser("nightly", help=about, description=about, epilog=EPILOG)
    add_options(command)
    releases.add_measuring_options(command)
    options.add_model_options(command)
    options.add_program_options(command)
    options.declare(command, nightly, NightlyOptions, check=check)


def add_options(command: argparse.ArgumentParser) -> None:
    """Add what says which releases are measured, and where the results are written."""
    command.add_argument(
        "frameworks",
        nargs="*",
        metavar="FRAMEWORK",
        help="default: all frameworks that Stele follows; for code of your own, what it uses now: jax==0.10.1",
    )
    command.add_argument("--pre", action="store_true", help="include pre-releases and nightlies")
    command.add_argument(
        "--last",
        type=options.parse_count,
        metavar="N",
        help="number of releases of each framework; default: %(default)s",
    )
    releases.add_site_option(command)
    command.add_argument("--markdown", type=Path, metavar="FILE", help="write a report; default: %(default)s")
    command.add_argument("--json", type=Path, metavar="FILE", help="write all regressions as JSON")


def check(chosen: NightlyOptions) -> None:
    """Raise SteleError for what cannot be done, as far as the command line says it."""
    if nightly_of_code.is_chosen(chosen.sync, chosen.model, chosen.program):
        nightly_of_code.check(of_code(chosen), chosen.measuring, default=measuring_all_tasks())
        return
    releases.check_frameworks(chosen.sync)
    chosen.model.only_model()
    releases.subject_of(chosen.measuring, ModelOptions())


def of_code(chosen: NightlyOptions) -> nightly_of_code.CodeOptions:
    return nightly_of_code.CodeOptions(
        sync=chosen.sync,
        last=chosen.last,
        published=chosen.published,
        model=chosen.model,
        program=chosen.program,
        process=chosen.measuring.process,
        phase=chosen.measuring.cells.phase,
        budget=chosen.measuring.budget,
    )


def nightly(chosen: NightlyOptions) -> int:
    """Returns the exit code, as in EPILOG."""
    if nightly_of_code.is_chosen(chosen.sync, chosen.model, chosen.program):
        return nightly_of_code.nightly(of_code(chosen))
    charts.load_converter()  # now, because hours may pass until it is needed
    request, place = releases.request_from(chosen.measuring, ModelOptions()), history.current_place()
    releases.sync(chosen.sync)
    new, complete = [], True
    for framework in chosen.sync.frameworks or frameworks.environment_names():
        tags = ledger.tags(framework)[-chosen.last :]
        before = {tag: history.numbers(tag, place) for tag in tags}
        complete &= campaign.measure_releases(tags, request)
        new += [tag for tag in tags if history.has_more(history.numbers(tag, place), before[tag])]
    return publish(chosen.published, new, complete=complete)


def publish(chosen: PublishOptions, new: Sequence[str], *, complete: bool) -> int:
    """Publish the site and the report of the releases that are ``new``. Returns the exit code."""
    published = history.publish()
    trend.record_changes(published)
    pages.write_site(chosen.site, published)
    rises = trend.rises(published)
    files.write_output_text(chosen.markdown, pages.markdown(rises, new))
    if chosen.json:
        files.write_output_text(chosen.json, pages.to_json(rises, new))
    new_rises = [rise for rise in rises if rise.release in new]
    for rise in new_rises:
        print(rise.message)
    print(f"{len(new)} releases measured, {len(new_rises)} steps. Site: {chosen.site}. Report: {chosen.markdown}")
    if not complete:
        say("The budget ran out. The next run continues from here.")
    return 1 if new_rises else 0 if complete else 3
