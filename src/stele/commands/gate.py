"""``stele gate OLD NEW``: is NEW worse than OLD?"""

import argparse
import contextlib
import dataclasses
import functools
import glob
import itertools
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from stele import environments, files
from stele.commands import options, outputs, screen, usage
from stele.commands.options import CellOptions, ModelOptions, ProcessOptions, ProgramOptions, flat, parse_names
from stele.environments import Environment, arms, builds, changes, packages, revisions
from stele.environments.lockfiles import Locked
from stele.errors import SteleError
from stele.explain import explanation
from stele.explain.document import ExplanationFile
from stele.gate import behaviour, judgement, outcome, preparation
from stele.gate import record as records
from stele.gate.entries import Together, Verdict
from stele.gate.gate import Gate
from stele.gate.metrics import ALL, LOADER, METRICS, MORE, NAMES, Metric, of_subject, parse_thresholds, with_thresholds
from stele.gate.record import Record
from stele.gate.run import run
from stele.gate.trial import PARALLEL, TIMEOUT, Trial, check_record, header, watch
from stele.measuring import processors
from stele.measuring.progress import say
from stele.measuring.run import PHASES
from stele.measuring.settings import DEVICES, SCALINGS, Settings
from stele.report import build, exports, markdown
from stele.report import gate as pages
from stele.report.sources import Sources
from stele.subjects import Cell, Program, Subject
from stele.text import counted, first_of, printable, slug, unknown_message, without_passwords
from stele_suite import tasks

FOLDER = Path(".stele/gates")
# metrics that consist of the same operations
EXPLAINED = ("step", "latency", "latency-p99", "throughput", "round", "call")
SHOWN = 8  # names of compared files
EXIT_CODES = (
    "Exit: 0 pass; 1 regressed, broken, or missing in NEW; 2 usage or environment; 3 inconclusive; "
    "4 internal error; 130 interrupted."
)


THRESHOLDS = {
    "tolerance": "accept this much growth",
    "margin": "PASS only if growth is below this; at least the tolerance",
}
CORRECTNESS = ("parity", "accuracy")
# about fifty steps a launch, the same with a small batch, or all
SCALES = ("gate", "study", "quick", "paper")
UNTIMED = ("smoke", "parity")  # have too few steps
OF_ONE_DEVICE = ("time-to-target", "overhead", "loader", "fed-step")  # metrics that several devices do not have
# options that a command which resumes may change: they do not decide what is measured, or have no meaning for it
FREE = (
    "old",
    "new",
    "typed",
    "budget",
    "fail_fast",
    "parallel",
    "worker_timeout",
    "json",
    "markdown",
    "junit",
    "explain",
    "resume",
    "allow_vcs",
    "changed",
)
DEFAULT = (*CORRECTNESS, *(metric.name for metric in METRICS))
SELECTED = tuple(metric.name for metric in MORE)  # judged only if they are named


@dataclass(frozen=True, kw_only=True)
class PairOptions:
    """OLD and NEW, which of their cells are compared, and how they are launched."""

    old: str = ""
    new: str = ""
    cells: CellOptions = field(default_factory=CellOptions)
    model: ModelOptions = field(default_factory=ModelOptions)
    program: ProgramOptions = field(default_factory=ProgramOptions)
    process: ProcessOptions = field(default_factory=ProcessOptions)
    device: str = "cpu"
    precision: str | None = None
    devices: int = 1
    scaling: str = SCALINGS[0]
    scale: str = "gate"
    parallel: int = PARALLEL
    seed: int = 0
    worker_timeout: float = TIMEOUT

    def settings_of(self, subject: Subject) -> Settings:
        """Return the settings of all launches. Their defaults depend on the subject: see ``threads_of``."""
        return Settings(
            device=self.device,
            malloc=self.process.malloc,
            devices=self.devices,
            scaling=self.scaling,
            threads=options.threads_of(self.process.threads, tuned=subject.tuned),
            precision=options.precision_of(self.precision, tuned=subject.tuned),
        )

    def extras(self, *, changed: bool = False) -> arms.Extras:
        """Return what both arms get; with ``changed``, they are lock files."""
        return self.model.of_arms((self.old, self.new), changed=changed)

    @property
    def subject(self) -> Subject:
        """What is judged. Raises SteleError if there is no such thing."""
        return options.subject_of(self.cells, self.model, self.program)

    def selected_cells(self, subject: Subject) -> tuple[Cell, ...]:
        """Return the cells of the subject. Raises SteleError for an unknown scale."""
        cells = subject.cells(self.cells.phase)
        require_scale(self.scale, subject, cells)
        return cells


@dataclass(frozen=True, kw_only=True)
class JudgementOptions:
    """What is judged, and how strictly."""

    metric: str = ""  # empty: DEFAULT
    tolerance: tuple[str, ...] = ()
    margin: tuple[str, ...] = ()
    accuracy_scale: str = "quick"
    target: float | None = None
    fail_fast: bool = False
    budget: float = 1800.0  # seconds

    def names(self, subject: Subject) -> list[str]:
        """Return the metrics that are judged. Raises SteleError, with the nearest name, for an unknown one."""
        default, more = (DEFAULT, SELECTED) if subject.metrics is None else (subject.metrics, ())
        typed = self.metric or ",".join(default)
        return parse_names("metric", typed, (*default, *more, *(typed.split(",") if subject.reports else ())))

    def reported(self, subject: Subject) -> tuple[str, ...]:
        """Return the metrics that a command reports and that alone are judged of these; empty for all."""
        usual = subject.metrics or ()
        return tuple(name for name in self.names(subject) if name not in usual) if subject.reports else ()


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """The files that are written."""

    json: Path | None = None
    markdown: Path | None = None
    junit: Path | None = None

    def named(self, name: str | None) -> "ReportOptions":
        """Return the files of one of several gates: each has a name of its own, ``gate-keras.json``.

        What is no regular file, such as /dev/stdout, receives the reports of all.
        """
        return ReportOptions(
            **{
                kind: path.with_stem(f"{path.stem}-{name}")
                if path is not None and name is not None and files.is_replaceable(path)
                else path
                for kind, path in dataclasses.asdict(self).items()
            }
        )


@dataclass(frozen=True, kw_only=True)
class GateOptions:
    """The options of ``stele gate``. ``typed`` are the words of the command, after "stele"."""

    pair: PairOptions = field(default_factory=PairOptions)
    judged: JudgementOptions = field(default_factory=JudgementOptions)
    reports: ReportOptions = field(default_factory=ReportOptions)
    changed: str | None = None
    explain: bool = False
    resume: Path | None = None
    typed: tuple[str, ...] = ()


class Finished(NamedTuple):
    """A gate that ended, and what its reports show."""

    trial: Trial
    record: Record
    verdicts: list[Verdict]
    explanations: Sequence[ExplanationFile] = ()


Reporter = Callable[[Finished], object]


def add(commands: Any) -> None:
    summary = "is NEW worse than OLD?"
    about = "Measures two environments side by side and judges whether NEW is worse than OLD."
    command = commands.add_parser("gate", help=summary, description=about, epilog=EXIT_CODES)
    add_pair_options(command, nargs="?")
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
        help="if a time does not pass, profile OLD and NEW and show the operations that differ",
    )
    command.add_argument(
        "--resume",
        nargs="?",
        type=Path,
        const=Path(),
        metavar="FILE",
        help="continue a record; without FILE, the newest record of OLD and NEW",
    )
    options.declare(command, gate, GateOptions, check=check)


def add_pair_options(command: argparse.ArgumentParser, *, nargs: str | None = None) -> None:
    """Add what says which pair is compared and how. ``nargs`` is "?" if OLD and NEW may be left out."""
    environment = "jax==0.10.1, requirements.txt@main, dist/x.whl, .venv, an environment, or an interpreter"
    command.add_argument("old", metavar="OLD", nargs=nargs, help=f"what you use now: {environment}")
    command.add_argument("new", metavar="NEW", nargs=nargs, help=f"what you want to use: {environment}")
    options.add_cell_options(command)
    options.add_model_options(command)
    options.add_program_options(command)
    command.add_argument(
        "--metric", metavar="ID[,ID...]", help=f"default: {','.join(DEFAULT)}; also {','.join(SELECTED)}"
    )
    options.add_budget(command, JudgementOptions.budget)
    options.add_process_options(command)
    for option, meaning in THRESHOLDS.items():
        defaults = ", ".join(f"{metric.name}={getattr(metric, option):.0%}%" for metric in ALL)
        command.add_argument(
            f"--{option}",
            action="append",
            metavar="[METRIC=]N%",
            help=f"{meaning}; METRIC is step if it is left out; default: {defaults}",
        )
    command.add_argument("--fail-fast", action="store_true", help="end at the first verdict against NEW")
    command.add_argument("--device", choices=DEVICES, help="default: %(default)s")
    options.add_precision(command)
    add_scale(command, "scale of the timed launches")
    command.add_argument(
        "--accuracy-scale",
        metavar="SCALE",
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
    command.add_argument("--scale", help=f"{meaning}: {names}; default: %(default)s")


def check(chosen: GateOptions) -> None:
    """Raise SteleError for what cannot be done, as far as the command line says it. Nothing is built or measured."""
    if chosen.changed is not None:
        if chosen.pair.old:
            raise SteleError("--changed finds OLD and NEW itself. Leave them out.")
        check_judged(chosen.pair, chosen.judged, chosen.pair.subject)
        chosen.pair.extras(changed=True)
        revisions.commit_of(Path.cwd(), chosen.changed)
    elif not chosen.pair.new:
        raise SteleError("Name OLD and NEW, or a git revision: stele gate --changed main")
    else:
        trial = trial_from(chosen.pair, chosen.judged)
        require_cells(trial)
        if chosen.resume is not None:
            record_to_resume(chosen.resume, trial)
        for arm in (trial.old, trial.new):
            require_buildable(arm)


def require_buildable(arm: Environment) -> None:
    """Raise SteleError if an environment is neither ready, nor can Stele build it."""
    state = environments.state(arm)
    if state.status != "ready" and arm.lock is None:
        raise SteleError(f"'{arm.name}' is {state.status}: {state.reason}")
    if state.status == "missing" and arm.python is not None:
        builds.require_interpreter(arm)


def record_to_resume(named: Path, trial: Trial) -> Path:
    """Return the record that --resume names; without a name, the newest one of both arms. Raises SteleError."""
    if named != Path():
        if not files.is_file(named):
            raise SteleError(f"--resume {named}: there is no such file. Name a record in {FOLDER}.")
        return named
    newest = newest_record(names_of(trial))
    if newest is None:
        raise SteleError(
            f"No record of {trial.old.name} and {trial.new.name} in {FOLDER} to resume. Run without --resume."
        )
    return newest


def gate(chosen: GateOptions) -> int:
    """Print the verdicts. Return the exit code that the epilog describes."""
    try:
        if chosen.changed is not None:
            return gate_changed(chosen, chosen.changed)
        return gate_pair(chosen, lambda finished: write(chosen, finished))
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(*(stop.args or ("",))) from None  # nothing is saved if it says nothing


def gate_changed(chosen: GateOptions, revision: str) -> int:
    """Gate each changed framework. Return the exit code of the worst gate; 0 if files were compared and none changed.

    All gates and all changes without one are one outcome, which is the last line and in each report. Raises SteleError
    if nothing can be compared, or if something changed and nothing can be gated.
    """
    subject, extras = chosen.pair.subject, chosen.pair.extras(changed=True)
    subject.require()
    # a described environment is that of one framework; other subjects run with all that a file names
    compared = changes.find(revision, Path.cwd(), extras, whole_files=not subject.needs.described)
    show(f"compared: {first_of(compared.files, SHOWN)}")
    for line in compared.ungated:
        show(f"not gated: {line}")
    for line in compared.notes:
        show(line)
    if not compared.pairs and compared.ungated and compared.unread:
        raise SteleError(
            "A file of packages changed and cannot be read, so it is unknown whether a framework changed. Correct the "
            "line that is named above, or name OLD and NEW: stele gate OLD NEW"
        )
    if not compared.pairs and compared.ungated:
        raise SteleError(
            f"A framework changed between {revision} and the working tree, and nothing can be gated. Name OLD and NEW: "
            "stele gate OLD NEW"
        )
    if not compared.pairs:
        show(f"No version of a framework differs between {revision} and the working tree in these files.")
        return 0
    names = unique([pair.name for pair in compared.pairs])
    several = len(names) > 1
    gates = [
        replace(
            chosen,
            pair=replace(chosen.pair, old=pair.old, new=pair.new),
            reports=chosen.reports.named(name if several else None),
        )
        for pair, name in zip(compared.pairs, names, strict=True)
    ]
    for each in gates:
        outputs.check(flat(each))
        outputs.refuse(flat(each), compared.paths)
    codes: list[int] = []
    finished: dict[int, Finished] = {}  # by the number of the gate
    try:
        for number, (each, pair) in enumerate(zip(gates, compared.pairs, strict=True)):
            report = functools.partial(finished.__setitem__, number)
            codes.append(gate_change(each, compared._replace(pairs=[pair]), report, several=several))
    finally:
        whole = together(compared, codes)
        for number, ended in finished.items():
            write(gates[number], ended, whole=whole)
    if whole.lines:
        show(f"{'; '.join(line.removesuffix('.') for line in whole.lines)}. {whole.sentence}")
    return whole.code


def unique(names: Sequence[str]) -> list[str]:
    """Return names of files, with a number where two would be equal: ``jax``, ``jax-2``."""
    distinct: list[str] = []
    for name in map(slug, names):
        lowercase = {other.lower() for other in distinct}
        numbered = (f"{name}-{number}" for number in itertools.count(2))
        distinct.append(next(free for free in itertools.chain([name], numbered) if free.lower() not in lowercase))
    return distinct


def together(compared: changes.Changed, codes: Sequence[int]) -> Together:
    """Return the outcome of all gates of a command; the last ones may not have ended."""
    gates = [f"{pair.summary}: exit code {code}" for pair, code in zip(compared.pairs, codes, strict=False)]
    gates += [f"{pair.summary}: its gate did not end" for pair in compared.pairs[len(codes) :]]
    lines = [*(gates if len(gates) > 1 else []), *(f"not gated: {line}" for line in compared.ungated)]
    blocked = compared.blocked or len(codes) < len(compared.pairs)
    return Together(judgement.worst_code([*codes, 2 if blocked else 0]), lines)


def show(line: str) -> None:
    print(printable(without_passwords(line), keep=""), flush=True)


def gate_change(chosen: GateOptions, compared: changes.Changed, report: Reporter, *, several: bool) -> int:
    """Gate one change, the only pair of ``compared``. Return its exit code.

    Of several gates, one that is impossible does not prevent the others. Without a change of a framework, a file that
    selects the same packages as before passes.
    """
    [pair] = compared.pairs
    show(f"changed: {pair.summary}")
    try:
        return gate_pair(chosen, report, compared)
    except SteleError as error:
        if isinstance(error, packages.NothingUpgradedError) and not pair.is_of_framework:
            show(f"not measured: {pair.old} and the working tree install the same packages.")
            return 0
        if not several:
            raise
        say(f"stele: {printable(without_passwords(str(error)))}")
        return 2


def gate_pair(chosen: GateOptions, report: Reporter, compared: changes.Changed | None = None) -> int:
    """Gate OLD and NEW, and print the verdicts. Return the exit code.

    ``report`` receives what ended, and again with an explanation if there is one. With --changed, the gate is that of
    the only pair of ``compared``.
    """
    pair = None if compared is None else compared.pairs[0]
    contents = (None, None) if pair is None else pair.contents
    trial_of_pair = trial_from(chosen.pair, chosen.judged, typed=chosen.typed, contents=contents)
    require_cells(trial_of_pair)
    say(printable(without_passwords(pages.heading(trial_of_pair)), keep=""))
    replaced = frozenset[str]() if pair is None else pair.packages
    prepared, import_failure = preparation.prepare(trial_of_pair, replaced, fresh=chosen.resume is None)
    require_verdicts(prepared)
    require_reports_apart(flat(chosen), prepared)
    with contextlib.closing(open_record(chosen, prepared)) as record:
        if not import_failure:
            preparation.say_conditions(prepared)
        try:
            verdicts = import_failure or run(Gate(prepared, record))
        except KeyboardInterrupt:
            raise KeyboardInterrupt(*pages.saved(prepared, record)) from None
        code = judgement.EXIT_CODES[pages.overall_status(verdicts)]
        alone = None if compared is None else together(compared, [code])
        record.add({outcome.KEY: outcome.entry(prepared, verdicts, alone)})
    screen.print_lines(pages.terminal_lines(prepared, verdicts, record))
    report(Finished(prepared, record, verdicts))
    document = explain(prepared, record, verdicts) if chosen.explain else None
    if document is not None:
        report(Finished(prepared, record, verdicts, [document]))
    return code


def require_verdicts(trial: Trial) -> None:
    """Raise SteleError if only the accuracy is judged, and no cell has one."""
    judged = trial.parity or trial.metrics or not trial.accuracy or not trial.cells
    if not judged and not any(trial.subject.has_accuracy(cell.task) for cell in trial.cells):
        raise SteleError(
            f"--metric accuracy: {trial.cells[0].task} has no labels, so nothing can be judged. "
            f"{trial.subject.accuracy_remedy}, or judge "
            "another metric: --metric parity,step"
        )


def require_reports_apart(values: Mapping[str, Any], trial: Trial) -> None:
    """Raise SteleError if an output among the options would replace what the trial reads, or a part of an arm."""
    both = (trial.old, trial.new)
    links = (path for arm in both for path in packages.links_of(arm))
    read = itertools.chain(trial.subject.files(trial.old), links)
    outputs.refuse(values, read, [folder for arm in both for folder in packages.folders_of(arm)])


def explain(trial: Trial, record: Record, verdicts: Sequence[Verdict]) -> ExplanationFile | None:
    """Explain the cells whose time did not pass, write the explanation beside the record, and return it.

    Never fails the gate: None if there is nothing to explain, or if it cannot be explained.
    """
    judged = {
        (verdict.task, verdict.phase)
        for verdict in verdicts
        if verdict.metric in EXPLAINED and verdict.status != "PASS"
    }
    path = record.path.with_suffix(".explanation.json")
    try:
        if isinstance(trial.subject, Program) and judged:
            trial = behaviour.with_timings(trial, [task for task, _ in judged])
        cells = [cell for cell in trial.common_cells() if tuple(cell) in judged]
        if not cells:
            return None
        result = explanation.explain(trial, cells)
        files.write_text(path, explanation.to_json(result))
    except SteleError as error:
        say(f"stele: not explained: {error}")
        return None
    say(f"explanation: {path}")
    return result.document


def open_record(chosen: GateOptions, trial: Trial) -> Record:
    """Return a new record, or with --resume the existing one."""
    if chosen.resume is None:
        new = FOLDER / f"{datetime.now():%Y%m%d-%H%M%S}-{names_of(trial)}.jsonl"
        return watch(records.create(new, header(trial)), trial)
    newest, path = chosen.resume == Path(), record_to_resume(chosen.resume, trial)
    outputs.refuse(flat(chosen), [path])
    record = records.resume(path)
    try:
        check_record(record, trial, different=different_options(record.header.get("command"), chosen))
    except SteleError as error:
        older = [candidate for candidate in records_of(names_of(trial)) if candidate.name < path.name]
        if not (newest and older):
            raise
        raise SteleError(
            f"{error} This is the newest record of OLD and NEW; an older one may fit: --resume {max(older)}"
        ) from None
    return watch(record, trial)


def names_of(trial: Trial) -> str:
    return f"{trial.old.slug}-{trial.new.slug}"


def newest_record(names: str) -> Path | None:
    """Return the last record of two arms; gates that started in the same second have numbers."""
    first = max(records_of(names), default=None)
    return first and records.newest(first)


def records_of(names: str) -> list[Path]:
    """Return the records of two arms, without those that have numbers."""
    return list(FOLDER.glob(f"{'[0-9]' * 8}-{'[0-9]' * 6}-{glob.escape(names)}.jsonl"))


def write(chosen: GateOptions, finished: Finished, *, whole: Together | None = None) -> None:
    """Write the reports of a gate. ``whole`` is the outcome of a command with more than this gate."""
    trial, record, verdicts, explanations = finished
    result = outcome.of_record(record, verdicts, outcome.entry(trial, verdicts, whole))
    read = record.header.get("content", {}).get("files", {})  # launches may have read more than the inspection
    outputs.refuse(flat(chosen), (trial.subject.root / name for name in read))
    reports = chosen.reports
    if reports.json:
        files.write_output_text(reports.json, pages.to_json(trial, record, verdicts, whole))
    if reports.markdown:
        shown = Sources(gates=[result], explanations=list(explanations))
        files.write_output_text(reports.markdown, markdown.render(build.report(shown)))
    if reports.junit:
        files.write_output_text(reports.junit, exports.to_junit([result]))


def trial_from(
    pair: PairOptions,
    judged: JudgementOptions,
    *,
    typed: tuple[str, ...] = (),
    contents: tuple[Locked | None, Locked | None] = (None, None),
    here: bool = True,
) -> Trial:
    """Return the Trial that the options describe. Raises SteleError, which quotes what cannot be done.

    ``contents`` are what --changed found in OLD and NEW. ``here`` says whether this machine measures: a node of a
    cluster has other processors, and checks them itself.
    """
    subject, extras = pair.subject, pair.extras()
    cells, names = check_judged(pair, judged, subject, here=here), judged.names(subject)
    if isinstance(subject, Program):
        subject = replace(subject, selected=judged.reported(subject))
    old, new = (
        arms.load(text, subject.needs, extras, locked=locked)
        for text, locked in zip((pair.old, pair.new), contents, strict=True)
    )
    return Trial(
        old=old,
        new=new,
        subject=subject,
        typed=typed,
        cells=cells,
        metrics=selected_metrics(pair, judged),
        settings=pair.settings_of(subject),
        seed=pair.seed,
        budget=judged.budget,
        parity="parity" in names or subject.metrics is not None,
        accuracy="accuracy" in names,
        scale=pair.scale,
        training=judged.accuracy_scale,
        target=judged.target,
        timeout=pair.worker_timeout,
        fail_fast=judged.fail_fast,
        parallel=1 if subject.alone else pair.parallel,
    )


def check_judged(
    pair: PairOptions, judged: JudgementOptions, subject: Subject, *, here: bool = True
) -> tuple[Cell, ...]:
    """Return the cells. Raises SteleError for options that do not fit each other."""
    names, settings = judged.names(subject), pair.settings_of(subject)
    if here:
        check_machine(settings)
    if settings.devices > 1:
        require_training(pair, judged, subject)
        pair = replace(pair, cells=replace(pair.cells, phase="train"))
    cells = subject.cells(pair.cells.phase)
    require_program(pair, judged, subject)
    require_phase(pair.cells.phase, judged, names)
    require_effects(pair, judged, names)
    require_scale(pair.scale, subject, cells)
    require_loaders(names, cells)
    require_trainings(judged, subject, cells)
    selected_metrics(pair, judged)
    return cells


def require_cells(trial: Trial) -> None:
    """Raise SteleError, with the reason, if neither OLD nor NEW has any of the cells."""
    absent = [trial.absences(cell) for cell in trial.cells]
    if absent and all(None not in reasons for reasons in absent):
        raise SteleError(f"Neither OLD nor NEW can measure {trial.cells[0]}: {absent[0][0]}.")


def check_machine(settings: Settings) -> None:
    """Raise SteleError if this machine lacks the device, or if launches leave no processor for others or share one."""
    present = processors.count()
    most = max(present - 1, 1)
    if settings.devices == 1 and settings.threads > most:
        raise SteleError(
            f"--threads {settings.threads} is too much: this machine has {counted(present, 'processor')}, and one is "
            f"for other processes. Use --threads {most}."
        )
    settings.check_machine()


def require_training(pair: PairOptions, judged: JudgementOptions, subject: Subject) -> None:
    """Raise SteleError if something was selected that several devices do not have."""
    if subject.one_device is not None:
        raise SteleError(subject.one_device)
    for metric in OF_ONE_DEVICE:
        if metric in judged.metric.split(","):
            raise SteleError(f"--metric {metric} is measured on one device. Leave out --devices or the metric.")
    if pair.cells.phase == "infer":
        raise SteleError("Inference uses one device. Leave out --devices or --phase infer.")


def require_program(pair: PairOptions, judged: JudgementOptions, subject: Subject) -> None:
    """Raise SteleError for an option that has no effect on code of the user that runs as it is."""
    if subject.metrics is None:
        return
    typed = {
        "--precision": pair.precision is not None,
        "--scale": pair.scale != PairOptions.scale,
        "--accuracy-scale": judged.accuracy_scale != JudgementOptions.accuracy_scale,
        "--target": judged.target is not None,
        "--device": pair.device != PairOptions.device,
    }
    for option in (name for name, is_typed in typed.items() if is_typed):
        raise SteleError(f"{option} has no effect on {subject.label}, which runs as it is. Leave it out.")
    if pair.program.only_outcomes and subject.clock in judged.metric.split(","):
        raise SteleError(f"--only-outcomes times nothing, but --metric {judged.metric} does. Leave out one of them.")


def require_phase(phase: str | None, judged: JudgementOptions, names: Sequence[str]) -> None:
    """Raise SteleError if --phase excludes all metrics."""
    phases = {metric.name: metric.phases for metric in ALL} | {"accuracy": ("train",)}
    if phase and all(phase not in phases.get(name, PHASES) for name in names):
        [needed] = set(PHASES) - {phase}
        raise SteleError(
            f"--metric {judged.metric} needs {outcome.PHASE_NAMES[needed]}, but --phase {phase} excludes it. "
            f"Use --phase {needed}."
        )


def require_effects(pair: PairOptions, judged: JudgementOptions, names: Sequence[str]) -> None:
    """Raise SteleError for an option that changes nothing, because no metric that is judged has it."""
    if judged.target is not None and "time-to-target" not in names:
        raise SteleError(
            "--target has no effect without --metric time-to-target. Leave out --target, or add the metric."
        )
    if judged.accuracy_scale != JudgementOptions.accuracy_scale and not {"accuracy", "time-to-target"} & set(names):
        raise SteleError("--accuracy-scale has no effect without --metric accuracy. Leave it out, or add the metric.")
    if pair.scaling != PairOptions.scaling and pair.devices == 1:
        raise SteleError(f"--scaling {pair.scaling} has no effect on one device. Leave it out, or add --devices 2.")
    for option, texts in (("--tolerance", judged.tolerance), ("--margin", judged.margin)):
        subject = pair.subject
        may_report = subject.reports and not judged.reported(subject)
        for name in parse_thresholds(option, texts, subject.clock, reports=subject.reports):
            if name not in names and not (may_report and name not in NAMES):
                raise SteleError(f"{option} {name}=N% has no effect: {name} is not judged. Add it to --metric.")


def require_loaders(names: list[str], cells: Sequence[Cell]) -> None:
    """Raise SteleError if a metric of loaders is judged in a task without them."""
    for name in {metric.name for metric in ALL if metric.kinds == (LOADER,)} & set(names):
        for task in {cell.task for cell in cells} - set(tasks.LOADED):
            raise SteleError(f"--metric {name} needs a task with loaders, and '{task}' has none. Add --task cnn.")


def require_scale(scale: str, subject: Subject, cells: Sequence[Cell]) -> None:
    """Raise SteleError if a task does not have the scale of the timed launches."""
    for task in {cell.task for cell in cells}:
        scales = subject.scales(task) or SCALES
        timed = [name for name in scales if name not in UNTIMED]
        if scale not in timed:
            raise SteleError(unknown_message("scale", scale, timed, of=f"for task {task}"))


def require_trainings(judged: JudgementOptions, subject: Subject, cells: Sequence[Cell]) -> None:
    """Raise SteleError if a task lacks the scale of the trainings, or a target that is judged."""
    scale, timed = judged.accuracy_scale, "time-to-target" in judged.names(subject)
    if timed and (reason := subject.why_no_metric("time-to-target")):
        raise SteleError(f"--metric time-to-target {reason}.")
    for task in {cell.task for cell in cells if cell.phase == "train"}:
        scales = subject.scales(task) or tasks.SCALES
        if scale not in scales:
            raise SteleError(unknown_message("scale of trainings", scale, scales, of=f"for task {task}"))
        if timed and not tasks.make(task, scale).data:
            raise SteleError(f"--metric time-to-target needs a data set, but '{task}' generates its samples.")
        if timed and (judged.target or subject.target_accuracy(task, scale)) is None:
            raise SteleError(f"Task '{task}' has no target at scale {scale}. Add --target 60%.")
        if timed:
            options.require_real_data(task, scale)


def selected_metrics(pair: PairOptions, judged: JudgementOptions) -> tuple[Metric, ...]:
    """Return the metrics to judge, with their thresholds. A CPU has no device memory."""
    subject = pair.subject
    names = judged.names(subject)
    if pair.program.only_outcomes:
        return ()
    if pair.device == "cpu":
        if judged.metric and "device-memory" in names:
            raise SteleError("--metric device-memory needs a device with a memory of its own. Add --device cuda.")
        names = [name for name in names if name != "device-memory"]
    tolerances = parse_thresholds("--tolerance", judged.tolerance, subject.clock, reports=subject.reports)
    margins = parse_thresholds("--margin", judged.margin, subject.clock, reports=subject.reports)
    every = with_thresholds(tolerances, margins)
    selected = (metric for metric in every if metric.name in names or metric.name not in NAMES)
    return of_subject(selected, tuned=subject.tuned)


class RecordedParser(usage.Parser):
    """A parser of the words of a recorded command. Raises SteleError in place of ending the process."""

    def error(self, message: str) -> Any:
        raise SteleError(message)


def options_of(words: Iterable[str]) -> GateOptions:
    """Return the options of a command, as a record keeps its words: without passwords.

    Raises SteleError if this release does not have them.
    """
    parser = RecordedParser(prog="stele")
    add(parser.add_subparsers(required=True))
    of_stele, program = options.split_program(list(map(without_passwords, words)))
    parsed = parser.parse_args(of_stele)
    parsed.program = tuple(program)
    return options.from_arguments(GateOptions, parsed)


def words_of(chosen: GateOptions) -> tuple[str, ...]:
    """Return a command that has these options, after "stele": those that are not the default."""
    default, values = options.defaults_of(GateOptions), flat(chosen)
    words = [
        word
        for name, value in values.items()
        if name not in ("old", "new", "typed", "program") and value != default[name]
        for word in as_words(f"--{options.NAMES.get(name, name).replace('_', '-')}", value)
    ]
    program = chosen.pair.program.program
    return "gate", chosen.pair.old, chosen.pair.new, *words, *(("--", *program) if program else ())


def as_words(option: str, value: Any) -> list[str]:
    """Return an option and its value as words; several values repeat the option."""
    if value is True:
        return [option]
    several = value if isinstance(value, tuple) else (value,)
    return [word for each in several for word in (option, *as_typed(each))]


def different_options(command: object, chosen: GateOptions) -> Iterator[str]:
    """Yield ``without --metric; now --metric parity`` for each option in which two commands measure something else.

    ``command`` has the words of a record. Nothing if they are unknown, or of another release.
    """
    if not isinstance(command, list) or not chosen.typed:
        return
    try:
        before, now = flat(options_of(map(str, command))), flat(options_of(chosen.typed))
    except SteleError:
        return
    default = options.defaults_of(GateOptions)
    names = {f"--{options.NAMES.get(name, name).replace('_', '-')}": name for name in now if name not in FREE}
    typed = [str(word).partition("=")[0] for word in (*command, *chosen.typed)]
    for option in sorted(names, key=lambda option: typed.index(option) if option in typed else len(typed)):
        name = names[option]
        if before[name] != now[name]:
            then, today = (
                shlex.join([option, *as_typed(values[name])]) if values[name] != default[name] else f"without {option}"
                for values in (before, now)
            )
            yield f"{then if before[name] == default[name] else f'with {then}'}; now {today}"


def as_typed(value: Any) -> list[str]:
    """Return the value of an option as its words."""
    if isinstance(value, float):
        return [f"{100 * value:g}%"]  # a target
    if isinstance(value, tuple):
        return [",".join(map(str, value))] if value and not isinstance(value[0], str) else list(value)
    return [str(value)]
