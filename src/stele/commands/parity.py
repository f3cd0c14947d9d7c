"""``stele parity``: every recipe climbs the ladder; with --rebase, the golden numbers made anew with the oracle."""

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from stele import environments, files, schema
from stele.environments import Environment
from stele.errors import SteleError
from stele.measuring import measure, worker
from stele.measuring.settings import DEVICES, PRECISIONS, Settings
from stele.parity import examination, golden_numbers, ladder
from stele.parity.ladder import Finding, LadderResult
from stele.report import page
from stele.report import parity as parity_page
from stele_worker import tasks

FEWEST_SEEDS = 5

Cell = tuple[Environment, str]


def add(commands: Any) -> None:
    command = commands.add_parser("parity", help="does every recipe compute the same?")
    command.add_argument("--framework", metavar="ID,…", action="append", help="default: all that are ready")
    command.add_argument("--task", choices=tasks.NAMES, action="append", help="default: all")
    command.add_argument("--device", choices=DEVICES, default="cpu", help="default: %(default)s")
    command.add_argument("--precision", choices=PRECISIONS, default="fp32", help="default: %(default)s")
    command.add_argument(
        "--seeds", type=int, metavar="N", help="train from N seeds, at least 5, for the last rung"
    )
    command.add_argument(
        "--scale", choices=tasks.SCALES, default="quick", help="of that: default: %(default)s"
    )
    command.add_argument(
        "--runs", type=Path, default=Path(".stele/parity"), help="where that is kept: %(default)s"
    )
    command.add_argument("--json", type=Path, metavar="FILE", help="write every rung of every recipe")
    command.add_argument(
        "--write", type=Path, metavar="FILE", help="write the table between a page's markers"
    )
    command.add_argument(
        "--merge",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="climb nothing: show what --json wrote, of a recipe that is in several the last",
    )
    command.add_argument("--rebase", action="store_true", help="make the golden numbers anew with the oracle")
    command.set_defaults(command=parity_of)


def parity_of(arguments: argparse.Namespace) -> int:
    if arguments.rebase:
        return rebase(arguments)
    return merge(arguments) if arguments.merge else climb(arguments)


def climb(arguments: argparse.Namespace) -> int:
    """A line a recipe, as soon as it is known. Returns 1 if one breaks."""
    if arguments.seeds is not None and arguments.seeds < FEWEST_SEEDS:
        raise SteleError(
            f"--seeds {arguments.seeds}: fewer than {FEWEST_SEEDS} seeds say nothing about an accuracy."
        )
    settings = Settings(device=arguments.device, precision=arguments.precision, threads=1)
    found: dict[Cell, LadderResult] = {}
    for row, task in cells(arguments, settings):
        found[row, task] = result = examination.run_ladder(row, task, settings)
        if arguments.seeds and "train" in examination.phases(row, task, settings):
            more = settings, arguments.runs
            result.findings.append(
                examination.accuracy_rung(row, task, arguments.scale, arguments.seeds, *more)
            )
        print(parity_page.climbed(row.name, task, result.findings), flush=True)
        keep(arguments, found, settings)
    return int(any(ladder.first_difference(result.findings) for result in found.values()))


def keep(arguments: argparse.Namespace, found: dict[Cell, LadderResult], settings: Settings) -> None:
    """Write what is known by now to where it was asked for: nothing is lost if it ends here."""
    if arguments.json:
        files.write_text(arguments.json, json.dumps(facts(found, settings), indent=1) + "\n")
    if arguments.write:
        page.fill(arguments.write, parity_page.ladders(found, settings))


def merge(arguments: argparse.Namespace) -> int:
    """Returns 1 if a recipe breaks, as ``climb`` does."""
    found: dict[Cell, LadderResult] = {}
    settings: set[Settings] = set()
    for path in arguments.merge:
        try:
            content = schema.ladder_file(json.loads(path.read_text(encoding="utf-8")))
            settings.add(Settings(**content["settings"]))
            for cell, result in map(remembered, content["recipes"]):
                found[cell] = renewed(found.get(cell, result), result)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SteleError(f"{path} is not what --json wrote: {error!r}.") from None
    if len(settings) > 1:
        raise SteleError("What is merged was climbed under different settings: merge what belongs together.")
    for (row, task), result in found.items():
        print(parity_page.climbed(row.name, task, result.findings))
    keep(arguments, found, *settings)
    return int(any(ladder.first_difference(result.findings) for result in found.values()))


def remembered(recipe: dict[str, Any]) -> tuple[Cell, LadderResult]:
    """A recipe of ``facts``."""
    rungs = [{name: rung[name] for name in Finding._fields} for rung in recipe["rungs"]]
    result = LadderResult([Finding(**rung) for rung in rungs], recipe["versions"], recipe["day"])
    return (environments.load(recipe["framework"]), recipe["task"]), result


def renewed(earlier: LadderResult, later: LadderResult) -> LadderResult:
    """The later one; where it holds and tells nothing of accuracy, for which hours go by, with that of the earlier one,
    if it is of the same releases."""
    known = any(finding.title == "accuracy" for finding in later.findings)
    if known or ladder.first_difference(later.findings) or earlier.versions != later.versions:
        return later
    learned = [finding for finding in earlier.findings if finding.title == "accuracy"]
    return later._replace(findings=later.findings + learned)


def cells(arguments: argparse.Namespace, settings: Settings) -> Iterator[Cell]:
    """What is to climb: every row asked for, in each Task in which it has anything to show."""
    rows = environments.ready(arguments.framework)
    for task in arguments.task or tasks.NAMES:
        yield from ((row, task) for row in rows if examination.phases(row, task, settings))


def facts(found: dict[Cell, LadderResult], settings: Settings) -> dict[str, Any]:
    """Every rung of every recipe, as JSON has it."""
    recipes = [
        {
            "framework": row.name,
            "versions": result.versions,
            "day": result.day,
            "task": task,
            "reached": ladder.highest_rung(result.findings),
            "rungs": [{**finding._asdict(), "title": finding.title} for finding in result.findings],
        }
        for (row, task), result in found.items()
    ]
    return schema.stamped(
        {"settings": asdict(settings), "epsilon": ladder.EPSILON[settings.precision], "recipes": recipes}
    )


def rebase(arguments: argparse.Namespace) -> int:
    settings = Settings(device="cpu")
    for task in arguments.task or tasks.NAMES:
        for form in (None, *tasks.forms(task)):
            with worker.live(environments.ORACLE, settings) as live:
                measure.configure(live, settings)
                numbers = examination.parity_answers(live, task, form, ("infer", "train"))
            print(golden_numbers.save(task, form, {**numbers, "norms": golden_numbers.norms(task, form)}))
    return 0
