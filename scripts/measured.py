"""Check that a smoke run measured all of these tasks: python scripts/measured.py JUNIT.xml TASK,TASK:PHASE EXCEPT

Without a phase, both phases of a task are expected, in every environment. EXCEPT lists cells that were left out, by
the start of "task-environment". A skipped test measured nothing. Only two kinds of cells may be skipped: those that
the environment does not support, and those of an environment that needs an interpreter, program or system library that
this machine does not have. An environment that only has to be installed or built must not be skipped.
"""

import sys
from xml.etree import ElementTree

from stele import environments
from stele.environments import libraries
from stele.report.results import PHASES


def cells_of(text: str) -> list[tuple[str, str]]:
    """Return the (task, phase) of "cnn,resnet50:infer"."""
    parts = [part.partition(":") for part in text.split(",")]
    return [(task, phase) for task, _, only in parts for phase in ([only] if only else PHASES)]


def allowed_reasons(cells: list[tuple[str, str]]) -> set[str]:
    """Return every reason for which a test of these cells may be skipped on this machine."""
    reasons = set()
    for environment in environments.described().values():
        absent = [environment.why_absent(*cell, device="cpu", precision="fp32") for cell in cells]
        reasons.update(reason for reason in absent if reason)
        state = environments.state(environment)
        if libraries.missing_message(environment) or state.reason.startswith("no interpreter for "):
            reasons.add(state.reason)
    return reasons


def main(path: str, wanted: list[tuple[str, str]], left_out: tuple[str, ...]) -> int:
    """Print the counts. Return 1 if a test was skipped that must not be skipped, or if tests are missing."""
    tests = ElementTree.parse(path).getroot().iter("testcase")
    # the parity tests measure nothing
    cases = [case for case in tests if "test_parity" not in case.get("classname", "")]
    elements = [(case.get("name"), case.find("skipped")) for case in cases]
    skips = [(name, element.get("message", "")) for name, element in elements if element is not None]
    allowed = allowed_reasons(wanted)
    wrong = [f"{name}: {reason}" for name, reason in skips if reason not in allowed]
    names = [f"{task}-{name}" for task, _ in wanted for name in environments.first_modes()]
    expected = sum(not name.startswith(left_out) for name in names)
    for reason in sorted({reason for _, reason in skips}):
        print(f"skipped: {reason}")
    print(f"{len(cases) - len(skips)} cells measured, {len(skips)} skipped, of {expected}")
    if wrong or len(cases) != expected:
        print("This machine can measure more:", *wrong, sep="\n  ", file=sys.stderr)
    return int(bool(wrong) or len(cases) != expected)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], cells_of(sys.argv[2]), tuple(sys.argv[3].split(","))))
