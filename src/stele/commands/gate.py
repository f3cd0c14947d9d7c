"""``stele gate OLD NEW``: is it safe to upgrade?"""

import argparse
import contextlib
import glob
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from stele import environments, files
from stele.commands import explanation, gate_options, options, outputs, screen
from stele.commands.options import say
from stele.environments import Environment, builds, installer, packages, relevance
from stele.environments.description import slug
from stele.environments.packages import Difference
from stele.errors import SteleError
from stele.explain.document import Document
from stele.gate import correctness, model_parity, outcome, record, setup, timing, trial
from stele.gate.outcome import Together
from stele.gate.record import Record
from stele.gate.trial import Trial
from stele.gate.verdict import Verdict
from stele.measuring import progress
from stele.measuring.content import Noticed, Reads
from stele.measuring.worker import WorkerError
from stele.models import arms, changes, comparison, inspection, spec
from stele.models.comparison import Comparison
from stele.models.spec import Model
from stele.report import build, exports, markdown
from stele.report import gate as pages
from stele.report.sources import Sources
from stele.text import printable, without_passwords

FOLDER = Path(".stele/gates")
EXPLAINED = ("step", "latency", "latency-p99", "throughput")  # metrics that consist of the same operations
EXIT_STATUS = {"PASS": 0, "REGRESSED": 1, "BROKEN": 1, "MISSING": 1, "INCONCLUSIVE": 3}
SEVERITY = (0, 3, 2, 1)  # exit codes, the worst last
SHOWN = 8  # names of compared files
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
        help="gate the frameworks that differ between a git revision and the working tree, in all files of packages",
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
    command.set_defaults(command=gate, check=check, replaced=())


def check(arguments: argparse.Namespace) -> None:
    """Raise SteleError for what cannot be done, as far as the command line says it. Nothing is built or measured."""
    if arguments.changed is not None:
        if arguments.old is not None:
            raise SteleError("--changed finds OLD and NEW itself. Leave them out.")
        gate_options.check(arguments, options.parse_model(arguments))
        options.parse_extras(arguments)
    elif arguments.new is None:
        raise SteleError("Name OLD and NEW, or a git revision: stele gate --changed main")
    else:
        gate_options.require_cells(gate_options.trial_from(arguments))


def gate(arguments: argparse.Namespace) -> int:
    """Print the verdicts. Return the exit code that the epilog describes."""
    try:
        return gate_pair(arguments) if arguments.changed is None else gate_changed(arguments)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(*(stop.args or ("",))) from None  # nothing is saved if it says nothing


def gate_changed(arguments: argparse.Namespace) -> int:
    """Gate each changed framework. Return the exit code of the worst gate; 0 if files were compared and none changed.

    All gates and all changes without one are one outcome, which is the last line and in each report. Raises SteleError
    if nothing can be compared, or if something changed and nothing can be gated.
    """
    revision, model = arguments.changed, options.parse_model(arguments)
    if model is not None:
        spec.require_attribute(model)
    whole_files = model is not None
    found = changes.find(revision, Path.cwd(), options.parse_extras(arguments), whole_files=whole_files)
    show(f"compared: {shortened(found.files)}")
    for line in found.ungated:
        show(f"not gated: {line}")
    for line in found.notes:
        show(line)
    if not found.pairs and found.ungated and found.unread:
        raise SteleError(
            "A file of packages changed and cannot be read, so it is unknown whether a framework changed. Correct the "
            "line that is named above, or name OLD and NEW: stele gate OLD NEW"
        )
    if not found.pairs and found.ungated:
        raise SteleError(
            f"A framework changed between {revision} and the working tree, and nothing can be gated. Name OLD and NEW: "
            "stele gate OLD NEW"
        )
    if not found.pairs:
        show(f"No version of a framework differs between {revision} and the working tree in these files.")
        return 0
    gates = list(change_gates(arguments, found))
    codes: list[int] = []
    try:
        for known, pair in gates:
            codes.append(gate_change(known, pair, several=len(gates) > 1))
    finally:
        whole = together(found, codes)
        for known, _ in gates:
            for result in known.results:
                write(known, *result, whole=whole)
    if whole.lines:
        show(f"{'; '.join(line.removesuffix('.') for line in whole.lines)}. {whole.sentence}")
    return whole.code


def change_gates(
    arguments: argparse.Namespace, found: changes.Changed
) -> Iterator[tuple[argparse.Namespace, changes.Pair]]:
    """Yield the arguments of each gate. Raises SteleError if a report would replace a file that was compared."""
    several = len(found.pairs) > 1
    for pair, name in zip(found.pairs, unique([pair.name for pair in found.pairs]), strict=True):
        reports = report_files(arguments, name if several else None)
        typed = {"old": pair.old, "new": pair.new, "contents": pair.contents, "replaced": pair.packages}
        known = argparse.Namespace(**{**vars(arguments), **typed, **reports})
        known.results, known.alone = [], found._replace(pairs=[pair])
        outputs.check(known)
        outputs.refuse(known, found.paths)
        yield known, pair


def unique(names: Sequence[str]) -> list[str]:
    """Return names of files, with a number where two would be equal: ``jax``, ``jax-2``."""
    found: list[str] = []
    for name in map(slug, names):
        taken = {one.lower() for one in found}
        numbered = (f"{name}-{number}" for number in itertools.count(2))
        found.append(next(one for one in itertools.chain([name], numbered) if one.lower() not in taken))
    return found


def together(found: changes.Changed, codes: Sequence[int]) -> Together:
    """Return the outcome of all gates of a command; the last ones may not have ended."""
    gates = [f"{pair.summary}: exit code {code}" for pair, code in zip(found.pairs, codes, strict=False)]
    gates += [f"{pair.summary}: its gate did not end" for pair in found.pairs[len(codes) :]]
    lines = [*(gates if len(gates) > 1 else []), *(f"not gated: {line}" for line in found.ungated)]
    blocked = found.blocked or len(codes) < len(found.pairs)
    return Together(max([*codes, 2 if blocked else 0], key=SEVERITY.index), lines)


def shortened(names: Sequence[str]) -> str:
    """Return names in one line: of many, their number and the first."""
    if len(names) <= SHOWN:
        return ", ".join(names)
    return f"{len(names)} files: {', '.join(names[:SHOWN])}, ..."


def show(line: str) -> None:
    print(printable(without_passwords(line), keep=""), flush=True)


def gate_change(known: argparse.Namespace, pair: changes.Pair, *, several: bool) -> int:
    """Gate one change. Return its exit code: of several gates, one that is impossible does not prevent the others.

    Without a change of a framework, a file that selects the same packages as before passes.
    """
    show(f"changed: {pair.summary}")
    try:
        return gate_pair(known)
    except SteleError as error:
        if isinstance(error, packages.NothingUpgradedError) and not pair.is_of_framework:
            show(f"not measured: {pair.old} and the working tree install the same packages.")
            return 0
        if not several:
            raise
        say(f"stele: {printable(without_passwords(str(error)))}")
        return 2


def report_files(arguments: argparse.Namespace, name: str | None) -> dict[str, Path | None]:
    """Return the files of the reports; of several gates each has a name of its own: ``gate-keras.json``.

    What is no regular file, such as /dev/stdout, receives the reports of all.
    """
    paths = {kind: getattr(arguments, kind) for kind in ("json", "markdown", "junit")}
    return {
        kind: path.with_stem(f"{path.stem}-{name}")
        if path is not None and name is not None and files.is_replaceable(path)
        else path
        for kind, path in paths.items()
    }


def gate_pair(arguments: argparse.Namespace) -> int:
    subject = gate_options.trial_from(arguments)
    gate_options.require_cells(subject)
    subject, import_failure = prepare(subject, arguments.replaced, fresh=arguments.resume is None)
    require_verdicts(subject)
    require_reports_apart(arguments, subject)
    with contextlib.closing(open_record(arguments, subject)) as log:
        say(f"record: {log.path}")
        if not import_failure:
            say_conditions(subject)
        try:
            verdicts = import_failure or run_trial(subject, log)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(*pages.saved(subject, log)) from None
        code = EXIT_STATUS[pages.overall_status(verdicts)]
        alone = None if arguments.changed is None else together(arguments.alone, [code])
        log.add({outcome.KEY: outcome.entry(subject, verdicts, alone)})
    screen.print_lines(pages.terminal_lines(subject, verdicts, log))
    report(arguments, subject, log, verdicts)
    found = explain(subject, log, verdicts) if arguments.explain else None
    if found is not None:
        report(arguments, subject, log, verdicts, [found])
    return code


def report(
    arguments: argparse.Namespace,
    subject: Trial,
    log: Record,
    verdicts: list[Verdict],
    explanations: Sequence[Document] = (),
) -> None:
    """Write the reports; of ``--changed``, keep what they show until all gates ended."""
    if arguments.changed is None:
        write(arguments, subject, log, verdicts, explanations)
    else:
        arguments.results[:] = [(subject, log, verdicts, explanations)]


def require_verdicts(subject: Trial) -> None:
    """Raise SteleError if only the accuracy is judged, and no cell has one."""
    judged = subject.parity or subject.metrics or not subject.accuracy
    if not judged and not any(correctness.has_accuracy(subject, cell) for cell in subject.cells):
        remedy = (
            "Name another task"
            if subject.model is None
            else "Write tasks/TASK.py with labels (docs/your-recipe.md)"
        )
        raise SteleError(
            f"--metric accuracy: {subject.cells[0].task} has no labels, so nothing can be judged. {remedy}, or judge "
            "another metric: --metric parity,step"
        )


def require_reports_apart(arguments: argparse.Namespace, subject: Trial) -> None:
    """Raise SteleError if an output would replace what the model reads, or a part of an arm."""
    both = (subject.old, subject.new)
    links = (path for arm in both for path in packages.links_of(arm))
    read = itertools.chain(trial.files_of(subject), links)
    outputs.refuse(arguments, read, [folder for arm in both for folder in packages.folders_of(arm)])


def say_conditions(subject: Trial) -> None:
    """Start both arms and say what they run on. Raises SteleError if an environment lacks a package.

    Other failures are those of a release or of the model's file: the launches judge them.
    """
    with contextlib.suppress(WorkerError):
        say(setup.line(subject, *setup.probe(subject)))


def prepare(subject: Trial, replaced: Iterable[str], *, fresh: bool = True) -> tuple[Trial, list[Verdict]]:
    """Build both arms. Return the trial with what they are known for, and BROKEN if NEW does not import.

    ``fresh`` is that of ``make``. Raises SteleError if NEW has the packages of OLD, but is not stated in its words.
    """
    for message in dict.fromkeys(line for arm in (subject.old, subject.new) for line in notes_about(arm)):
        say(printable(without_passwords(message), keep=""))
    make(subject.old, fresh=fresh)
    subject = replace(subject, new=builds.resolved_like(subject.new, subject.old))
    import_failure = make_new(subject.new, subject.old, fresh=fresh and subject.new != subject.old)
    packages.require_upgrade(subject.old, subject.new)
    if subject.model is not None:
        subject = inspected(subject, subject.model, alone=bool(import_failure))
    else:
        options.announce_inputs(cell.task for cell in subject.cells)
    return with_packages(subject, set(replaced)), import_failure


def notes_about(environment: Environment) -> list[str]:
    """Return the lines about what the user's file has: what is left out, and which index is used."""
    options = ", ".join(environment.options)
    return [*environment.messages, *([f"options of the index: {options}"] if options else [])]


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
        files.write_text(path, explanation.to_json(found))
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
    differing = packages.differences(old, new, named)
    if differing:
        frameworks = {name for name in (*old, *new) if changes.FRAMEWORKS.fullmatch(name)}
        needed = relevance.needed_by(named or frameworks, subject.new)
        differing = relevance.by_relevance(differing, frameworks, needed)
    return replace(subject, named=tuple(versions), differences=tuple(differing))


def inspected(subject: Trial, model: Model, *, alone: bool = False) -> Trial:
    """Return the trial with what both arms say about the model; what OLD says, if it is asked ``alone``.

    Raises ModelError if OLD's model cannot be measured.
    """
    training = any(cell.phase == "train" for cell in subject.cells)
    with progress.waiting(f"building the model in {subject.old.name}"):
        result = inspection.inspect(subject.old, model, timeout=subject.timeout)
    say(result.describe(training=training))
    if result.remark:
        say(result.remark)
    inspection.check(result, model, training=training)
    known, old = inspection.resolved(model, subject.old, result)
    compared, of_new, noticed = Comparison(), None, Noticed()
    noticed.admit(result.reads.noticed)
    if not alone:
        with progress.waiting(f"building the model in {subject.new.name}"):
            compared, of_new = comparison.ask_new(
                subject.old, subject.new, model, result, training=training, timeout=subject.timeout
            )
    if of_new is not None:
        files = (*of_new.reads.files, *noticed.admit(of_new.reads.noticed))
        known = replace(known, reads=known.reads | Reads(files, variables=of_new.reads.variables))
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


def make(environment: Environment, *, fresh: bool = False) -> None:
    """Build an environment if it is missing. With ``fresh``, first resolve ranges again, as they are today.

    Raises SteleError if it cannot be built.
    """
    if fresh and builds.is_dated(environment):
        resolve_again(environment)
    state = environments.state(environment)
    if state.status != "ready" and environment.lock is not None:
        say(f"building {environment.name} ...")
        with progress.waiting(f"building {environment.name}"):
            builds.make(environment)
    elif state.status != "ready":
        raise SteleError(f"'{environment.name}' is {state.status}: {state.reason}")


def resolve_again(environment: Environment) -> None:
    """Resolve typed requirements as they are today; without a network, say when that was done."""
    lock = environment.lock
    if installer.is_offline() and lock is not None and lock.exists():
        when = datetime.fromtimestamp(lock.stat().st_mtime)
        say(f"{environment.name}: UV_OFFLINE is set, so the packages are those of {when:%Y-%m-%d %H:%M}.")
        return
    with progress.waiting(f"resolving {environment.name}"):
        builds.resolve(environment, builds.require_interpreter(environment), fresh=True)


def make_new(new: Environment, old: Environment, *, fresh: bool = False) -> list[Verdict]:
    """Build NEW. Return BROKEN if it installs, its import fails twice, and that of OLD works now; else nothing.

    Raises SteleError if the import of OLD fails, too: what both have in common is the cause.
    """
    try:
        make(new, fresh=fresh)
        return []
    except builds.ImportFailed as error:
        problem = builds.import_error_now(old)
        if problem is not None:
            raise SteleError(
                f"The import fails in OLD and in NEW, so no release is to blame. Check your environment variables and "
                f"the libraries of this machine.\nOLD, '{old.name}':\n    {problem}\nNEW: {error}"
            ) from None
    try:
        make(new)
    except builds.ImportFailed as error:
        return [Verdict("all", "all", "import", "BROKEN", f"NEW: {error}")]
    return []


def open_record(arguments: argparse.Namespace, subject: Trial) -> Record:
    """Return a new record, or with --resume the existing one."""
    names = f"{subject.old.slug}-{subject.new.slug}"
    if arguments.resume is None:
        new = FOLDER / f"{datetime.now():%Y%m%d-%H%M%S}-{names}.jsonl"
        return trial.watch(record.create(new, trial.header(subject)), subject)
    newest = arguments.resume == Path()
    path = newest_record(names) if newest else arguments.resume
    if path is None:
        raise SteleError(
            f"No record of {subject.old.name} and {subject.new.name} in {FOLDER} to resume. "
            "Run without --resume."
        )
    outputs.refuse(arguments, [path])
    log = record.resume(path)
    try:
        trial.check_record(log, subject)
    except SteleError as error:
        older = [one for one in records(names) if one.name < path.name]
        if not (newest and older):
            raise
        raise SteleError(
            f"{error} This is the newest record of OLD and NEW; an older one may fit: --resume {max(older)}"
        ) from None
    return trial.watch(log, subject)


def newest_record(names: str) -> Path | None:
    """Return the last record of two arms; gates that started in the same second have numbers."""
    first = max(records(names), default=None)
    return first and record.newest(first)


def records(names: str) -> list[Path]:
    """Return the records of two arms, without those that have numbers."""
    return list(FOLDER.glob(f"{'[0-9]' * 8}-{'[0-9]' * 6}-{glob.escape(names)}.jsonl"))


def write(
    arguments: argparse.Namespace,
    subject: Trial,
    log: Record,
    verdicts: list[Verdict],
    explanations: Sequence[Document] = (),
    *,
    whole: Together | None = None,
) -> None:
    """Write the reports of a gate. ``whole`` is the outcome of a command with more than this gate."""
    said = outcome.of_record(log, verdicts, outcome.entry(subject, verdicts, whole))
    read = log.header.get("content", {}).get("files", {})  # launches may have read more than the inspection
    outputs.refuse(arguments, (trial.folder_of(subject) / name for name in read))
    if arguments.json:
        files.write_output_text(arguments.json, pages.to_json(subject, log, verdicts, whole))
    if arguments.markdown:
        shown = Sources(gates=[said], explanations=list(explanations))
        files.write_output_text(arguments.markdown, markdown.render(build.report(shown)))
    if arguments.junit:
        files.write_output_text(arguments.junit, exports.to_junit([said]))
