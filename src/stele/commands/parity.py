"""``stele parity``: run the ladder for every recipe; with --rebase, regenerate the golden numbers with the oracle."""

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from stele import environments, files, schema
from stele.commands import gate, options
from stele.environments import Environment, builds, packages
from stele.errors import SteleError
from stele.gate import correctness, judgement, record, trial
from stele.gate.trial import Trial
from stele.measuring import measure, progress, store, worker
from stele.measuring.settings import DEVICES, Settings
from stele.models import arms
from stele.models.spec import Model
from stele.parity import devices, examination, golden_numbers, ladder
from stele.parity.ladder import Finding, LadderResult
from stele.report import page
from stele.report import parity as parity_page
from stele_worker import tasks

FOLDER = Path(".stele/parity")
MIN_SEEDS = 5

Cell = tuple[Environment, str]


def add(commands: Any) -> None:
    command = commands.add_parser("parity", help="do all recipes compute the same?")
    command.add_argument(
        "--framework", metavar="ID[,ID...]", action="append", help="environments; default: all that are ready"
    )
    command.add_argument(
        "--modes", action="store_true", help="compare the other modes of the environments, too"
    )
    command.add_argument("--task", choices=tasks.NAMES, action="append", help="default: all")
    command.add_argument("--device", choices=DEVICES, default="cpu", help="default: %(default)s")
    options.add_precision(command)
    command.add_argument(
        "--devices",
        type=options.parse_count,
        metavar="N",
        help="compare training on N devices with one device: rung 11",
    )
    command.add_argument(
        "--seeds",
        type=options.parse_count,
        metavar="N",
        help="train from N seeds for rung 10, accuracy; at least 5",
    )
    command.add_argument(
        "--scale",
        choices=tasks.SCALES,
        default="quick",
        help="scale of the training for rung 10; default: %(default)s",
    )
    command.add_argument(
        "--runs",
        type=Path,
        default=Path(".stele/parity"),
        help="folder for the Runs of rung 10; default: %(default)s",
    )
    command.add_argument("--json", type=Path, metavar="FILE", help="write every rung of every recipe to FILE")
    command.add_argument(
        "--write", type=Path, metavar="FILE", help="write the tables between the markers of the page FILE"
    )
    command.add_argument(
        "--merge",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="run nothing; show the results in these files from --json; a later file replaces an earlier one",
    )
    command.add_argument(
        "--rebase", action="store_true", help="regenerate the golden numbers with the oracle"
    )
    options.add_model_options(command)
    command.set_defaults(command=parity_command)


def parity_command(arguments: argparse.Namespace) -> int:
    """Run, merge or rebase. Returns the exit code."""
    if arguments.rebase:
        return rebase(arguments)
    if arguments.model:
        return compare_model(arguments)
    return merge(arguments) if arguments.merge else run_ladders(arguments)


def compare_model(arguments: argparse.Namespace) -> int:
    """Compare a user's model in each environment with the first one. Returns 1 if one differs, 3 without a verdict."""
    model, extras = options.parse_model(arguments), options.parse_extras(arguments)
    names = [name for value in arguments.framework or () for name in value.split(",") if name]
    if model is None or len(names) < 2:
        raise SteleError(
            "--model compares environments. Name at least two: --framework jax==0.10.1,jax==0.10.2"
        )
    old, *others = [arms.load(name, model, extras) for name in names]
    gate.make(old, fresh=True)
    statuses = []
    for new in others:
        resolved = builds.resolved_like(new, old)
        gate.make(resolved, fresh=True)
        packages.require_upgrade(old, resolved)
        subject = gate.inspected(parity_trial(arguments, model, old, resolved), model)
        path = FOLDER / f"{datetime.now():%Y%m%d-%H%M%S-%f}.jsonl"
        log = trial.watch(record.create(path, trial.header(subject)), subject)
        for verdict in correctness.parity_verdicts(subject, log, options.say):
            print(f"{verdict.status}  {old.name} to {new.name}: {verdict.message}", flush=True)
            statuses.append(verdict.status)
    return gate.EXIT_STATUS[judgement.overall(statuses)]


def parity_trial(arguments: argparse.Namespace, model: Model, old: Environment, new: Environment) -> Trial:
    settings = Settings(device=arguments.device, **options.conditions_from(arguments))
    cells = options.phases_of(model.name, None)
    return Trial(old, new, cells, (), settings, seed=0, budget=math.inf, accuracy=False, model=model)


def run_ladders(arguments: argparse.Namespace) -> int:
    """Run the ladder for every recipe, and print a line for each. Returns 1 if a recipe differs, else 0."""
    if arguments.seeds is not None and arguments.seeds < MIN_SEEDS:
        raise SteleError(
            f"--seeds {arguments.seeds}: fewer than {MIN_SEEDS} seeds are not enough for rung 10, accuracy."
        )
    settings = Settings(device=arguments.device, **options.conditions_from(arguments))
    if arguments.devices is not None:
        return run_on_devices(arguments, replace(settings, devices=arguments.devices))
    results: dict[Cell, LadderResult] = {}
    if arguments.seeds:
        options.announce_inputs(arguments.task or tasks.NAMES)
    for environment, task in cells(arguments, settings):
        results[environment, task] = result = examination.run_ladder(environment, task, settings)
        if arguments.seeds and "train" in examination.phases(environment, task, settings):
            scale, seeds, runs = arguments.scale, arguments.seeds, arguments.runs
            finding = examination.accuracy_rung(
                environment, task, scale, seeds, settings, runs, result.versions
            )
            result.findings.append(finding)
        print(parity_page.ladder_line(environment.name, task, result.findings), flush=True)
        write_results(arguments, results, settings)
    examined = {(environment.name, task) for environment, task in results}
    store.finish(arguments.runs, lambda run: (run.environment, run.task) in examined)
    return int(any(ladder.first_difference(result.findings) for result in results.values()))


def run_on_devices(arguments: argparse.Namespace, settings: Settings) -> int:
    """Compare several devices with one in every recipe, and print a line for each. Returns 1 if one differs, else 0."""
    if settings.devices < 2:
        raise SteleError("--devices 1: there is nothing to compare. Use --devices 2 or more.")
    results: dict[Cell, LadderResult] = {}
    for environment, task in cells(arguments, settings):
        if reason := devices.why_absent(environment, task, settings):
            if arguments.framework:
                print(f"{environment.name}  {task}  not compared: {reason}")
            continue
        results[environment, task] = result = devices.run_ladder(environment, task, settings)
        print(parity_page.devices_line(environment, task, result.findings[0], settings), flush=True)
        write_results(arguments, results, settings)
    if not results:
        raise SteleError("No selected environment has a recipe for several devices. See: stele env list")
    return int(any(ladder.first_difference(result.findings) for result in results.values()))


def write_results(
    arguments: argparse.Namespace, results: dict[Cell, LadderResult], settings: Settings
) -> None:
    """Write the results so far to --json and --write, so that nothing is lost if the command is interrupted."""
    if arguments.json:
        files.write_output_text(arguments.json, json.dumps(facts(results, settings), indent=1) + "\n")
    if arguments.write:
        page.fill(arguments.write, parity_page.ladder_tables(results, settings))


def merge(arguments: argparse.Namespace) -> int:
    """Show and write the results of several files. Returns 1 if a recipe differs, else 0."""
    results: dict[Cell, LadderResult] = {}
    settings: set[Settings] = set()
    for path in arguments.merge:
        try:
            content = schema.ladder_file(schema.read(path))
            schema.check_fields(content["settings"], Settings)
            settings.add(Settings(**content["settings"]))
            for cell, result in map(result_from_facts, content["recipes"]):
                results[cell] = newer_result(results.get(cell, result), result)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SteleError(f"{path} was not written by stele parity --json: {error!r}.") from None
    if len(settings) > 1:
        raise SteleError("The files have different settings. Merge only files with equal settings.")
    for (environment, task), result in results.items():
        print(parity_page.ladder_line(environment.name, task, result.findings))
    write_results(arguments, results, *settings)
    return int(any(ladder.first_difference(result.findings) for result in results.values()))


def result_from_facts(recipe: dict[str, Any]) -> tuple[Cell, LadderResult]:
    """Return the environment, the task and the result of one recipe in ``facts``."""
    rungs = [{name: rung[name] for name in Finding._fields} for rung in recipe["rungs"]]
    for rung in rungs:
        schema.check_fields(rung, Finding)
        if not 1 <= rung["rung"] <= len(ladder.TITLES):
            raise ValueError(f"there is no rung {rung['rung']}")
    result = LadderResult([Finding(**rung) for rung in rungs], recipe["versions"], recipe["day"])
    return (environment_of(recipe["framework"]), recipe["task"]), result


def environment_of(name: str) -> Environment:
    """Return an environment by the name in a file. A path is not loaded, because that starts the interpreter."""
    return Environment(name=name, label=name, framework=name) if "/" in name else environments.load(name)


def newer_result(earlier: LadderResult, later: LadderResult) -> LadderResult:
    """Return the later result, with the earlier one's accuracy if it has none, because accuracy takes hours.

    The accuracy is taken over only if the later result agrees on all rungs and the versions are equal.
    """
    has_accuracy = any(finding.title == "accuracy" for finding in later.findings)
    if has_accuracy or ladder.first_difference(later.findings) or earlier.versions != later.versions:
        return later
    accuracies = [finding for finding in earlier.findings if finding.title == "accuracy"]
    return later._replace(findings=later.findings + accuracies)


def cells(arguments: argparse.Namespace, settings: Settings) -> Iterator[Cell]:
    """Yield each selected environment and task, if the environment can run a phase of the task."""
    selected = environments.load_ready(arguments.framework)
    if arguments.modes:
        selected = ready_modes(selected)
    for task in arguments.task or tasks.NAMES:
        yield from (
            (item, task)
            for item in selected
            if settings.devices > 1 or examination.phases(item, task, settings)
        )


def ready_modes(selected: Sequence[Environment]) -> list[Environment]:
    """Return the environments with their other modes, each once, without the modes that this machine cannot run."""
    ready = []
    for environment in {one.name: one for one in environments.with_modes(selected)}.values():
        state = environments.state(environment)
        if state.status == "ready":
            ready.append(environment)
        else:
            options.say(f"stele: {environment.name} is left out: {state.reason}")
    return ready


def facts(results: dict[Cell, LadderResult], settings: Settings) -> dict[str, Any]:
    """Return every rung of every recipe as the content of the JSON file."""
    recipes = [
        {
            "framework": environment.name,
            "versions": result.versions,
            "day": result.day,
            "task": task,
            "reached": ladder.highest_rung(result.findings),
            "rungs": [{**finding._asdict(), "title": finding.title} for finding in result.findings],
        }
        for (environment, task), result in results.items()
    ]
    return schema.wrap(
        {"settings": settings.as_fields(), "epsilon": ladder.EPSILON[settings.arithmetic], "recipes": recipes}
    )


def rebase(arguments: argparse.Namespace) -> int:
    """Regenerate the golden numbers of the selected tasks, and print the paths. Returns 0."""
    settings = Settings(device="cpu")
    for task in arguments.task or tasks.NAMES:
        for form in (None, *tasks.forms(task)):
            title = f"the oracle computes {task}"
            with progress.waiting(title), worker.launch(environments.ORACLE, settings) as live:
                measure.configure(live, settings)
                phases = examination.phases(environments.ORACLE, task, settings)
                numbers = examination.parity_answers(live, task, form, phases)
            print(golden_numbers.save(task, form, numbers))
    return 0
