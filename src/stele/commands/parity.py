"""``stele parity``: run the ladder for every recipe; with --rebase, regenerate the golden numbers with the oracle."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from stele import environments, files, schema
from stele.commands import options
from stele.commands.options import ModelOptions
from stele.environments import Environment, arms, builds, packages
from stele.errors import SteleError
from stele.gate import correctness, judgement, preparation
from stele.gate import record as records
from stele.gate.gate import Gate
from stele.gate.trial import TIMEOUT, Trial, header, watch
from stele.measuring import measure, progress, store, worker
from stele.measuring.progress import say
from stele.measuring.settings import DEVICES, Settings
from stele.parity import devices, examination, golden_numbers, ladder
from stele.parity.ladder import LadderFile, LadderResult, RecipeResult
from stele.report import page
from stele.report import parity as parity_page
from stele.subjects import InBoth, Subject, Tasks
from stele_suite import tasks

FOLDER = Path(".stele/parity")
MIN_SEEDS = 5
EXIT_CODES = (
    "Exit: 0 all agree; 1 a recipe or a model differs; 2 usage or environment; 3 no verdict about a model; "
    "4 internal error; 130 interrupted."
)

Examined = tuple[Environment, str]  # and the task


@dataclass(frozen=True, kw_only=True)
class ParityOptions:
    framework: tuple[str, ...] = ()
    modes: bool = False
    task: tuple[str, ...] = ()
    device: str = "cpu"
    precision: str | None = None
    devices: int | None = None
    seeds: int | None = None
    scale: str = "quick"
    runs: Path = FOLDER
    json: Path | None = None
    write: Path | None = None
    merge: tuple[Path, ...] = ()
    rebase: bool = False
    model: ModelOptions = field(default_factory=ModelOptions)

    def settings_of(self, subject: Subject) -> Settings:
        precision = options.precision_of(self.precision, tuned=subject.tuned)
        threads = options.threads_of(None, tuned=subject.tuned)
        return Settings(device=self.device, threads=threads, precision=precision)


def add(commands: Any) -> None:
    summary = "check that all recipes compute the same"
    command = commands.add_parser("parity", help=summary, epilog=EXIT_CODES)
    command.add_argument(
        "--framework", metavar="ID[,ID...]", action="append", help="environments; default: all that are ready"
    )
    command.add_argument("--modes", action="store_true", help="compare the other modes of the environments, too")
    command.add_argument("--task", choices=tasks.NAMES, action="append", help="default: all")
    command.add_argument("--device", choices=DEVICES, help="default: %(default)s")
    options.add_precision(command)
    command.add_argument(
        "--devices",
        type=options.parse_count,
        metavar="N",
        help="compare training on N devices with one device",
    )
    command.add_argument(
        "--seeds",
        type=options.parse_count,
        metavar="N",
        help="train with N seeds and compare the accuracy; at least 5",
    )
    command.add_argument(
        "--scale",
        choices=tasks.SCALES,
        help="scale of these trainings; default: %(default)s",
    )
    command.add_argument(
        "--runs",
        type=Path,
        help="folder for the Runs of these trainings; default: %(default)s",
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
        help="do not run; show saved --json files; a later file replaces an earlier one",
    )
    command.add_argument("--rebase", action="store_true", help="regenerate the golden numbers with the oracle")
    options.add_model_options(command)
    options.declare(command, parity_command, ParityOptions, check=check)


def check(chosen: ParityOptions) -> None:
    """Raise SteleError for what cannot be done, as far as the command line says it."""
    chosen.model.only_model(chosen.task)
    chosen.settings_of(Tasks()).check_machine()
    if chosen.seeds is not None and chosen.seeds < MIN_SEEDS:
        raise SteleError(
            f"--seeds {chosen.seeds} is too small: the comparison of accuracies needs at least {MIN_SEEDS}."
        )
    if chosen.devices == 1:
        raise SteleError("--devices 1 is too small: several devices are compared with one. Use --devices 2 or more.")


def parity_command(chosen: ParityOptions) -> int:
    """Run, merge or rebase. Returns the exit code."""
    if chosen.rebase:
        return rebase(chosen)
    if chosen.model.spec:
        return compare_model(chosen)
    return merge(chosen) if chosen.merge else run_ladders(chosen)


def compare_model(chosen: ParityOptions) -> int:
    """Compare a user's model in each environment with the first one. Returns 1 if one differs, 3 without a verdict."""
    model, extras = chosen.model.model(), chosen.model.of_arms()
    names = [name for value in chosen.framework for name in value.split(",") if name]
    if model is None or len(names) < 2:
        raise SteleError("--model compares environments. Name at least two: --framework jax==0.10.1,jax==0.10.2")
    old, *others = [arms.load(name, model.needs, extras) for name in names]
    preparation.make(old, fresh=True)
    in_old = model.resolve(old, model.cells(), timeout=TIMEOUT, say=progress.say)
    statuses = []
    for new in others:
        resolved = builds.resolved_like(new, old)
        preparation.make(resolved, fresh=True)
        packages.require_upgrade(old, resolved)
        trial = parity_trial(chosen, in_old.compare(resolved))
        path = FOLDER / f"{datetime.now():%Y%m%d-%H%M%S-%f}.jsonl"
        record = watch(records.create(path, header(trial)), trial)
        for verdict in correctness.parity(Gate(trial, record)):
            print(f"{verdict.status}  {old.name} to {new.name}: {verdict.message}", flush=True)
            statuses.append(verdict.status)
    return judgement.EXIT_CODES[judgement.overall(statuses)]


def parity_trial(chosen: ParityOptions, both: InBoth) -> Trial:
    return Trial(
        both.old,
        both.new,
        both.subject.cells(),
        (),
        chosen.settings_of(both.subject),
        seed=0,
        budget=math.inf,
        accuracy=False,
        subject=both.subject,
        compared=both.compared,
    )


def run_ladders(chosen: ParityOptions) -> int:
    """Run the ladder for every recipe, and print a line for each. Returns 1 if a recipe differs, else 0."""
    settings = chosen.settings_of(Tasks())
    if chosen.devices is not None:
        return run_on_devices(chosen, replace(settings, devices=chosen.devices))
    results: dict[Examined, LadderResult] = {}
    if chosen.seeds:
        measure.announce_inputs(chosen.task or tasks.NAMES)
    for environment, task in cells(chosen, settings):
        results[environment, task] = result = examination.run_ladder(environment, task, settings)
        if chosen.seeds and "train" in examination.phases(environment, task, settings):
            scale, seeds, runs = chosen.scale, chosen.seeds, chosen.runs
            finding = examination.accuracy_rung(environment, task, scale, seeds, settings, runs, result.versions)
            result.findings.append(finding)
        print(parity_page.ladder_line(environment.name, task, result.findings), flush=True)
        write_results(chosen, results, settings)
    examined = {(environment.name, task) for environment, task in results}
    store.finish(chosen.runs, lambda run: (run.environment, run.task) in examined)
    return int(any(ladder.first_difference(result.findings) for result in results.values()))


def run_on_devices(chosen: ParityOptions, settings: Settings) -> int:
    """Compare several devices with one in every recipe, and print a line for each. Returns 1 if one differs, else 0."""
    results: dict[Examined, LadderResult] = {}
    for environment, task in cells(chosen, settings):
        if reason := devices.why_absent(environment, task, settings):
            if chosen.framework:
                print(f"{environment.name}  {task}  not compared: {reason}")
            continue
        results[environment, task] = result = devices.run_ladder(environment, task, settings)
        print(parity_page.devices_line(environment, task, result.findings[0], settings), flush=True)
        write_results(chosen, results, settings)
    if not results:
        raise SteleError("No selected environment has a recipe for several devices. See: stele env list")
    return int(any(ladder.first_difference(result.findings) for result in results.values()))


def write_results(chosen: ParityOptions, results: dict[Examined, LadderResult], settings: Settings) -> None:
    """Write the results so far to --json and --write, so that nothing is lost if the command is interrupted."""
    if chosen.json:
        files.write_output_text(chosen.json, schema.document(facts(results, settings)))
    if chosen.write:
        page.fill(chosen.write, parity_page.ladder_tables(results, settings))


def merge(chosen: ParityOptions) -> int:
    """Show and write the results of several files. Returns 1 if a recipe differs, else 0."""
    results: dict[Examined, LadderResult] = {}
    settings: set[Settings] = set()
    for path in chosen.merge:
        try:
            content = schema.of_document(schema.read(path), LadderFile)
            settings.add(content.settings)
            for recipe in content.recipes:
                cell = environment_of(recipe.framework), recipe.task
                result = LadderResult(list(recipe.rungs), recipe.versions, recipe.day)
                results[cell] = newer_result(results.get(cell, result), result)
        except OSError as error:
            why = error.strerror or error  # of a file that is no regular file, or too large
            raise SteleError(f"{path} cannot be read: {why}. Name a file from stele parity --json.") from None
        except ValueError as error:
            raise SteleError(f"{path} was not written by stele parity --json: {error}.") from None
    if len(settings) > 1:
        raise SteleError("The files have different settings. Merge only files with equal settings.")
    for (environment, task), result in results.items():
        print(parity_page.ladder_line(environment.name, task, result.findings))
    write_results(chosen, results, *settings)
    return int(any(ladder.first_difference(result.findings) for result in results.values()))


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


def cells(chosen: ParityOptions, settings: Settings) -> Iterator[Examined]:
    """Yield each selected environment and task, if the environment can run a phase of the task."""
    selected = environments.load_ready(chosen.framework)
    if chosen.modes:
        selected = ready_modes(selected)
    for task in chosen.task or tasks.NAMES:
        yield from (
            (item, task) for item in selected if settings.devices > 1 or examination.phases(item, task, settings)
        )


def ready_modes(selected: Sequence[Environment]) -> list[Environment]:
    """Return the environments with their other modes, each once, without the modes that this machine cannot run."""
    ready = []
    for environment in {environment.name: environment for environment in environments.with_modes(selected)}.values():
        state = environments.state(environment)
        if state.status == "ready":
            ready.append(environment)
        else:
            say(f"stele: {environment.name} is left out: {state.reason}")
    return ready


def facts(results: dict[Examined, LadderResult], settings: Settings) -> LadderFile:
    """Return every rung of every recipe as the content of the JSON file."""
    recipes = [
        RecipeResult(
            framework=environment.name,
            versions=result.versions,
            day=result.day,
            task=task,
            reached=ladder.highest_rung(result.findings),
            rungs=tuple(ladder.named(finding) for finding in result.findings),
        )
        for (environment, task), result in results.items()
    ]
    return LadderFile(settings, ladder.EPSILON[settings.arithmetic], tuple(recipes))


def rebase(chosen: ParityOptions) -> int:
    """Regenerate the golden numbers of the selected tasks, and print the paths. Returns 0."""
    settings = Settings(device="cpu")
    for task in chosen.task or tasks.NAMES:
        for form in (None, *tasks.forms(task)):
            title = f"the oracle computes {task}"
            with progress.waiting(title), worker.launch(environments.ORACLE, settings) as live:
                measure.configure(live, settings)
                phases = examination.phases(environments.ORACLE, task, settings)
                numbers = examination.parity_answers(live, task, form, phases)
            print(golden_numbers.save(task, form, numbers))
    return 0
