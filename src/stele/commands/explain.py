"""``stele explain OLD NEW``: which operations make NEW slower or faster, and what else differs?"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stele import files
from stele.commands import gate, options
from stele.commands.gate import PairOptions
from stele.environments import arms
from stele.errors import SteleError
from stele.explain import bundle, explanation
from stele.gate import behaviour, preparation
from stele.gate.metrics import METRICS
from stele.gate.trial import Trial
from stele.measuring import progress
from stele.measuring.settings import DEVICES
from stele.subjects import Program
from stele.subjects.programs import Command

EPILOG = (
    "Exit: 0 explained; 2 usage or environment; 4 internal error; 130 interrupted. Times under a profiler never enter "
    "a verdict."
)


@dataclass(frozen=True, kw_only=True)
class ExplainOptions:
    pair: PairOptions = field(default_factory=PairOptions)
    times: int = explanation.TIMES  # launches of each arm
    json: Path | None = None
    bundle: Path | None = None


def add(commands: Any) -> None:
    summary = "show which operations make NEW slower or faster, and what else differs"
    command = commands.add_parser("explain", help=summary, description=summary, epilog=EPILOG)
    command.add_argument("old", metavar="OLD", help="as in stele gate")
    command.add_argument("new", metavar="NEW", help="as in stele gate")
    options.add_cell_options(command)
    options.add_model_options(command)
    options.add_program_options(command)
    options.add_launch_options(command)
    command.add_argument("--device", choices=DEVICES, help="default: %(default)s")
    options.add_precision(command)
    gate.add_scale(command, "scale of the launches")
    command.add_argument(
        "--times",
        type=options.parse_count,
        metavar="N",
        help="launches of each arm; default: %(default)s",
    )
    command.add_argument("--json", type=Path, metavar="FILE", help="write the explanation as JSON")
    command.add_argument(
        "--bundle",
        type=Path,
        metavar="FILE.zip",
        help="write what a maintainer upstream needs: a script that reproduces the result without Stele, the packages, "
        "the launches, the profiles, and a prepared issue text",
    )
    options.add_trial_options(command)
    options.declare(command, explain, ExplainOptions, check=check)


def check(chosen: ExplainOptions) -> None:
    """Raise SteleError for what cannot be done, as far as the command line says it."""
    subject = trial_from(chosen.pair).subject
    if subject.metrics is None:
        return
    if isinstance(subject, Command):
        raise SteleError(
            "A command starts processes of its own, and Stele profiles only its own. Profile a function of it: "
            "stele explain OLD NEW --function train.py:step"
        )
    if chosen.bundle is not None:
        raise SteleError("--bundle needs a task or --model. Leave it out.")
    program = chosen.pair.program
    for option, is_typed in (("--accept", program.accept is not None), ("--only-outcomes", program.only_outcomes)):
        if is_typed:
            raise SteleError(f"{option} has no effect on an explanation. Leave it out.")


def explain(chosen: ExplainOptions) -> int:
    """Print the operations of each cell, and what else differs. Returns 0."""
    trial, import_failure = preparation.prepare(trial_from(chosen.pair), ())
    if import_failure:
        raise SteleError(import_failure[0].message)
    if isinstance(trial.subject, Program):
        with progress.waiting("OLD"):
            trial = behaviour.with_timings(trial)
    gate.require_reports_apart(options.flat(chosen), trial)
    for cell in trial.cells:
        for arm, reason in zip(("OLD", "NEW"), trial.absences(cell), strict=True):
            if reason:
                raise SteleError(f"{arm} does not have {cell}: {reason}")
    if chosen.bundle is not None:
        trial.subject.reproduction()  # now, because the launches take minutes
    result = explanation.explain(trial, trial.cells, times=chosen.times)
    if chosen.json is not None:
        files.write_output_text(chosen.json, explanation.to_json(result))
    if chosen.bundle is not None:
        bundle.write(chosen.bundle, result)
    return 0


def trial_from(pair: PairOptions) -> Trial:
    """Return the Trial of the options, whose launches are profiled. Raises SteleError for what cannot be done."""
    subject, extras = pair.subject, pair.extras()
    gate.check_machine(pair.settings_of(subject))
    cells = pair.selected_cells(subject)
    return Trial(
        old=arms.load(pair.old, subject.needs, extras),
        new=arms.load(pair.new, subject.needs, extras),
        subject=subject,
        cells=cells,
        metrics=METRICS[:1],
        settings=pair.settings_of(subject),
        seed=pair.seed,
        budget=0.0,
        parity=False,
        accuracy=False,
        scale=pair.scale,
        timeout=pair.worker_timeout,
        parallel=pair.parallel,
    )
