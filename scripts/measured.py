"""Check that a smoke run measured all of these tasks: python scripts/measured.py JUNIT.xml TASK,TASK:PHASE EXCEPT

Without a phase, both phases of a task are expected, in every environment. EXCEPT lists cells that were left out, by
the start of "task-environment:phase". Only two kinds of cells may be missing: those that the environment does not
support, and those of an environment that needs an interpreter, program or system library that this machine does not
have. An environment that only has to be installed or built must not be missing.
"""

import sys
from xml.etree import ElementTree

from stele import environments
from stele.environments import libraries
from stele.report.results import PHASES

TESTS = {"train": "test_training", "infer": "test_inference"}


def cells_of(text: str) -> list[tuple[str, str]]:
    """Return the (task, phase) of "cnn,resnet50:infer"."""
    parts = [part.partition(":") for part in text.split(",")]
    return [(task, phase) for task, _, only in parts for phase in ([only] if only else PHASES)]


def possible_tests(cells: list[tuple[str, str]], left_out: tuple[str, ...]) -> set[str]:
    """Return the names of the tests of these cells that this machine can run once everything is installed."""
    names = set()
    for environment in map(environments.load, environments.first_modes()):
        reason = environments.state(environment).reason
        if libraries.missing_message(environment) or reason.startswith("no interpreter for "):
            continue
        for task, phase in cells:
            cell = f"{task}-{environment.name}"
            absent = environment.why_absent(task, phase, device="cpu", precision="fp32")
            if absent is None and not f"{cell}:{phase}".startswith(left_out):
                names.add(f"{TESTS[phase]}[{cell}]")
    return names


def main(path: str, wanted: list[tuple[str, str]], left_out: tuple[str, ...]) -> int:
    """Print the count. Return 1 if a test was not run that this machine can run."""
    cases = ElementTree.parse(path).getroot().iter("testcase")
    measured = {case.get("name") for case in cases if case.find("skipped") is None}
    possible = possible_tests(wanted, left_out)
    print(f"{len(possible & measured)} cells measured of {len(possible)}")
    if missing := sorted(possible - measured):
        print("This machine can measure more:", *missing, sep="\n  ", file=sys.stderr)
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], cells_of(sys.argv[2]), tuple(sys.argv[3].split(","))))
