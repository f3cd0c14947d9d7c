"""Whether a smoke run measured all that its machine can: python tests/measured.py JUNIT.xml

A skipped test has measured nothing. What may be skipped is a cell that its row cannot fill, and a row whose
interpreter, program or system library this machine lacks; never one that only had to be installed or made.
"""

import sys
from xml.etree import ElementTree

from stele import environments
from stele.report.results import PHASES
from stele_worker import tasks

EXCUSES = ("not run here: ", "no interpreter for ")


def excuses() -> set[str]:
    """Every reason that a skip may have here."""
    found = set()
    for row in environments.rows().values():
        cells = [
            row.why_absent(task, phase, device="cpu", precision="fp32")
            for task in tasks.NAMES
            for phase in PHASES
        ]
        found.update(reason for reason in cells if reason)
        state = environments.state(row)
        if state.status == "missing" and state.reason.startswith(EXCUSES):
            found.add(state.reason)
    return found


def main(path: str) -> int:
    every = ElementTree.parse(path).getroot().iter("testcase")
    cases = [
        case for case in every if "test_parity" not in case.get("classname", "")
    ]  # which measures nothing
    skips = [(case.get("name"), case.find("skipped")) for case in cases]
    reasons = [(name, skip.get("message", "")) for name, skip in skips if skip is not None]
    known = excuses()
    wrong = [f"{name}: {reason}" for name, reason in reasons if reason not in known]
    expected = len(environments.names()) * len(tasks.NAMES) * len(PHASES)
    for reason in sorted({reason for _, reason in reasons}):
        print(f"skipped: {reason}")
    print(f"{len(cases) - len(reasons)} cells measured, {len(reasons)} skipped, of {expected}")
    if wrong or len(cases) != expected:
        print("This machine can do more than was measured:", *wrong, sep="\n  ", file=sys.stderr)
    return int(bool(wrong) or len(cases) != expected)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
