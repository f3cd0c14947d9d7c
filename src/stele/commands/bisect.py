"""``stele bisect FRAMEWORK GOOD BAD``: which release did it?"""

import argparse
import json
import math
import threading
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from stele import environments, files, schema
from stele.commands import options
from stele.commands.gate import make
from stele.commands.options import say
from stele.environments import Environment, builds
from stele.errors import SteleError
from stele.gate import record, timing, trial
from stele.gate.metrics import METRICS
from stele.gate.trial import Cell, Trial
from stele.measuring.settings import Settings
from stele.releases import candidates
from stele.releases.bisection import BAD, SKIP, Answer, Search, judged
from stele_worker import tasks

FOLDER = Path(".stele/bisections")
STATUSES = "Exit: 0 found; 2 usage or environment; 3 it cannot be told which, or whether BAD is worse at all."


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
    command.add_argument("--worker-timeout", type=float, default=trial.TIMEOUT, help="default: %(default)s s")
    command.add_argument("--json", type=Path, metavar="FILE")
    command.set_defaults(command=bisect)


def bisect(arguments: argparse.Namespace) -> int:
    """Print every step with its evidence, and the name. Returns what the epilog says."""
    choose = candidates.pinned if arguments.pins else candidates.released
    rows = choose(arguments.framework, arguments.good, arguments.bad)
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
    if whole.status != BAD or whole.ratio is None:
        print(f"There is nothing to search for: {search.candidates[-1]} was not found to be worse.")
        return finished(arguments, told, [])
    while (name := search.next()) is not None and left() > 0:
        steps = max(steps - 1, 1)
        ahead = threading.Thread(target=build, args=([rows[one] for one in search.ahead()],), daemon=True)
        ahead.start()
        answer = ask(arguments, rows, name, margin=math.sqrt(whole.ratio) - 1, budget=left() / steps)
        search.tell(name, answer.status)
        told.append(answer)
        print(line(answer), flush=True)
    return finished(arguments, told, search.suspects if search.next() is None else [])


def line(answer: Answer) -> str:
    return f"{answer.status:5} {answer.name}: {answer.message}"


def finished(arguments: argparse.Namespace, told: Sequence[Answer], suspects: Sequence[str]) -> int:
    """Say who did it, write it down, and return the status."""
    if len(suspects) == 1:
        print(f"\n{suspects[0]} did it.")
    elif suspects:
        print(f"\nOne of these did it, and which cannot be told: {', '.join(suspects)}")
    elif told[0].status == BAD:
        print("\nThe time was up: raise --budget.")
    if arguments.json:
        facts = {"suspects": list(suspects), "steps": [answer._asdict() for answer in told]}
        files.write_text(arguments.json, json.dumps(schema.stamped(facts), indent=1) + "\n")
    return 0 if len(suspects) == 1 else 3


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
    """The gate's status on one candidate beside the good one; ``margin`` as in ``judged``."""
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
        timeout=arguments.worker_timeout,
    )
