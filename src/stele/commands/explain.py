"""``stele explain OLD NEW``: which operations make NEW slower or faster, and what else differs?"""

import argparse
from pathlib import Path
from typing import Any

from stele import files
from stele.commands import explanation, gate, gate_options, options
from stele.errors import SteleError
from stele.explain import bundle
from stele.measuring.settings import DEVICES

EPILOG = "Exit: 0 explained; 2 usage or environment; 130 interrupted. Times under a profiler never enter a verdict."
# the options of a gate that concern its verdicts
WITHOUT_VERDICT: dict[str, Any] = {
    "metric": "step",
    "tolerance": [],
    "margin": [],
    "target": None,
    "accuracy_scale": "quick",
    "fail_fast": False,
    "changed": None,
    "replaced": (),
    "budget": 0.0,
    **options.ONE_DEVICE,
}


def add(commands: Any) -> None:
    summary = "which operations make NEW slower or faster, and what else differs?"
    command = commands.add_parser("explain", help=summary, description=summary, epilog=EPILOG)
    command.add_argument("old", metavar="OLD", help="as in stele gate")
    command.add_argument("new", metavar="NEW", help="as in stele gate")
    options.add_cell_options(command)
    options.add_model_options(command)
    options.add_launch_options(command)
    command.add_argument("--device", choices=DEVICES, default="cpu", help="default: %(default)s")
    options.add_precision(command)
    gate_options.add_scale(command, "scale of the launches")
    command.add_argument(
        "--times",
        type=options.parse_count,
        default=explanation.TIMES,
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
    command.set_defaults(command=explain, check=gate_options.trial_from, **WITHOUT_VERDICT)


def explain(arguments: argparse.Namespace) -> int:
    """Print the operations of each cell, and what else differs. Returns 0."""
    subject, import_failure = gate.prepare(gate_options.trial_from(arguments), ())
    if import_failure:
        raise SteleError(import_failure[0].message)
    gate.require_reports_apart(arguments, subject)
    for cell in subject.cells:
        for arm, reason in zip(("OLD", "NEW"), subject.absences(cell), strict=True):
            if reason:
                raise SteleError(f"{arm} does not have {cell}: {reason}")
    if arguments.bundle is not None:
        bundle.model_file(subject.model)  # now, because the launches take minutes
    found = explanation.explain(subject, subject.cells, times=arguments.times)
    if arguments.json is not None:
        files.write_output_text(arguments.json, explanation.to_json(found))
    if arguments.bundle is not None:
        bundle.write(arguments.bundle, found)
    return 0
