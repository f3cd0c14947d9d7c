"""``stele releases``: the history of a framework. ``sync`` reads releases, ``run`` measures them, asv shows them."""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from stele import environments, files, schema
from stele.commands import options
from stele.commands.options import CellOptions, ModelOptions, ProcessOptions
from stele.environments import Environment
from stele.environments.arms import Extras
from stele.errors import SteleError
from stele.measuring import machine, progress
from stele.measuring.progress import say
from stele.measuring.settings import Settings
from stele.releases import campaign, frameworks, history, index, ledger, measuring, trend
from stele.releases.campaign import Request
from stele.releases.index import IndexUnavailable, Release
from stele.report import charts, page
from stele.report import releases as pages
from stele.subjects import Subject
from stele_suite import tasks


@dataclass(frozen=True, kw_only=True)
class SyncOptions:
    frameworks: tuple[str, ...] = ()
    pre: bool = False


@dataclass(frozen=True, kw_only=True)
class ListOptions:
    range: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class MeasuringOptions:
    """What all commands that measure releases share."""

    cells: CellOptions = field(default_factory=CellOptions)
    process: ProcessOptions = field(default_factory=ProcessOptions)
    launches: int = 5
    scale: str = "gate"
    error: str | None = None
    mode: str | None = None
    budget: float = 86400.0  # seconds


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    range: tuple[str, ...] = ()
    last: int = 8
    again: bool = False
    measuring: MeasuringOptions = field(default_factory=MeasuringOptions)
    model: ModelOptions = field(default_factory=ModelOptions)


@dataclass(frozen=True, kw_only=True)
class SiteOptions:
    site: Path = Path(".stele/site")
    write: Path | None = None


@dataclass(frozen=True, kw_only=True)
class InstalledOptions:
    release: str
    python: Path
    measuring: MeasuringOptions = field(default_factory=MeasuringOptions)


def add(commands: Any) -> None:
    command = commands.add_parser("releases", help="measure the releases of a framework")
    verbs = command.add_subparsers(required=True, metavar="VERB")
    verb = verbs.add_parser("sync", help="read the package index into the ledger")
    listed = f"default: {', '.join(frameworks.ENVIRONMENTS)}"
    verb.add_argument("frameworks", nargs="*", metavar="FRAMEWORK", help=listed)
    verb.add_argument("--pre", action="store_true", help="include pre-releases and nightlies")
    options.declare(verb, sync, SyncOptions, check=check_frameworks)
    verb = verbs.add_parser("list", help="list the releases in the ledger, and their numbers on this machine")
    verb.add_argument("range", nargs="+", metavar="RANGE", help="jax, jax-0.9.2 or jax-0.9.2..jax-0.10.2")
    options.declare(verb, show, ListOptions)
    budget = "Exit: 0 measured; 2 usage or environment; 3 the budget ran out; 4 internal error; 130 interrupted."
    verb = verbs.add_parser("run", help="measure releases side by side, for asv to show", epilog=budget)
    verb.add_argument(
        "range",
        nargs="*",
        metavar="RANGE",
        help="a range, as in stele releases list; default: the last releases of each framework",
    )
    verb.add_argument(
        "--last",
        type=options.parse_count,
        metavar="N",
        help="number of releases if RANGE is a framework; default: %(default)s",
    )
    verb.add_argument("--again", action="store_true", help="measure again what has numbers already")
    add_measuring_options(verb)
    options.add_model_options(verb)
    options.declare(verb, run, RunOptions, check=check_run)
    for name in ("publish", "report"):
        verb = verbs.add_parser(name, help="publish the site, and show its lines and steps")
        add_site_option(verb)
        verb.add_argument("--write", type=Path, metavar="PAGE", help="write the table between the markers of PAGE")
        options.declare(verb, report, SiteOptions)
    verb = verbs.add_parser("measure", help="measure a release that is already installed; used by asv_benchmarks")
    verb.add_argument("release", metavar="RELEASE", help="a tag or a commit in the ledger")
    verb.add_argument(
        "--python",
        type=files.absolute,
        required=True,
        metavar="PATH",
        help="the interpreter in which it is installed",
    )
    add_measuring_options(verb)
    options.declare(verb, measure_installed, InstalledOptions, check=check_installed)


def add_site_option(verb: argparse.ArgumentParser) -> None:
    """Add the option that says where the site is written."""
    about = "write the site, which needs no network, to this folder; default: %(default)s"
    verb.add_argument("--site", type=Path, metavar="FOLDER", help=about)


def add_measuring_options(verb: argparse.ArgumentParser, *, locks: bool = True) -> None:
    """Add the options that all commands that measure releases share. ``locks``: the command locks this machine."""
    options.add_cell_options(verb)
    verb.add_argument(
        "--launches",
        type=options.parse_count,
        metavar="N",
        help="long launches of each cell; default: %(default)s",
    )
    verb.add_argument(
        "--scale",
        choices=("gate", *tasks.SCALES),
        help="scale of a launch; default: %(default)s",
    )
    verb.add_argument(
        "--error",
        choices=tasks.SCALES,
        metavar="SCALE",
        help="also train once at this scale to measure the error, for example quick",
    )
    verb.add_argument(
        "--mode",
        metavar="ID[,ID...]",
        help="tuned is the first mode of a framework; also as-shipped, another mode such as compile, or all; "
        f"default: {','.join(campaign.MODES)}; of a model tuned only",
    )
    options.add_budget(verb, MeasuringOptions.budget)
    (options.add_launch_options if locks else options.add_process_options)(verb)


def check_frameworks(chosen: SyncOptions) -> None:
    """Raise SteleError, with the nearest name, for a framework that is not followed."""
    for framework in chosen.frameworks:
        frameworks.environment_of(framework)


def subject_of(chosen: MeasuringOptions, model: ModelOptions) -> Subject:
    """Return what is measured. Raises SteleError for options that do not fit each other."""
    model.only_model()
    subject = options.subject_of(chosen.cells, model)
    if not subject.tuned and chosen.mode is not None:
        raise SteleError("A model is measured in the first mode of a framework. Leave out --mode.")
    return subject


def check_run(chosen: RunOptions) -> None:
    """Raise SteleError for what cannot be done, as far as the command line and the ledger say it."""
    subject_of(chosen.measuring, chosen.model)
    ranges_of(chosen)


def check_installed(chosen: InstalledOptions) -> None:
    """Raise SteleError for what cannot be done, as far as the command line and the ledger say it."""
    if not files.is_file(chosen.python):
        raise SteleError(f"--python {chosen.python}: there is no such interpreter. Name the path of one.")
    subject_of(chosen.measuring, ModelOptions())
    ledger.tag_of(chosen.release)


def ranges_of(chosen: RunOptions) -> list[list[str]]:
    """Return the releases of each framework in the ranges. Raises SteleError if there are none."""
    ranges = chosen.range or [name for name in ledger.branches() if ledger.tags(name)]
    if not ranges:
        raise SteleError("The ledger is empty. Fill it with: stele releases sync")
    return group_by_framework(ranges, chosen.last)


def request_from(chosen: MeasuringOptions, model: ModelOptions) -> Request:
    """Return the Request that the options describe, of the user's ``model`` if they name it.

    Its deadline starts now.
    """
    subject = subject_of(chosen, model)
    for name in subject.names:
        if name not in tasks.NAMES:
            history.register(history.MODELS, name)
    return Request(
        subject.cells(chosen.cells.phase),
        Settings(device="cpu", threads=options.threads_of(chosen.process.threads), malloc=chosen.process.malloc),
        chosen.launches,
        chosen.scale,
        chosen.error,
        time.monotonic() + chosen.budget,
        say,
        subject,
        Extras() if subject.needs.described else model.of_arms(),
        parse_modes(chosen.mode) if subject.tuned else (campaign.TUNED,),
    )


def parse_modes(text: str | None) -> tuple[str, ...]:
    """Return the modes that ``--mode`` selects, and have asv track them. Raises SteleError for an unknown one."""
    if text is None:
        return campaign.MODES
    described = [mode for name in environments.first_modes() for mode in campaign.other_modes(environments.load(name))]
    every = tuple(dict.fromkeys((*campaign.MODES, *described)))
    modes = every if text == "all" else tuple(options.parse_names("mode", text, every))
    campaign.track(modes)
    return modes


def sync(chosen: SyncOptions) -> int:
    """Update the ledger, and print a line for each framework. Returns 0.

    If the index is not available, the releases that are already in the ledger are used.
    """
    names = list(chosen.frameworks or frameworks.environment_names())
    with progress.counted("package index", len(names)) as show:
        for number, framework in enumerate(names, 1):
            sync_framework(framework, prereleases=chosen.pre)
            show(number)
    ledger.create(frameworks.ENVIRONMENTS)
    history.record_interpreter()
    return 0


def sync_framework(framework: str, *, prereleases: bool) -> list[str]:
    """Read one framework's releases into the ledger, and return the tags of the new ones."""
    environment = frameworks.environment_of(framework)
    try:
        releases = index.releases(frameworks.package(environment), prereleases=prereleases)
        new = ledger.add(framework, environment, releases, releases_of_requirements(environment))
    except IndexUnavailable as error:
        recorded = ledger.tags(framework)
        if not recorded:
            raise
        print(f"stele: {error} Using the ledger of {ledger.last_sync()}.", file=sys.stderr)
        print(f"{framework}: {len(recorded)} releases, the last {recorded[-1]}")
        return []
    count = len(ledger.tags(framework))
    print(f"{framework}: {count} releases, {len(new)} new, the last {releases[-1].version}")
    return new


def releases_of_requirements(environment: Environment) -> list[Release]:
    """Return the releases of an environment's requirements other than the framework."""
    packages, framework = frameworks.packages(environment), frameworks.package(environment)
    dependencies = [name for name in packages if name != framework]
    return [release for name in dependencies for release in index.releases(name)]


def show(chosen: ListOptions) -> int:
    """Print a line for each release: tag, date, commit, and the count of its numbers on this machine. Returns 0."""
    place = history.current_place()
    for text in chosen.range:
        for tag in releases_in(text):
            commit, date = ledger.commit(tag)
            numbers = history.numbers(tag, place)
            count = "" if numbers is None else f"  {sum(map(len, numbers.values()))} numbers"
            print(f"{tag:28} {time.strftime('%Y-%m-%d', time.gmtime(date))}  {commit[:8]}{count}")
    return 0


def run(chosen: RunOptions) -> int:
    """Measure the releases that have no numbers. Returns 0, or 3 if the budget ran out."""
    request = request_from(chosen.measuring, chosen.model)
    complete = [campaign.measure_releases(tags, request, again=chosen.again) for tags in ranges_of(chosen)]
    return 0 if all(complete) else 3


def releases_in(text: str) -> list[str]:
    """Return the releases of a framework, a tag or a range. Raises SteleError, with the nearest name."""
    if text not in ledger.branches():
        frameworks.framework_of(f"{text}-")
    return ledger.span(text)


def group_by_framework(ranges: Sequence[str], last: int) -> list[list[str]]:
    """Return the tags in the ranges, one list for each framework. A range that is a framework has its last releases."""
    groups: dict[str, set[str]] = {}
    for text in ranges:
        tags = releases_in(text)[-last if text in ledger.branches() else 0 :]
        groups.setdefault(frameworks.framework_of(tags[0]), set()).update(tags)
    return [[tag for tag in ledger.tags(name) if tag in group] for name, group in groups.items()]


def report(chosen: SiteOptions) -> int:
    """Publish the site, and print the table or write it to a page. Returns 0."""
    charts.load_converter()  # before asv is started
    published = history.publish()
    trend.record_changes(published)
    pages.write_site(chosen.site, published)
    facts, overview = machine.facts(), pages.overview(published)
    where = f"On {facts.processor}, {facts.processors} processors, {facts.system}; {date.today()}."
    if chosen.write:
        page.fill(chosen.write, f"{where} One thread, the steady allocator.\n\n{overview}")
    else:
        print(overview)
    say(f"site: {chosen.site / 'index.html'}")
    return 0


def measure_installed(chosen: InstalledOptions) -> int:
    """Measure an installed release, and print its numbers as JSON, by metric and cell. Returns 2 if there are none."""
    tag = ledger.tag_of(chosen.release)
    request = request_from(chosen.measuring, ModelOptions())
    numbers: dict[str, dict[str, float]] = {}
    environment = frameworks.asv_environment(tag, chosen.python)
    for cell in request.cells:
        for mode in request.modes:
            if campaign.has_cell(environment, cell, mode, request.settings):
                outcome = measuring.compare(
                    [campaign.in_mode(environment, mode)],
                    None,
                    cell,
                    request.settings,
                    scale=request.scale,
                    launches=request.launches,
                    say=say,
                    subject=request.subject,
                )[tag]
                if outcome.failure is not None:
                    say(f"{tag}, {cell}: {outcome.failure}")
                for metric, value in outcome.numbers.items():
                    numbers.setdefault(metric, {})[f"{cell} {mode}"] = value
    print(schema.encode(schema.wrap(schema.to_json(measuring.NumbersFile(numbers)))))
    return 0 if numbers else 2
