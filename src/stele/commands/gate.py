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
from stele.commands import explanation, gate_options, options, screen
from stele.commands.options import say
from stele.environments import Environment, builds, packages, revisions
from stele.environments.description import slug
from stele.environments.packages import Difference
from stele.errors import SteleError
from stele.explain.document import Document
from stele.gate import correctness, model_parity, outcome, record, timing, trial
from stele.gate.record import Record
from stele.gate.trial import Trial
from stele.gate.verdict import Verdict
from stele.measuring import progress
from stele.models import arms, changes, comparison, inspection
from stele.models.comparison import Comparison
from stele.models.spec import Model
from stele.report import build, exports, markdown
from stele.report import gate as pages
from stele.report.sources import Sources

FOLDER = Path(".stele/gates")
EXPLAINED = ("step", "latency", "latency-p99", "throughput")  # metrics that consist of the same operations
EXIT_STATUS = {"PASS": 0, "REGRESSED": 1, "BROKEN": 1, "MISSING": 1, "INCONCLUSIVE": 3}
SEVERITY = (0, 3, 1)  # exit codes, the worst last
BEFORE_ACCURACY = 0.6  # share of the budget
EXIT_CODES = (
    "Exit: 0 pass; 1 regressed, broken, or missing in NEW; 2 usage or environment; 3 inconclusive; "
    "4 internal error; 130 interrupted."
)


def add(commands: Any) -> None:
    summary = "is it safe to upgrade?"
    about = f"{summary} Measures two environments side by side and judges whether NEW is worse than OLD."
    command = commands.add_parser("gate", help=summary, description=about, epilog=EXIT_CODES)
    gate_options.add_pair_options(command, nargs="?")
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
    subject = gate_options.trial_from(arguments)
    gate_options.require_cells(subject)
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
        subject = inspected(subject, subject.model, alone=bool(import_failure))
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


def inspected(subject: Trial, model: Model, *, alone: bool = False) -> Trial:
    """Return the trial with what both arms say about the model; what OLD says, if it is asked ``alone``.

    Raises ModelError if OLD's model cannot be measured.
    """
    training = any(cell.phase == "train" for cell in subject.cells)
    with progress.waiting(f"building the model in {subject.old.name}"):
        result = inspection.inspect(subject.old, model, timeout=subject.timeout)
    say(result.summary)
    if result.remark:
        say(result.remark)
    inspection.check(result, model, training=training)
    known, old = inspection.resolved(model, subject.old, result)
    compared, of_new = Comparison(), None
    if not alone:
        with progress.waiting(f"building the model in {subject.new.name}"):
            compared, of_new = comparison.ask_new(
                subject.old, subject.new, model, result, training=training, timeout=subject.timeout
            )
    new = replace(subject.new, framework=(of_new or result).framework)
    return replace(subject, model=known, old=old, new=new, compared=compared)


def run_trial(subject: Trial, log: Record) -> list[Verdict]:
    """Judge parity, then a share of the timing, then accuracy, then the rest of the timing.

    A task that NEW breaks is not timed; a model of the user whose arms cannot be compared is.
    """
    verdicts = list(correctness.missing_verdicts(subject))
    if subject.parity:
        verdicts += correctness.parity_verdicts(subject, log, say)
    elif subject.model is not None:
        verdicts += model_parity.failures(subject, subject.model, say)
    if subject.fail_fast and is_failed(verdicts):
        return verdicts
    accepted = ("PASS",) if subject.model is None else ("PASS", "INCONCLUSIVE")
    broken = {
        verdict.task for verdict in verdicts if verdict.metric == "parity" and verdict.status not in accepted
    }
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
    path = newest_record(names) if arguments.resume == Path() else arguments.resume
    if path is None:
        raise SteleError(
            f"No record of {subject.old.name} and {subject.new.name} in {FOLDER} to resume. "
            "Run without --resume."
        )
    log = record.resume(path)
    trial.check_record(log, subject)
    return log


def newest_record(names: str) -> Path | None:
    """Return the last record of two arms; gates that started in the same second have numbers."""
    first = max(FOLDER.glob(f"{'[0-9]' * 8}-{'[0-9]' * 6}-{glob.escape(names)}.jsonl"), default=None)
    return first and record.newest(first)


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
