"""``stele bisect FRAMEWORK GOOD BAD``: which release did it?"""

import argparse
import json
import math
import threading
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from packaging.requirements import Requirement

from stele import environments, files
from stele.commands import options
from stele.commands.gate import make
from stele.commands.options import say
from stele.environments import Environment, builds
from stele.errors import SteleError
from stele.gate import record, timing, trial
from stele.gate.metrics import METRICS
from stele.gate.trial import Cell, Trial
from stele.gate.verdict import Verdict
from stele.releases import frameworks, ledger
from stele.releases.bisection import BAD, GOOD, SKIP, Search
from stele.settings import Settings
from stele_worker import tasks

FOLDER = Path(".stele/bisections")
STATUSES = "Exit: 0 found; 2 usage or environment; 3 it cannot be told which, or whether BAD is worse at all."


class Answer(NamedTuple):
    """What was found of one candidate, and why."""

    name: str
    word: str
    sentence: str
    ratio: float | None = None


def add(commands: Any) -> None:
    about = "which release did it? Searches between a good and a bad one, with the gate's statistics"
    command = commands.add_parser("bisect", help="which release did it?", description=about, epilog=STATUSES)
    command.add_argument("framework", metavar="FRAMEWORK", help="as in `stele releases list`")
    command.add_argument("good", metavar="GOOD", help="a release, such as 0.9.2; with --pins requirements")
    command.add_argument("bad", metavar="BAD", help="a later one that is worse")
    command.add_argument("--task", choices=tasks.NAMES, default="gru", help="default: %(default)s")
    command.add_argument("--phase", choices=("train", "infer"), default="infer", help="default: %(default)s")
    names = [metric.name for metric in METRICS]
    command.add_argument("--metric", choices=names, default="step", help="default: %(default)s")
    options.steady(command, budget="1h")
    command.add_argument("--pins", action="store_true", help="bisect over every package that differs")
    command.add_argument("--scale", choices=("gate", "study"), default="gate", help="default: %(default)s")
    command.add_argument("--seed", type=int, default=0, help="of the orders; default: %(default)s")
    command.add_argument("--patience", type=float, default=trial.PATIENCE, help="default: %(default)s s")
    command.add_argument("--json", type=Path, metavar="FILE")
    command.set_defaults(command=bisect)


def bisect(arguments: argparse.Namespace) -> int:
    """Print every step with its evidence, and the name. Returns what the epilog says."""
    rows = pinned(arguments) if arguments.pins else released(arguments)
    search, began = Search(list(rows)), time.monotonic()
    steps = 1 + math.ceil(math.log2(max(len(rows) - 1, 1)))
    print(
        f"{len(rows) - 2} releases between {search.candidates[0]} and {search.candidates[-1]}: about {steps} gates"
    )

    def left() -> float:
        return arguments.budget - (time.monotonic() - began)

    whole = ask(arguments, rows, search.candidates[-1], margin=None, budget=left() / steps)
    told = [whole]
    print(line(whole))
    if whole.word != BAD or whole.ratio is None:
        print(f"There is nothing to search for: {search.candidates[-1]} was not found to be worse.")
        return finished(arguments, told, [])
    while (name := search.next()) is not None and left() > 0:
        steps = max(steps - 1, 1)
        ahead = threading.Thread(target=build, args=([rows[one] for one in search.ahead()],), daemon=True)
        ahead.start()
        answer = ask(arguments, rows, name, margin=math.sqrt(whole.ratio) - 1, budget=left() / steps)
        search.tell(name, answer.word)
        told.append(answer)
        print(line(answer), flush=True)
    return finished(arguments, told, search.suspects if search.next() is None else [])


def line(answer: Answer) -> str:
    return f"{answer.word:5} {answer.name}: {answer.sentence}"


def finished(arguments: argparse.Namespace, told: Sequence[Answer], suspects: Sequence[str]) -> int:
    """Say who did it, write it down, and return the status."""
    if len(suspects) == 1:
        print(f"\n{suspects[0]} did it.")
    elif suspects:
        print(f"\nOne of these did it, and which cannot be told: {', '.join(suspects)}")
    elif told[0].word == BAD:
        print("\nThe time was up: raise --budget.")
    if arguments.json:
        facts = {"suspects": list(suspects), "steps": [answer._asdict() for answer in told]}
        files.write_text(arguments.json, json.dumps(facts, indent=1) + "\n")
    return 0 if len(suspects) == 1 else 3


def released(arguments: argparse.Namespace) -> dict[str, Environment]:
    """The releases from GOOD to BAD, by tag."""
    frameworks.row(arguments.framework)
    ends = [
        end if end.startswith(f"{arguments.framework}-") else ledger.tag(arguments.framework, end)
        for end in (arguments.good, arguments.bad)
    ]
    tags = [ends[0], *ledger.span("..".join(ends))]
    return {tag: frameworks.environment(tag, ledger.content(tag)) for tag in tags}


def pinned(arguments: argparse.Namespace) -> dict[str, Environment]:
    """From GOOD's lock to BAD's, one more package of BAD's at a time."""
    row = frameworks.row(arguments.framework)
    locks = [locked(row, text, arguments.framework) for text in (arguments.good, arguments.bad)]
    differing = [name for name in {**locks[0], **locks[1]} if locks[0].get(name) != locks[1].get(name)]
    if not differing:
        raise SteleError(f"{arguments.good} and {arguments.bad} resolve to the same packages.")
    # what others depend on comes before them: the framework itself is the last
    order = sorted(differing, key=lambda name: (name == frameworks.package(row), name))
    packages, rows = dict(locks[0]), {}
    rows["all as in GOOD"] = exactly(row, packages)
    for name in order:
        packages = {**packages, name: locks[1].get(name)}
        rows[f"{name} {locks[0].get(name) or 'none'} to {locks[1].get(name) or 'none'}"] = exactly(
            row, packages
        )
    return rows


def locked(row: Environment, text: str, framework: str) -> dict[str, str | None]:
    """Every package that requirements resolve to, with its version."""
    if not any(sign in text for sign in "=<>"):
        text = f"{frameworks.package(row)}=={text.removeprefix(framework + '-')}"
    found = environments.load(f"{row.name}@{text}")
    builds.resolve(found, builds.interpreter_of(found))
    assert found.lock is not None
    lines = [line.split(" ")[0] for line in found.lock.read_text().splitlines() if "==" in line.split(" ")[0]]
    return {Requirement(line).name: line.partition("==")[2].rstrip("\\") for line in lines}


def exactly(row: Environment, packages: dict[str, str | None]) -> Environment:
    text = " ".join(f"{name}=={version}" for name, version in packages.items() if version is not None)
    return environments.load(f"{row.name}@{text}")


def build(rows: Sequence[Environment]) -> None:
    """Ahead of time, beside the measurement; what fails here fails again, and aloud, when it is asked for."""
    for row in rows:
        try:
            builds.make(row)
        except SteleError:
            continue


def ask(
    arguments: argparse.Namespace,
    rows: dict[str, Environment],
    name: str,
    *,
    margin: float | None,
    budget: float,
) -> Answer:
    """The gate's word on one candidate beside the good one.

    ``margin`` is half of what the bad one is worse by: what lies surely below it is good, what is surely worse, and by
    more than it, is bad.
    """
    good = rows[next(iter(rows))]
    try:
        make(good)
    except SteleError as error:
        raise SteleError(f"The good end cannot be measured: {error}") from None
    try:
        make(rows[name])
    except SteleError as error:
        return Answer(name, SKIP, str(error).splitlines()[0])
    subject = asked(arguments, good, rows[name], margin, budget)
    moment = f"{datetime.now():%Y%m%d-%H%M%S}-{environments.description.slug(name)[:60]}"
    kept = record.new(FOLDER / f"{moment}.jsonl", trial.header(subject))
    verdicts = timing.timing(subject, kept, list(subject.cells), say)
    return judged(name, verdicts, margin)


def asked(
    arguments: argparse.Namespace, good: Environment, new: Environment, margin: float | None, budget: float
) -> Trial:
    [metric] = [one for one in METRICS if one.name == arguments.metric]
    settings = Settings(device="cpu", threads=arguments.threads, malloc=arguments.malloc)
    return Trial(
        old=good,
        new=new,
        cells=(Cell(arguments.task, arguments.phase),),
        metrics=(metric._replace(margin=margin or metric.margin),),
        settings=settings,
        seed=arguments.seed,
        budget=budget,
        parity=False,
        accuracy=False,
        scale=arguments.scale,
        patience=arguments.patience,
    )


def judged(name: str, verdicts: Sequence[Verdict], margin: float | None) -> Answer:
    found = next((one for one in verdicts if one.metric != "control"), None)
    control = next((one for one in verdicts if one.metric == "control"), None)
    if found is None or found.ratio is None:
        return Answer(name, SKIP, found.sentence.splitlines()[0] if found else "nothing was measured")
    ratio = found.ratio.middle
    if control is not None and control.word != "PASS":
        return Answer(name, SKIP, f"{found.sentence}; {control.sentence}", ratio)
    if found.word == "REGRESSED" and (margin is None or found.ratio.middle > 1 + margin):
        return Answer(name, BAD, found.sentence, ratio)
    surely_less = margin is not None and found.ratio.high is not None and found.ratio.high < 1 + margin
    if found.word in ("PASS", "IMPROVED") or surely_less:
        return Answer(name, GOOD, found.sentence, ratio)
    return Answer(name, SKIP, found.sentence, ratio)
