"""``stele bisect FRAMEWORK GOOD BAD``: find the release that made a metric worse."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from stele import files, schema
from stele.commands import options, outputs, screen
from stele.commands.options import CellOptions, ModelOptions, ProcessOptions, ProgramOptions
from stele.environments import Environment, arms, builds, packages
from stele.errors import SteleError
from stele.gate import record as records
from stele.gate import timing
from stele.gate.gate import Gate
from stele.gate.metrics import METRICS, PROGRAMS, of_subject
from stele.gate.preparation import make
from stele.gate.run import of_program as judge_program
from stele.gate.trial import PARALLEL, TIMEOUT, Trial, header, watch
from stele.measuring import content
from stele.measuring.content import Content, Reads
from stele.measuring.progress import say
from stele.measuring.run import PHASES
from stele.measuring.settings import Settings
from stele.releases import candidates
from stele.releases.bisection import (
    BAD,
    BEHAVIOUR,
    SKIP,
    BisectionFile,
    CandidateStatus,
    Search,
    to_answer,
    to_answer_of_program,
)
from stele.releases.candidates import Pins
from stele.subjects import InOld, Program, Subject, Tasks
from stele.text import slug, unknown_message
from stele_suite import tasks

FOLDER = Path(".stele/bisections")
EXIT_CODES = (
    "Exit: 0 one release is named; 2 usage or environment; 3 several remain, or BAD was not shown to be worse; "
    "4 internal error; 130 interrupted."
)


@dataclass(frozen=True, kw_only=True)
class BisectOptions:
    framework: str
    good: str
    bad: str
    task: str = "gru"
    phase: str = "infer"
    metric: str | None = None  # None: the time of a step; of code of the user, what differs at BAD
    model: ModelOptions = field(default_factory=ModelOptions)
    program: ProgramOptions = field(default_factory=ProgramOptions)
    process: ProcessOptions = field(default_factory=ProcessOptions)
    budget: float = 3600.0  # seconds
    pins: bool = False
    scale: str = "gate"
    parallel: int = PARALLEL
    seed: int = 0
    worker_timeout: float = TIMEOUT
    json: Path | None = None

    @property
    def training(self) -> bool:
        return self.phase == "train"


def add(commands: Any) -> None:
    summary = "find the release that made a metric worse"
    about = f"{summary}: a binary search between a good and a bad release, with the gate's statistics"
    command = commands.add_parser("bisect", help=summary, description=about, epilog=EXIT_CODES)
    command.add_argument("framework", metavar="FRAMEWORK", help="a framework, such as jax")
    command.add_argument("good", metavar="GOOD", help="a release, such as 0.9.2; with --pins also requirements")
    command.add_argument("bad", metavar="BAD", help="a later release that is worse")
    command.add_argument("--task", choices=tasks.NAMES, help="default: %(default)s")
    command.add_argument("--phase", choices=PHASES, help="default: %(default)s")
    names = [*(metric.name for metric in (*METRICS, *PROGRAMS)), *BEHAVIOUR]
    about_metric = "default: step; of code of your own, what differs between GOOD and BAD"
    command.add_argument("--metric", choices=names, metavar="ID", help=about_metric)
    options.add_model_options(command)
    options.add_program_options(command)
    options.add_budget(command, BisectOptions.budget)
    options.add_launch_options(command)
    command.add_argument("--pins", action="store_true", help="change one package at a time, not the release")
    command.add_argument("--scale", choices=("gate", "study"), help="scale of a launch; default: %(default)s")
    options.add_trial_options(command)
    command.add_argument("--json", type=Path, metavar="FILE", help="write the result to this file")
    options.declare(command, bisect, BisectOptions, check=check)


def check(chosen: BisectOptions) -> None:
    """Raise SteleError for what cannot be done, as far as the command line says it."""
    subject = subject_of(chosen)
    judged = subject.metrics or [metric.name for metric in METRICS]
    if chosen.metric is not None and chosen.metric not in judged:
        raise SteleError(unknown_message("metric", chosen.metric, judged, of=f"of {subject.label or chosen.task}"))
    if subject.needs.described:
        chosen.model.only_model()
        candidates.check(chosen.framework, *(() if chosen.pins else (chosen.good, chosen.bad)))


def subject_of(chosen: BisectOptions) -> Subject:
    """Return what is judged. Raises SteleError if there is no such thing."""
    cells = CellOptions(task=CellOptions.task if chosen.task == BisectOptions.task else chosen.task)
    subject = options.subject_of(cells, chosen.model, chosen.program)
    return Tasks((chosen.task,)) if subject.needs.described else subject


def bisect(chosen: BisectOptions) -> int:
    """Print every step with its evidence, then the result. Return the exit code that the epilog describes."""
    bisection = begin(chosen)
    search, start = Search(list(bisection.candidates)), time.monotonic()
    first, last = search.candidates[0], search.candidates[-1]
    steps = 1 + math.ceil(math.log2(max(len(search.candidates) - 1, 1)))
    print(f"{len(search.candidates) - 2} releases between {first} and {last}: about {steps} gates")

    def left() -> float:
        return chosen.budget - (time.monotonic() - start)

    bad_end = bisection.judge(last, margin=None, budget=left() / steps)
    answers = [bad_end]
    screen.print_lines([format_answer(bad_end)])
    if bad_end.status != BAD:
        print(f"Nothing to bisect: {last} was not shown to be worse than {first}.")
        return report(chosen.json, answers, [])
    margin = None if bad_end.ratio is None else math.sqrt(bad_end.ratio) - 1
    while (name := search.next_candidate()) is not None and left() > 0:
        steps = max(steps - 1, 1)
        answer = bisection.judge(name, margin=margin, budget=left() / steps)
        search.set_status(name, answer.status)
        answers.append(answer)
        screen.print_lines([format_answer(answer)])
    suspects = search.suspects if search.next_candidate() is None else []
    if bisection.pins is not None and len(suspects) == 1:
        needed = needed_together(bisection, search, answers, margin, left)
        return report(chosen.json, answers, needed, together=len(needed) > 1)
    return report(chosen.json, answers, suspects)


def needed_together(
    bisection: "Bisection",
    search: Search,
    answers: list[CandidateStatus],
    margin: float | None,
    left: Callable[[], float],
) -> list[str]:
    """Return the change that the search found, after those without which it makes nothing worse: delta debugging.

    The search made it after all changes before it. If it is not bad alone, the last of those that it needs is searched
    for in the same way, and so on.
    """
    needed, earlier = search.suspects, list(search.candidates[1 : search.good + 1])

    def is_bad(steps: Sequence[str]) -> bool:
        assert bisection.pins is not None
        name = f"only {' and '.join(steps)}"
        bisection.candidates[name] = bisection.pins.environment(steps)
        answer = bisection.judge(name, margin=margin, budget=left())
        answers.append(answer)
        screen.print_lines([format_answer(answer)])
        return answer.status == BAD

    while earlier and left() > 0 and not is_bad(needed):
        good, bad = 0, len(earlier)  # numbers of earlier changes with which it is not bad, and is bad
        while bad - good > 1 and left() > 0:
            middle = (good + bad) // 2
            good, bad = (good, middle) if is_bad([*earlier[:middle], *needed]) else (middle, bad)
        needed, earlier = [earlier[bad - 1], *needed], earlier[: bad - 1]
    return needed


def format_answer(answer: CandidateStatus) -> str:
    return f"{answer.status:5} {answer.name}: {answer.message}"


def report(
    path: Path | None, answers: Sequence[CandidateStatus], suspects: Sequence[str], *, together: bool = False
) -> int:
    """Print the result, write it to the path of --json, and return the exit code.

    ``together``: all suspects are needed.
    """
    if len(suspects) == 1:
        print(f"\nThe first bad candidate is {suspects[0]}.")
    elif together:
        print(f"\nThese changes make it worse only together: {' and '.join(suspects)}.")
    elif suspects:
        print(f"\nThe first bad candidate is one of these; some of them gave no verdict: {', '.join(suspects)}")
    elif answers[0].status == BAD:
        print("\nThe budget ran out. Run again with a larger --budget.")
    if path is not None:
        files.write_output_text(path, schema.document(BisectionFile(tuple(suspects), tuple(answers))))
    return 0 if len(suspects) == 1 or together else 3


def begin(chosen: BisectOptions) -> "Bisection":
    """Return the bisection of the releases of a framework; of code of the user, they may be those of any package."""
    ends = chosen.framework, chosen.good, chosen.bad
    subject, pins = subject_of(chosen), None
    if subject.needs.described:
        pins = candidates.pins_of_framework(*ends) if chosen.pins else None
        by_name = candidates.select_releases(*ends) if pins is None else pins.candidates()
    else:
        extras = chosen.model.of_arms(ends[1:] if chosen.pins else ())
        pins = candidates.pins_of_code(*ends, subject.needs, extras) if chosen.pins else None
        names = candidates.select_requirements(*ends) if pins is None else ()
        by_name = (
            {name: arms.load(name, subject.needs, extras) for name in names} if pins is None else pins.candidates()
        )
        make(next(iter(by_name.values())), fresh=True)
    first, good = next(iter(by_name.items()))
    in_good = subject.resolve(good, subject.cells(chosen.phase), timeout=chosen.worker_timeout, say=say)
    by_name[first] = in_good.old
    if not subject.needs.described:
        outputs.refuse(options.flat(chosen), in_good.subject.files(good), packages.folders_of(good))
    return Bisection(chosen, by_name, in_good, in_good.subject, pins)


@dataclass
class Bisection:
    """The candidates, by name, and what their launches have shown so far of the model and of what it reads."""

    chosen: BisectOptions
    candidates: dict[str, Environment]
    in_good: InOld
    subject: Subject
    pins: Pins | None = None
    content: Content | None = None
    focus: tuple[str, str] | None = None  # of a program: the item and the metric that are worse at the bad end

    def judge(self, name: str, *, margin: float | None, budget: float) -> CandidateStatus:
        """Compare one candidate with the good end; ``margin`` as in ``to_answer``, ``budget`` in seconds."""
        good = next(iter(self.candidates.values()))
        try:
            make(good)
        except SteleError as error:
            raise SteleError(f"The good end cannot be measured: {error}") from None
        # the packages that the release does not force to change are those of the good end: they are not the cause
        candidate = builds.resolved_like(self.candidates[name], good)
        try:
            make(candidate)
        except SteleError as error:
            return CandidateStatus(name, SKIP, str(error).splitlines()[0])
        both = self.in_good.compare(candidate)
        if problems := [*filter(None, [both.compared.failure]), *both.compared.differences]:
            return CandidateStatus(name, SKIP, problems[0].splitlines()[0])
        candidate = both.new
        self.subject = self.subject.with_reads(both.reads)  # compared in all later candidates, too
        of_program = self.subject if isinstance(self.subject, Program) else None
        if of_program is not None and self.focus is not None:
            self.subject = replace(of_program, only=(self.focus[0],))
        trial = self.trial(good, candidate, margin, budget)
        stem = f"{datetime.now():%Y%m%d-%H%M%S}-{slug(name)[:60]}"
        record = watch(records.create(FOLDER / f"{stem}.jsonl", header(trial)), trial)
        self.require_same(record.header["content"])
        gate = Gate(trial, record)
        verdicts = timing.measure(gate, trial.cells) if of_program is None else judge_program(gate)
        # what its launches have read is compared from now on
        read = {group: record.header["content"].get(group, {}) for group in content.OF_MODEL}
        self.content = content.merged([self.content or {}, read])
        paths = tuple(self.subject.root / path for path in read["files"])
        self.subject = self.subject.with_reads(Reads(paths, variables=tuple(read["model_variables"])))
        if of_program is None:
            return to_answer(name, verdicts, margin)
        answer, self.focus = to_answer_of_program(name, verdicts, margin, self.focus)
        return answer

    def require_same(self, all_groups: Content) -> None:
        """Raise SteleError if something else than the candidate has changed since the candidates before it.

        What the model reads in this candidate alone is new, and no change.
        """
        groups = {
            group: {name: value for name, value in values.items() if not name.endswith(" in NEW")}
            for group, values in all_groups.items()
        }
        before = groups if self.content is None else self.content
        new = {
            group: {name: value for name, value in groups.get(group, {}).items() if name not in before.get(group, {})}
            for group in content.OF_MODEL
        }
        changed = content.changes(content.merged([before, new]), groups)
        if changed is not None:
            raise SteleError(f"What is measured changed during the bisection: {changed}. Run it again.")
        self.content = groups

    def metric_names(self) -> tuple[str, ...]:
        """Return the metrics that are measured; of a program, after the bad end, the one in which it is worse."""
        if self.subject.metrics is None:
            return (self.chosen.metric or METRICS[0].name,)
        if self.focus is not None:
            return (self.focus[1],)
        return (self.chosen.metric,) if self.chosen.metric else self.subject.metrics

    def trial(self, good: Environment, new: Environment, margin: float | None, budget: float) -> Trial:
        chosen, tuned = self.chosen, self.subject.tuned
        metrics = [metric for metric in (*METRICS, *PROGRAMS) if metric.name in self.metric_names()]
        settings = Settings(
            device="cpu",
            malloc=chosen.process.malloc,
            threads=options.threads_of(chosen.process.threads, tuned=tuned),
            precision=options.precision_of(None, tuned=tuned),
        )
        return Trial(
            old=good,
            new=new,
            cells=self.subject.cells(chosen.phase),
            subject=self.subject,
            # what separates good from bad is both: growth that is accepted, and growth that has to be ruled out
            metrics=of_subject(
                [each if margin is None else each._replace(tolerance=margin, margin=margin) for each in metrics],
                tuned=tuned,
            ),
            settings=settings,
            seed=chosen.seed,
            budget=budget,
            parity=False,
            accuracy=False,
            scale=chosen.scale,
            timeout=chosen.worker_timeout,
            parallel=chosen.parallel,
        )
