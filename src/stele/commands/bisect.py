"""``stele bisect FRAMEWORK GOOD BAD``: find the release that made a metric worse."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from stele import files, schema
from stele.commands import options, outputs, screen
from stele.commands.options import ModelOptions, ProcessOptions
from stele.environments import Environment, arms, builds, packages
from stele.errors import SteleError
from stele.gate import record as records
from stele.gate import timing
from stele.gate.gate import Gate
from stele.gate.metrics import METRICS, of_subject
from stele.gate.preparation import make
from stele.gate.trial import PARALLEL, TIMEOUT, Trial, header, watch
from stele.measuring import content
from stele.measuring.content import Content, Reads
from stele.measuring.progress import say
from stele.measuring.run import PHASES
from stele.measuring.settings import Settings
from stele.releases import candidates
from stele.releases.bisection import BAD, SKIP, BisectionFile, CandidateStatus, Search, to_answer
from stele.subjects import InOld, Subject, Tasks
from stele.text import slug
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
    metric: str = "step"
    model: ModelOptions = field(default_factory=ModelOptions)
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
    names = [metric.name for metric in METRICS]
    command.add_argument("--metric", choices=names, help="default: %(default)s")
    options.add_model_options(command)
    options.add_budget(command, BisectOptions.budget)
    options.add_launch_options(command)
    command.add_argument("--pins", action="store_true", help="change one package at a time, not the release")
    command.add_argument("--scale", choices=("gate", "study"), help="scale of a launch; default: %(default)s")
    options.add_trial_options(command)
    command.add_argument("--json", type=Path, metavar="FILE", help="write the result to this file")
    options.declare(command, bisect, BisectOptions, check=check)


def check(chosen: BisectOptions) -> None:
    """Raise SteleError for what cannot be done, as far as the command line says it."""
    model = chosen.model.only_model(chosen.task != BisectOptions.task)
    if model is None:
        candidates.check(chosen.framework, *(() if chosen.pins else (chosen.good, chosen.bad)))
    elif chosen.pins:
        raise SteleError("--pins cannot be used with --model. Leave out one of the two.")


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
    if bad_end.status != BAD or bad_end.ratio is None:
        print(f"Nothing to bisect: {last} was not shown to be worse than {first}.")
        return report(chosen.json, answers, [])
    while (name := search.next_candidate()) is not None and left() > 0:
        steps = max(steps - 1, 1)
        margin = math.sqrt(bad_end.ratio) - 1
        answer = bisection.judge(name, margin=margin, budget=left() / steps)
        search.set_status(name, answer.status)
        answers.append(answer)
        screen.print_lines([format_answer(answer)])
    return report(chosen.json, answers, search.suspects if search.next_candidate() is None else [])


def format_answer(answer: CandidateStatus) -> str:
    return f"{answer.status:5} {answer.name}: {answer.message}"


def report(path: Path | None, answers: Sequence[CandidateStatus], suspects: Sequence[str]) -> int:
    """Print the result, write it to the path of --json, and return the exit code."""
    if len(suspects) == 1:
        print(f"\nThe first bad candidate is {suspects[0]}.")
    elif suspects:
        print(f"\nThe first bad candidate is one of these; some of them gave no verdict: {', '.join(suspects)}")
    elif answers[0].status == BAD:
        print("\nThe budget ran out. Run again with a larger --budget.")
    if path is not None:
        files.write_output_text(path, schema.document(BisectionFile(tuple(suspects), tuple(answers))))
    return 0 if len(suspects) == 1 else 3


def begin(chosen: BisectOptions) -> "Bisection":
    """Return the bisection of the releases of a framework; of code of the user, they may be those of any package."""
    ends = chosen.framework, chosen.good, chosen.bad
    subject = chosen.model.model() or Tasks((chosen.task,))
    if subject.needs.described:
        by_name = (candidates.step_through_pins if chosen.pins else candidates.select_releases)(*ends)
    else:
        extras = chosen.model.of_arms()
        by_name = {name: arms.load(name, subject.needs, extras) for name in candidates.select_requirements(*ends)}
        make(next(iter(by_name.values())), fresh=True)
    first, good = next(iter(by_name.items()))
    in_good = subject.resolve(good, subject.cells(chosen.phase), timeout=chosen.worker_timeout, say=say)
    by_name[first] = in_good.old
    if not subject.needs.described:
        outputs.refuse(options.flat(chosen), in_good.subject.files(good), packages.folders_of(good))
    return Bisection(chosen, by_name, in_good, in_good.subject)


@dataclass
class Bisection:
    """The candidates, by name, and what their launches have shown so far of the model and of what it reads."""

    chosen: BisectOptions
    candidates: dict[str, Environment]
    in_good: InOld
    subject: Subject
    content: Content | None = None

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
        trial = self.trial(good, candidate, margin, budget)
        stem = f"{datetime.now():%Y%m%d-%H%M%S}-{slug(name)[:60]}"
        record = watch(records.create(FOLDER / f"{stem}.jsonl", header(trial)), trial)
        self.require_same(record.header["content"])
        verdicts = timing.measure(Gate(trial, record), trial.cells)
        # what its launches have read is compared from now on
        read = {group: record.header["content"].get(group, {}) for group in content.OF_MODEL}
        self.content = content.merged([self.content or {}, read])
        paths = tuple(self.subject.root / path for path in read["files"])
        self.subject = self.subject.with_reads(Reads(paths, variables=tuple(read["model_variables"])))
        return to_answer(name, verdicts, margin)

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

    def trial(self, good: Environment, new: Environment, margin: float | None, budget: float) -> Trial:
        chosen, tuned = self.chosen, self.subject.tuned
        [metric] = [metric for metric in METRICS if metric.name == chosen.metric]
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
                [metric if margin is None else metric._replace(tolerance=margin, margin=margin)], tuned=tuned
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
