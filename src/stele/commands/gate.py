"""``stele gate OLD NEW``: is it safe to upgrade?"""

import argparse
import glob
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from stele import environments, files
from stele.commands import explanation, options, screen
from stele.commands.options import parse_names, say
from stele.environments import Environment, builds, packages, revisions
from stele.environments.description import slug
from stele.environments.packages import Difference
from stele.errors import SteleError
from stele.explain.document import Document
from stele.gate import correctness, outcome, record, thresholds, timing, trial
from stele.gate.metrics import ALL, METRICS, MORE, Metric
from stele.gate.record import Record
from stele.gate.trial import Cell, Trial
from stele.gate.verdict import Verdict
from stele.measuring import processors, progress
from stele.measuring.settings import DEVICES, PRECISIONS, Settings
from stele.models import arms, changes, inspection
from stele.models.spec import Model
from stele.report import build, exports, markdown
from stele.report import gate as pages
from stele.report.sources import Sources
from stele.text import unknown_message
from stele_worker import tasks

FOLDER = Path(".stele/gates")
THRESHOLDS = {
    "tolerance": "growth that is accepted even if it is certain",
    "margin": "growth that has to be ruled out before a metric passes, at least the tolerance",
}
EXPLAINED = ("step", "latency", "latency-p99", "throughput")  # metrics that consist of the same operations
EXIT_STATUS = {"PASS": 0, "REGRESSED": 1, "BROKEN": 1, "MISSING": 1, "INCONCLUSIVE": 3}
SEVERITY = (0, 3, 1)  # exit codes, the worst last
CORRECTNESS = ("parity", "accuracy")
BEFORE_ACCURACY = 0.6  # share of the budget
SCALES = (
    "gate",
    "study",
    "quick",
    "paper",
)  # about fifty steps a launch, the same with a small batch, or all
UNTIMED = ("smoke", "parity")  # have too few steps
DEFAULT = (*CORRECTNESS, *(metric.name for metric in METRICS))
SELECTED = tuple(metric.name for metric in MORE)  # judged only if they are named
EXIT_CODES = (
    "Exit: 0 pass; 1 regressed, broken, or missing in NEW; 2 usage or environment; 3 inconclusive; "
    "4 internal error; 130 interrupted."
)


def add(commands: Any) -> None:
    summary = "is it safe to upgrade?"
    about = f"{summary} Measures two environments side by side and judges whether NEW is worse than OLD."
    command = commands.add_parser("gate", help=summary, description=about, epilog=EXIT_CODES)
    add_pair_options(command, nargs="?")
    options.add_devices(command)
    command.add_argument(
        "--changed",
        metavar="REVISION",
        help="gate the framework pins that differ between a git revision and the working tree",
    )
    command.add_argument(
        "--no-wait",
        action="store_true",
        help="exit if another measurement runs on this machine, instead of waiting for it",
    )
    command.add_argument(
        "--explain",
        action="store_true",
        help="if a time does not pass: measure both arms under their profilers and show the operations that differ",
    )
    command.add_argument(
        "--resume",
        nargs="?",
        type=Path,
        const=Path(),
        metavar="FILE",
        help="continue a record; without FILE, the newest record of OLD and NEW",
    )
    command.set_defaults(command=gate, replaced=())


def add_pair_options(command: argparse.ArgumentParser, *, nargs: str | None = None) -> None:
    """Add what says which pair is compared and how. ``nargs`` is "?" if OLD and NEW may be left out."""
    environment = "a requirement such as keras==3.14.1, an environment, or an interpreter"
    command.add_argument("old", metavar="OLD", nargs=nargs, help=f"what is in use: {environment}")
    command.add_argument("new", metavar="NEW", nargs=nargs, help=f"what is judged: {environment}")
    options.add_cell_options(command)
    options.add_model_options(command)
    command.add_argument(
        "--metric", metavar="ID[,ID...]", help=f"default: {','.join(DEFAULT)}; also {','.join(SELECTED)}"
    )
    options.add_budget(command, "30m")
    options.add_process_options(command)
    for option, meaning in THRESHOLDS.items():
        defaults = ", ".join(f"{metric.name}={getattr(metric, option):.0%}%" for metric in ALL)
        command.add_argument(
            f"--{option}",
            action="append",
            default=[],
            metavar="[METRIC=]N%",
            help=f"{meaning}; METRIC is step if it is left out; default: {defaults}",
        )
    command.add_argument(
        "--fail-fast", action="store_true", help="end at the first certain verdict against NEW"
    )
    command.add_argument("--device", choices=DEVICES, default="cpu", help="default: %(default)s")
    command.add_argument("--precision", choices=PRECISIONS, default="fp32", help="default: %(default)s")
    add_scale(command, "scale of the timed launches")
    command.add_argument(
        "--accuracy-scale",
        default="quick",
        metavar="TIER",
        help="scale of the trainings for accuracy and time-to-target; default: %(default)s",
    )
    command.add_argument(
        "--target",
        type=options.parse_accuracy,
        metavar="ACCURACY",
        help="target of the metric time-to-target, such as 94%%; default: that of the task",
    )
    options.add_trial_options(command)
    command.add_argument("--json", type=Path, metavar="FILE", help="write a report as JSON")
    command.add_argument("--markdown", type=Path, metavar="FILE", help="write a report as Markdown")
    command.add_argument("--junit", type=Path, metavar="FILE", help="write a report as JUnit XML")


def add_scale(command: argparse.ArgumentParser, meaning: str) -> None:
    """Add --scale, which ``require_scale`` checks: a task may have scales of its own."""
    names = f"{', '.join(SCALES)}, or one that the task has, such as depth-64 of stack"
    command.add_argument("--scale", default="gate", help=f"{meaning}: {names}; default: %(default)s")


def gate(arguments: argparse.Namespace) -> int:
    """Print the verdicts. Return the exit code that the epilog describes."""
    if arguments.changed is not None:
        return gate_changed(arguments)
    if arguments.new is None:
        raise SteleError("Name OLD and NEW, or a git revision: stele gate --changed main")
    return gate_pair(arguments)


def gate_changed(arguments: argparse.Namespace) -> int:
    """Gate each change of a framework's pin. Return the exit code of the worst verdict; 0 if no pin changed."""
    if arguments.old is not None:
        raise SteleError("--changed finds OLD and NEW itself. Leave them out.")
    whole_files = arguments.model is not None
    pairs = changes.pairs(arguments.changed, Path.cwd(), whole_files=whole_files, extras=arguments.extras)
    if not pairs:
        print(f"No pin of a framework differs between {arguments.changed} and the working tree.")
        return 0
    codes = []
    for pair in pairs:
        print(f"changed: {pair.summary}", flush=True)
        typed = {"old": pair.old, "new": pair.new, "replaced": pair.replaced}
        reports = report_files(arguments, pair.name if len(pairs) > 1 else None)
        codes.append(gate_pair(argparse.Namespace(**{**vars(arguments), **typed, **reports})))
    return max(codes, key=SEVERITY.index)


def report_files(arguments: argparse.Namespace, name: str | None) -> dict[str, Path | None]:
    """Return the files of the reports; of several gates each has the name of its package: ``gate-keras.json``."""
    paths = {kind: getattr(arguments, kind) for kind in ("json", "markdown", "junit")}
    return {
        kind: path if path is None or name is None else path.with_stem(f"{path.stem}-{slug(name)}")
        for kind, path in paths.items()
    }


def gate_pair(arguments: argparse.Namespace) -> int:
    subject = trial_from(arguments)
    require_cells(subject)
    check_writable(arguments)
    subject, import_failure = prepare(subject, arguments.replaced)
    log = open_record(arguments, subject)
    say(f"record: {log.path}")
    verdicts = import_failure or run_trial(subject, log)
    log.add({outcome.KEY: outcome.entry(subject, verdicts)})
    screen.print_lines(pages.terminal_lines(subject, verdicts))
    write(arguments, subject, log, verdicts)
    found = explain(subject, log, verdicts) if arguments.explain else None
    if found is not None:
        write(arguments, subject, log, verdicts, [found])
    return EXIT_STATUS[pages.overall_status(verdicts)]


def prepare(subject: Trial, replaced: Sequence[revisions.Change]) -> tuple[Trial, list[Verdict]]:
    """Build both arms. Return the trial with what they are known for, and BROKEN if NEW does not import."""
    make(subject.old)
    with progress.waiting(f"resolving {subject.new.name}"):
        subject = replace(subject, new=builds.resolved_like(subject.new, subject.old))
    import_failure = make_new(subject.new)
    if subject.model is not None:
        subject = inspected(subject, subject.model)
    else:
        options.announce_inputs(cell.task for cell in subject.cells)
    return with_packages(subject, {change.package for change in replaced}), import_failure


def explain(subject: Trial, log: Record, verdicts: Sequence[Verdict]) -> Document | None:
    """Explain the cells whose time did not pass, write the explanation beside the record, and return it.

    Never fails the gate: None if there is nothing to explain, or if it cannot be explained.
    """
    judged = {(one.task, one.phase) for one in verdicts if one.metric in EXPLAINED and one.status != "PASS"}
    cells = [cell for cell in subject.common_cells() if tuple(cell) in judged]
    if not cells:
        return None
    path = log.path.with_suffix(".explanation.json")
    try:
        found = explanation.explain(subject, cells)
        explanation.write(path, found)
    except SteleError as error:
        say(f"stele: not explained: {error}")
        return None
    say(f"explanation: {path}")
    return found.document


def with_packages(subject: Trial, replaced: set[str]) -> Trial:
    """Return the trial with the packages that OLD and NEW name or ``--changed`` found, and others that differ."""
    old, new = packages.of_environment(subject.old), packages.of_environment(subject.new)
    if not old or not new:  # unknown
        return subject
    named = arms.packages_in(subject.old.name, subject.new.name) | replaced
    present = sorted(name for name in named if name in old or name in new)
    versions = (Difference(name, old.get(name), new.get(name)) for name in present)
    return replace(subject, named=tuple(versions), differences=tuple(packages.differences(old, new, named)))


def inspected(subject: Trial, model: Model) -> Trial:
    """Return the trial with what OLD says about the model. Raises ModelError if it cannot be measured."""
    with progress.waiting(f"building the model in {subject.old.name}"):
        result = inspection.inspect(subject.old, model, timeout=subject.timeout)
    say(result.summary)
    inspection.check(result, model, training=any(cell.phase == "train" for cell in subject.cells))
    known, old = inspection.resolved(model, subject.old, result)
    return replace(subject, model=known, old=old, new=replace(subject.new, framework=result.framework))


def run_trial(subject: Trial, log: Record) -> list[Verdict]:
    """Judge parity, then a share of the timing, then accuracy, then the rest of the timing.

    A task whose parity does not pass is not timed.
    """
    verdicts = list(correctness.missing_verdicts(subject))
    if subject.parity:
        verdicts += correctness.parity_verdicts(subject, log, say)
    if subject.fail_fast and is_failed(verdicts):
        return verdicts
    broken = {verdict.task for verdict in verdicts if verdict.metric == "parity" and verdict.status != "PASS"}
    cells = [cell for cell in subject.common_cells() if cell.task not in broken]
    if subject.accuracy and subject.metrics:
        early = timing.measure_passes(subject, log, cells, say, share=BEFORE_ACCURACY)
        if subject.fail_fast and is_failed(early):
            return [*verdicts, *early]
    if subject.accuracy:
        verdicts += correctness.accuracy_verdicts(subject, log, cells, say)
    return [*verdicts, *(timing.measure_passes(subject, log, cells, say) if subject.metrics else [])]


def is_failed(verdicts: Sequence[Verdict]) -> bool:
    """Return whether one of the verdicts is against NEW."""
    return any(EXIT_STATUS.get(verdict.status) == 1 for verdict in verdicts)


def trial_from(arguments: argparse.Namespace) -> Trial:
    """Return the Trial that the command line describes. Raises SteleError, which quotes what cannot be done."""
    names = parse_names("metric", arguments.metric or ",".join(DEFAULT), (*DEFAULT, *SELECTED))
    model, extras = options.parse_model(arguments), options.parse_extras(arguments)
    old = arms.load(arguments.old, model, extras)
    new = arms.load(arguments.new, model, extras, replaced=arguments.replaced)
    settings = settings_from(arguments)
    phase = training_phase(arguments) if settings.devices > 1 else arguments.phase
    cells = (
        options.parse_cells(arguments.task, phase) if model is None else options.phases_of(model.name, phase)
    )
    if arguments.phase == "infer" and names == ["accuracy"]:
        raise SteleError(
            "--metric accuracy needs training, but --phase infer excludes it. Use --phase train."
        )
    require_scale(arguments.scale, cells)
    require_trainings(arguments, names, cells)
    return Trial(
        old=old,
        new=new,
        model=model,
        typed=() if arguments.changed is None else ("--changed", arguments.changed),
        cells=cells,
        metrics=selected_metrics(arguments, names),
        settings=settings,
        seed=arguments.seed,
        budget=arguments.budget,
        parity="parity" in names,
        accuracy="accuracy" in names,
        scale=arguments.scale,
        training=arguments.accuracy_scale,
        target=arguments.target,
        timeout=arguments.worker_timeout,
        fail_fast=arguments.fail_fast,
        at_once=arguments.at_once,
    )


def require_cells(subject: Trial) -> None:
    """Raise SteleError, with the reason, if neither OLD nor NEW has any of the cells."""
    absent = [subject.absences(cell) for cell in subject.cells]
    if all(None not in reasons for reasons in absent):
        raise SteleError(f"Neither OLD nor NEW can measure {subject.cells[0]}: {absent[0][0]}.")


def settings_from(arguments: argparse.Namespace) -> Settings:
    """Return the settings of all launches. Raises SteleError if they need more processors than there are."""
    names = ("device", "precision", "threads", "malloc", "devices", "scaling")
    settings = Settings(**{name: getattr(arguments, name) for name in names})
    present = processors.count()
    most = max(present - 1, 1)
    if settings.devices == 1 and settings.threads > most:
        raise SteleError(
            f"--threads {settings.threads} leaves no processor of {present} for other processes. "
            f"Use --threads {most} or less."
        )
    settings.check_processors()
    return settings


def training_phase(arguments: argparse.Namespace) -> str:
    """Return the only phase that can use several devices. Raises SteleError if something else was selected."""
    if arguments.model is not None:
        raise SteleError("A model of the user is measured on one device. Leave out --devices or --model.")
    if "time-to-target" in (arguments.metric or ""):
        raise SteleError("Time to target is measured on one device. Leave out --devices or the metric.")
    if arguments.phase == "infer":
        raise SteleError("Inference uses one device. Leave out --devices or --phase infer.")
    return "train"


def require_scale(scale: str, cells: Sequence[Cell]) -> None:
    """Raise SteleError if a task does not have the scale of the timed launches."""
    for task in {cell.task for cell in cells}:
        scales = tasks.load(task).SCALES if task in tasks.NAMES else SCALES
        known = [name for name in scales if name not in UNTIMED]
        if scale not in known:
            raise SteleError(unknown_message(f"scale of {task}", scale, known))


def require_trainings(arguments: argparse.Namespace, names: list[str], cells: Sequence[Cell]) -> None:
    """Raise SteleError if a task lacks the scale of the trainings, or a target that is judged."""
    scale, timed = arguments.accuracy_scale, "time-to-target" in names
    if arguments.model is not None and timed:
        raise SteleError("--metric time-to-target needs a built-in task. Leave it out, or leave out --model.")
    for task in {cell.task for cell in cells if cell.phase == "train"}:
        scales = tasks.load(task).SCALES if task in tasks.NAMES else tasks.SCALES
        if scale not in scales:
            raise SteleError(unknown_message(f"tier of {task}", scale, scales))
        if timed and not tasks.make(task, scale).data:
            raise SteleError(f"--metric time-to-target needs a data set, but '{task}' generates its samples.")
        if timed and (arguments.target or tasks.target(task, scale)) is None:
            raise SteleError(f"Task '{task}' has no target at scale {scale}. Add --target 60%.")
        if timed:
            options.require_real_data(task, scale)


def selected_metrics(arguments: argparse.Namespace, names: list[str]) -> tuple[Metric, ...]:
    """Return the metrics to judge, with their thresholds. A CPU has no device memory."""
    if arguments.device == "cpu":
        if arguments.metric and "device-memory" in names:
            raise SteleError(
                "--metric device-memory needs a device with a memory of its own. Add --device cuda."
            )
        names = [name for name in names if name != "device-memory"]
    if arguments.phase == "train" and set(names) <= {
        metric.name for metric in ALL if "train" not in metric.phases
    }:
        raise SteleError(
            f"--metric {arguments.metric} needs inference, but --phase train excludes it. Use --phase infer."
        )
    tolerances = thresholds.parse("--tolerance", arguments.tolerance)
    margins = thresholds.parse("--margin", arguments.margin)
    return tuple(metric for metric in thresholds.apply(tolerances, margins) if metric.name in names)


def make(environment: Environment) -> None:
    """Build an environment if it is missing. Raises SteleError if it cannot be built."""
    state = environments.state(environment)
    if state.status != "ready" and environment.lock is not None:
        say(f"building {environment.name} ...")
        with progress.waiting(f"building {environment.name}"):
            builds.make(environment)
    elif state.status != "ready":
        raise SteleError(f"'{environment.name}' is {state.status}: {state.reason}")


def make_new(environment: Environment) -> list[Verdict]:
    """Build NEW. Return BROKEN if it installs but does not import, else nothing."""
    try:
        make(environment)
    except builds.ImportFailed as error:
        return [Verdict("all", "all", "import", "BROKEN", f"NEW: {error}")]
    return []


def check_writable(arguments: argparse.Namespace) -> None:
    """Raise SteleError before the measurement if a report cannot be written after it."""
    for path in (arguments.json, arguments.markdown, arguments.junit):
        if path is not None and not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
            raise SteleError(
                f"{path} cannot be written: {path.parent} is not a folder with write permission."
            )


def open_record(arguments: argparse.Namespace, subject: Trial) -> Record:
    """Return a new record, or with --resume the existing one."""
    names = f"{subject.old.slug}-{subject.new.slug}"
    if arguments.resume is None:
        new = FOLDER / f"{datetime.now():%Y%m%d-%H%M%S}-{names}.jsonl"
        return record.create(new, trial.header(subject))
    path = arguments.resume
    if path == Path():
        path = max(FOLDER.glob(f"{'[0-9]' * 8}-{'[0-9]' * 6}-{glob.escape(names)}.jsonl"), default=None)
        if path is None:
            raise SteleError(
                f"No record of {subject.old.name} and {subject.new.name} in {FOLDER} to resume. "
                "Run without --resume."
            )
    log = record.resume(path)
    trial.check_record(log, subject)
    return log


def write(
    arguments: argparse.Namespace,
    subject: Trial,
    log: Record,
    verdicts: list[Verdict],
    explanations: Sequence[Document] = (),
) -> None:
    said = outcome.of_record(log, verdicts, outcome.entry(subject, verdicts))
    if arguments.json:
        files.write_text(arguments.json, pages.to_json(subject, log, verdicts))
    if arguments.markdown:
        read = Sources(gates=[said], explanations=list(explanations))
        files.write_text(arguments.markdown, markdown.render(build.report(read)))
    if arguments.junit:
        files.write_text(arguments.junit, exports.to_junit([said]))
