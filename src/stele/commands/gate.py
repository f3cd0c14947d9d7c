"""``stele gate OLD NEW``: is it safe to upgrade?"""

import argparse
import glob
import os
import re
from datetime import datetime
from pathlib import Path
from typing import Any

from stele import environments, files
from stele.commands import options
from stele.commands.options import chosen, say
from stele.environments import Environment, builds
from stele.errors import SteleError
from stele.gate import correctness, record, timing, trial
from stele.gate.metrics import METRICS, Metric
from stele.gate.record import Record
from stele.gate.trial import Trial
from stele.gate.verdict import Verdict
from stele.measuring.settings import DEVICES, PRECISIONS, Settings, default_threads
from stele.report import gate as pages
from stele_worker import tasks

FOLDER = Path(".stele/gates")
STATUS = {"PASS": 0, "REGRESSED": 1, "BROKEN": 1, "MISSING": 1, "INCONCLUSIVE": 3}
CORRECTNESS = ("parity", "accuracy")
BEFORE_ACCURACY = 0.6  # share of the budget
SCALES = ("gate", "study", "quick", "paper")  # about fifty steps a launch, the same of a small batch, or all
NAMES = (*CORRECTNESS, *(metric.name for metric in METRICS))
STATUSES = "Exit: 0 pass; 1 regressed, broken, or missing in NEW; 2 usage or environment; 3 inconclusive."


def add(commands: Any) -> None:
    about = "is it safe to upgrade? Measures two environments side by side and says"
    command = commands.add_parser("gate", help="is it safe to upgrade?", description=about, epilog=STATUSES)
    what = "a requirement such as keras==3.14.1, a row, or an interpreter"
    command.add_argument("old", metavar="OLD", help=what)
    command.add_argument("new", metavar="NEW", help=what)
    options.of_cells(command)
    command.add_argument("--metric", metavar="ID,…", help=f"default: {','.join(NAMES)}")
    options.steady(command, budget="30m")
    command.add_argument(
        "--margin",
        action="append",
        default=[],
        metavar="[METRIC=]N%",
        help="by how much a step may slow down, or another metric grow, and pass; "
        "default: " + ", ".join(f"{metric.name}={metric.margin:.0%}%" for metric in METRICS),
    )
    command.add_argument("--device", choices=DEVICES, default="cpu", help="default: %(default)s")
    command.add_argument("--precision", choices=PRECISIONS, default="fp32", help="default: %(default)s")
    command.add_argument("--scale", choices=SCALES, default="gate", help="of what is timed: %(default)s")
    command.add_argument(
        "--accuracy-scale", choices=tasks.SCALES, default="quick", help="of what is trained: %(default)s"
    )
    command.add_argument("--seed", type=int, default=0, help="of the orders; default: %(default)s")
    command.add_argument("--worker-timeout", type=float, default=trial.TIMEOUT, help="default: %(default)s s")
    command.add_argument(
        "--resume",
        nargs="?",
        type=Path,
        const=Path(),
        metavar="FILE",
        help="go on with a record; without a name, with the newest of OLD and NEW",
    )
    command.add_argument("--json", type=Path, metavar="FILE")
    command.add_argument("--markdown", type=Path, metavar="FILE")
    command.add_argument("--junit", type=Path, metavar="FILE")
    command.set_defaults(command=gate)


def gate(arguments: argparse.Namespace) -> int:
    """Returns what the epilog says."""
    subject = asked(arguments)
    writable(arguments)
    make(subject.old)
    unusable = broken(subject.new)
    kept = opened(arguments, subject)
    say(f"the record: {kept.path}")
    verdicts = unusable or judged(subject, kept)
    print("\n".join(pages.lines(subject, verdicts)))
    write(arguments, subject, kept, verdicts)
    return STATUS[pages.status(verdicts)]


def judged(subject: Trial, kept: Record) -> list[Verdict]:
    """Parity first: a recipe that is broken is not timed. Then some time, accuracy, and what is left for time."""
    verdicts = list(correctness.absent(subject))
    if subject.parity:
        verdicts += correctness.agreement(subject, kept, say)
    broken = {verdict.task for verdict in verdicts if verdict.metric == "parity" and verdict.status != "PASS"}
    cells = [cell for cell in subject.present() if cell.task not in broken]
    if subject.accuracy and subject.metrics:
        timing.timing(subject, kept, cells, say, share=BEFORE_ACCURACY)
    if subject.accuracy:
        verdicts += correctness.learning(subject, kept, cells, say)
    return [*verdicts, *(timing.timing(subject, kept, cells, say) if subject.metrics else [])]


def asked(arguments: argparse.Namespace) -> Trial:
    """What the command line says. Raises SteleError, quoting it, where it says nothing that can be done."""
    wanted = chosen("metric", arguments.metric or ",".join(NAMES), NAMES)
    cells = options.cells(arguments.task, arguments.phase)
    settings = Settings(
        device=arguments.device,
        precision=arguments.precision,
        threads=arguments.threads,
        malloc=arguments.malloc,
    )
    if arguments.threads > max(default_threads() - 1, 1):
        raise SteleError(
            f"--threads {arguments.threads}: leave a processor of {default_threads()} to everything else."
        )
    if arguments.phase == "infer" and wanted == ["accuracy"]:
        raise SteleError("Accuracy is of training: --phase infer leaves nothing to judge.")
    return Trial(
        old=environments.load(arguments.old),
        new=environments.load(arguments.new),
        cells=cells,
        metrics=tuple(metric for metric in metrics(arguments.margin) if metric.name in wanted),
        settings=settings,
        seed=arguments.seed,
        budget=arguments.budget,
        parity="parity" in wanted,
        accuracy="accuracy" in wanted,
        scale=arguments.scale,
        training=arguments.accuracy_scale,
        timeout=arguments.worker_timeout,
    )


def metrics(texts: list[str]) -> list[Metric]:
    """The metrics with the margins that were typed: ``5%``, of a step, or ``host-memory=3%``."""
    margins = {}
    for text in texts:
        found = re.fullmatch(r"(?:([\w-]+)=)?(\d+(?:\.\d+)?)%", text)
        name = found and (found[1] or "step")
        if found is None or name not in [metric.name for metric in METRICS] or not 0 < float(found[2]) <= 100:
            known = ", ".join(metric.name for metric in METRICS)
            raise SteleError(f"--margin {text}: say 5%, or METRIC=5% with one of {known}.")
        margins[name] = float(found[2]) / 100
    return [metric._replace(margin=margins.get(metric.name, metric.margin)) for metric in METRICS]


def make(row: Environment) -> None:
    """Build an arm, if it was not. Raises SteleError if it cannot be."""
    state = environments.state(row)
    if state.status != "ready" and row.lock is not None:
        say(f"building {row.name} …")
        builds.make(row)
    elif state.status != "ready":
        raise SteleError(f"'{row.name}' is {state.status}: {state.reason}")


def broken(row: Environment) -> list[Verdict]:
    """A verdict if NEW can be installed, but not imported; else none, and it is there."""
    try:
        make(row)
    except builds.DoesNotImport as error:
        return [Verdict("all", "all", "import", "BROKEN", f"NEW: {error}")]
    return []


def writable(arguments: argparse.Namespace) -> None:
    """Raises SteleError now, rather than after an hour, if a report cannot be written."""
    for path in (arguments.json, arguments.markdown, arguments.junit):
        if path is not None and not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
            raise SteleError(f"{path} cannot be written: {path.parent} is no folder that you may write to.")


def opened(arguments: argparse.Namespace, subject: Trial) -> Record:
    """A new record, or the one to go on with."""
    names = f"{subject.old.slug}-{subject.new.slug}"
    if arguments.resume is None:
        return record.new(FOLDER / f"{datetime.now():%Y%m%d-%H%M%S}-{names}.jsonl", trial.header(subject))
    path = arguments.resume
    if path == Path():
        path = max(FOLDER.glob(f"{'[0-9]' * 8}-{'[0-9]' * 6}-{glob.escape(names)}.jsonl"), default=None)
        if path is None:
            raise SteleError(
                f"Nothing to resume: no record of {subject.old.name} and {subject.new.name} in {FOLDER}."
            )
    kept = record.resume(path)
    trial.refuse_another(kept, subject)
    return kept


def write(arguments: argparse.Namespace, subject: Trial, kept: Record, verdicts: list[Verdict]) -> None:
    if arguments.json:
        files.write_text(arguments.json, pages.as_json(subject, kept, verdicts))
    if arguments.markdown:
        files.write_text(arguments.markdown, pages.markdown(subject, kept, verdicts))
    if arguments.junit:
        files.write_text(arguments.junit, pages.junit(subject, verdicts))
