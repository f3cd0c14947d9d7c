"""``stele bisect FRAMEWORK GOOD BAD``: find the release that made a metric worse."""

import argparse
import json
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from stele import environments, files, schema
from stele.commands import options, outputs, screen
from stele.commands.gate import make
from stele.commands.options import say
from stele.environments import Environment, builds, packages
from stele.errors import SteleError
from stele.gate import record, timing, trial
from stele.gate.metrics import METRICS
from stele.gate.trial import Cell, Trial
from stele.measuring import content
from stele.measuring.content import Content, Noticed, Reads
from stele.measuring.settings import Settings
from stele.models import arms, comparison, inspection
from stele.releases import candidates
from stele.releases.bisection import BAD, SKIP, Answer, Search, to_answer
from stele_worker import tasks

FOLDER = Path(".stele/bisections")
EXIT_CODES = "Exit: 0 one release is named; 2 usage or environment; 3 several remain, or BAD was not shown to be worse."


def add(commands: Any) -> None:
    summary = "find the release that made a metric worse"
    about = f"{summary}: a binary search between a good and a bad release, with the gate's statistics"
    command = commands.add_parser("bisect", help=summary, description=about, epilog=EXIT_CODES)
    command.add_argument("framework", metavar="FRAMEWORK", help="a framework, such as jax")
    command.add_argument(
        "good", metavar="GOOD", help="a release, such as 0.9.2; with --pins also requirements"
    )
    command.add_argument("bad", metavar="BAD", help="a later release that is worse")
    command.add_argument("--task", choices=tasks.NAMES, default="gru", help="default: %(default)s")
    command.add_argument("--phase", choices=("train", "infer"), default="infer", help="default: %(default)s")
    names = [metric.name for metric in METRICS]
    command.add_argument("--metric", choices=names, default="step", help="default: %(default)s")
    options.add_model_options(command)
    options.add_budget(command, "1h")
    options.add_launch_options(command)
    command.add_argument(
        "--pins", action="store_true", help="bisect over every package that differs, not over releases"
    )
    command.add_argument(
        "--scale", choices=("gate", "study"), default="gate", help="scale of a launch; default: %(default)s"
    )
    options.add_trial_options(command)
    command.add_argument("--json", type=Path, metavar="FILE", help="write the result to this file")
    command.set_defaults(
        command=bisect, check=options.parse_model, subject=None, of_good=None, content=None, noticed=None
    )


def bisect(arguments: argparse.Namespace) -> int:
    """Print every step with its evidence, then the result. Return the exit code that the epilog describes."""
    environments_by_name = candidates_of(arguments)
    search, start = Search(list(environments_by_name)), time.monotonic()
    first, last = search.candidates[0], search.candidates[-1]
    steps = 1 + math.ceil(math.log2(max(len(environments_by_name) - 1, 1)))
    print(f"{len(environments_by_name) - 2} releases between {first} and {last}: about {steps} gates")

    def left() -> float:
        return arguments.budget - (time.monotonic() - start)

    bad_end = judge_candidate(arguments, environments_by_name, last, margin=None, budget=left() / steps)
    answers = [bad_end]
    screen.print_lines([format_answer(bad_end)])
    if bad_end.status != BAD or bad_end.ratio is None:
        print(f"Nothing to bisect: {last} was not shown to be worse than {first}.")
        return report(arguments, answers, [])
    while (name := search.next_candidate()) is not None and left() > 0:
        steps = max(steps - 1, 1)
        margin = math.sqrt(bad_end.ratio) - 1
        answer = judge_candidate(arguments, environments_by_name, name, margin=margin, budget=left() / steps)
        search.set_status(name, answer.status)
        answers.append(answer)
        screen.print_lines([format_answer(answer)])
    return report(arguments, answers, search.suspects if search.next_candidate() is None else [])


def format_answer(answer: Answer) -> str:
    return f"{answer.status:5} {answer.name}: {answer.message}"


def report(arguments: argparse.Namespace, answers: Sequence[Answer], suspects: Sequence[str]) -> int:
    """Print the result, write it to --json, and return the exit code."""
    if len(suspects) == 1:
        print(f"\nThe first bad candidate is {suspects[0]}.")
    elif suspects:
        print(
            f"\nThe first bad candidate is one of these; some of them gave no verdict: {', '.join(suspects)}"
        )
    elif answers[0].status == BAD:
        print("\nThe budget ran out. Run again with a larger --budget.")
    if arguments.json:
        content = {"suspects": list(suspects), "steps": [answer._asdict() for answer in answers]}
        files.write_output_text(arguments.json, json.dumps(schema.wrap(content), indent=1) + "\n")
    return 0 if len(suspects) == 1 else 3


def candidates_of(arguments: argparse.Namespace) -> dict[str, Environment]:
    """Return the environments to choose from, by name. Those of a model may be releases of any package."""
    ends = arguments.framework, arguments.good, arguments.bad
    model = options.parse_model(arguments)
    if model is None:
        options.announce_inputs([arguments.task])
        select = candidates.step_through_pins if arguments.pins else candidates.select_releases
        return select(*ends)
    if arguments.pins:
        raise SteleError(
            "--pins needs a framework of `stele env list`, and --model none. Leave one of them out."
        )
    extras = options.parse_extras(arguments)
    names = candidates.select_requirements(*ends)
    found = {name: arms.load(name, model, extras) for name in names}
    good = next(iter(found.values()))
    make(good, fresh=True)
    result = inspection.inspect(good, model, timeout=arguments.worker_timeout)
    say(result.describe(training=arguments.phase == "train"))
    inspection.check(result, model, training=arguments.phase == "train")
    arguments.subject, found[names[0]] = inspection.resolved(model, good, result)
    outputs.refuse(arguments, arguments.subject.sources(), packages.folders_of(good))
    arguments.of_good, arguments.noticed = result, Noticed()
    arguments.noticed.admit(result.reads.noticed)
    return found


def judge_candidate(
    arguments: argparse.Namespace,
    environments_by_name: dict[str, Environment],
    name: str,
    *,
    margin: float | None,
    budget: float,
) -> Answer:
    """Compare one candidate with the good end; ``margin`` as in ``to_answer``, ``budget`` in seconds."""
    good = environments_by_name[next(iter(environments_by_name))]
    try:
        make(good)
    except SteleError as error:
        raise SteleError(f"The good end cannot be measured: {error}") from None
    # the packages that the release does not force to change are those of the good end: they are not the cause
    candidate = builds.resolved_like(environments_by_name[name], good)
    try:
        make(candidate)
    except SteleError as error:
        return Answer(name, SKIP, str(error).splitlines()[0])
    if (model := options.parse_model(arguments)) is not None:
        compared, of_candidate = comparison.ask_new(
            good,
            candidate,
            model,
            arguments.of_good,
            training=arguments.phase == "train",
            timeout=arguments.worker_timeout,
        )
        if of_candidate is None or compared.differences:
            return Answer(name, SKIP, str(compared.failure or compared.differences[0]).splitlines()[0])
        candidate = replace(candidate, framework=of_candidate.framework)
        files = (*of_candidate.reads.files, *arguments.noticed.admit(of_candidate.reads.noticed))
        remember_reads(arguments, of_candidate.reads._replace(files=files, noticed=()))
    subject = trial_from(arguments, good, candidate, margin, budget)
    stem = f"{datetime.now():%Y%m%d-%H%M%S}-{environments.description.slug(name)[:60]}"
    log = trial.watch(record.create(FOLDER / f"{stem}.jsonl", trial.header(subject)), subject)
    require_same_search(arguments, log.header["content"])
    verdicts = timing.measure_passes(subject, log, list(subject.cells), say)
    if arguments.subject is not None:  # what its launches have read is compared from now on
        found = {group: log.header["content"].get(group, {}) for group in content.OF_MODEL}
        arguments.content = content.merged([arguments.content, found])
        files = tuple(arguments.subject.folder / one for one in found["files"])
        remember_reads(arguments, Reads(files, variables=tuple(found["asked"])))
    return to_answer(name, verdicts, margin)


def remember_reads(arguments: argparse.Namespace, reads: Reads) -> None:
    """Compare what the model has read in one candidate in all later ones, too."""
    arguments.subject = replace(arguments.subject, reads=arguments.subject.reads | reads)


def require_same_search(arguments: argparse.Namespace, found: Content) -> None:
    """Raise SteleError if something else than the candidate has changed since the candidates before it.

    What the model reads in this candidate alone is new, and no change.
    """
    kept = {
        group: {name: value for name, value in values.items() if not name.endswith(" in NEW")}
        for group, values in found.items()
    }
    before = kept if arguments.content is None else arguments.content
    new = {
        group: {name: one for name, one in kept.get(group, {}).items() if name not in before.get(group, {})}
        for group in content.OF_MODEL
    }
    changed = content.changes(content.merged([before, new]), kept)
    if changed is not None:
        raise SteleError(f"What is measured changed during the bisection: {changed}. Run it again.")
    arguments.content = kept


def trial_from(
    arguments: argparse.Namespace, good: Environment, new: Environment, margin: float | None, budget: float
) -> Trial:
    model = arguments.subject
    [metric] = [metric for metric in METRICS if metric.name == arguments.metric]
    settings = Settings(device="cpu", malloc=arguments.malloc, **options.conditions_from(arguments))
    return Trial(
        old=good,
        new=new,
        cells=(Cell(arguments.task if model is None else model.name, arguments.phase),),
        model=model,
        # what separates good from bad is both: growth that is accepted, and growth that has to be ruled out
        metrics=(metric if margin is None else metric._replace(tolerance=margin, margin=margin),),
        settings=settings,
        seed=arguments.seed,
        budget=budget,
        parity=False,
        accuracy=False,
        scale=arguments.scale,
        timeout=arguments.worker_timeout,
        at_once=arguments.at_once,
    )
